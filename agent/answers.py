"""What people answer to calls that wait: decisions, or a refusal that says how things stand."""

import json
from typing import Literal

from agent import entries as e
from agent.bodies import CallDecision, ConfirmResult, Unusable
from agent.judgement import seen_digest
from agent.letters import Received
from agent.permission.checks import BadRule
from agent.permission.rulebook import check_room, granted
from agent.permission.rules import PermissionRule
from agent.record import Record
from agent.seen import what_changed
from agent.state import OpenCall
from agent.times import iso


def confirm(record: Record, reply_id: str | None, decisions: tuple[CallDecision, ...], approver: str) -> Received:
    ids = [decision.call_id for decision in decisions]
    if len(set(ids)) != len(ids):
        raise Unusable(f"decisions: {ids} names a call twice; decide once on each")
    decided = tuple(
        _decision(record, waiting_call(record, reply_id, item.call_id, "person"), item) for item in decisions
    )
    _check_room(record, tuple(rule for decision in decided for rule in decision.rules))
    return Received((e.HumanDecided(decisions=decided, approver=approver),), {"decided": ids})


def _check_room(record: Record, rules: tuple[PermissionRule, ...]) -> None:
    try:
        check_room(record.state.permission_context.rules, rules, record.latest_at)
    except BadRule as full:
        raise Unusable(f"rules: {full}") from full


def _decision(record: Record, call: OpenCall, given: CallDecision) -> e.Decision:
    if given.decision == "deny" and (given.input is not None or given.rules):
        raise Unusable(f"decisions: a denial of {given.call_id!r} takes no input and no rules; leave them out")
    if given.digest is not None and given.digest != (now := seen_digest(call, record)):
        why = what_changed(given.digest, now)
        raise Unusable(
            f"decisions: {given.call_id!r} has changed since that digest was taken{f' ({why})' if why else ''}; "
            "look at it again and decide"
        )
    if given.input is not None:
        _check_edit(given.input)
    return e.Decision(
        call_id=given.call_id,
        allow=given.decision == "allow",
        reason=given.reason,
        input=given.input,
        rules=_granted(call, given),
    )


def _check_edit(text: str) -> None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"input: {text[:80]!r} is not JSON ({error}); give a JSON object of arguments") from error
    if not isinstance(value, dict):
        raise Unusable(f"input: {text[:80]!r} is not a JSON object of arguments")


def _granted(call: OpenCall, given: CallDecision) -> tuple[PermissionRule, ...]:
    """Only what was suggested, with the end that the approver gives it."""
    if isinstance(given.rules, bool):
        return call.suggested_rules if given.rules else ()
    try:
        return granted(call.suggested_rules, given.rules, call.block.id)
    except BadRule as bad:
        raise Unusable(str(bad)) from bad


def as_decision(record: Record, result: ConfirmResult) -> CallDecision:
    block = result.tool_call
    call = record.reply.calls.get(block.id) if record.reply else None
    if call and block.name != call.block.name:
        raise Unusable(f"confirm_results: call {block.id!r} is of {call.block.name!r}, not of {block.name!r}")
    edited = call is not None and block.input != call.input
    return CallDecision(
        call_id=block.id,
        decision="allow" if result.confirmed else "deny",
        input=block.input if result.confirmed and edited else None,
        rules=(result.rules or ()) if result.confirmed else (),
    )


LOOKED_BACK = 200
"""Messages in which the result of an earlier call is looked for."""
Whom = Literal["person", "outside"]
_FOR: dict[Whom, str] = {"person": "a decision", "outside": "a result from outside"}
_ENDED: dict[Whom, str] = {"person": "it was denied", "outside": "its outcome is unknown, see `settle`"}


def waiting_call(record: Record, reply_id: str | None, call_id: str, whom: Whom) -> OpenCall:
    """The open call that waits for this, or a refusal that says how things stand."""
    reply = record.reply
    waiting = [each.block.id for each in reply.waiting() if each.waits_for == whom] if reply else []
    if reply is None or not waiting:
        told = _told(record, call_id, whom)
        raise Unusable(f"this session waits for nothing of the kind: no call needs {_FOR[whom]}{told}")
    if reply_id not in (None, reply.reply_id):
        raise Unusable(f"reply_id: {reply_id!r} is not the reply being made; that is {reply.reply_id!r}")
    call = reply.calls.get(call_id)
    if call is None or call.waits_for != whom:
        raise Unusable(
            f"call {call_id!r} does not wait for {_FOR[whom]}{_told(record, call_id, whom)}; waiting: {waiting}"
        )
    return call


def _told(record: Record, call_id: str, whom: Whom) -> str:
    if at := record.expired.get(call_id):
        return f" ({call_id!r} expired at {iso(at)}; {_ENDED[whom]})"
    call = record.reply.calls.get(call_id) if record.reply else None
    if call is not None:
        return f" ({call_id!r} is {call.state.value}{f', decided by {call.approver}' if call.approver else ''})"
    if call_id not in record.call_names:
        return f" ({call_id!r} is no call here)"
    for message in record.transcript[: -LOOKED_BACK - 1 : -1]:
        for result in message.get_tool_results():
            if result.id == call_id:
                other = "" if record.reply and message.id == record.reply.reply_id else f", in reply {message.id!r}"
                return f" ({call_id!r} has its result: {result.state.value}{other})"
    return f" ({call_id!r} has its result)"
