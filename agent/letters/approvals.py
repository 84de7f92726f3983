"""Takes what people answer to calls that wait: as decisions, or as a refusal that says how things stand."""

import json
from typing import Literal, cast

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.approvals import approvals_with
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.approval_digest import seen_digest, what_changed
from longhaul.agent.letters.bodies import CallDecision, ConfirmResult, Unusable, UserConfirmResultEvent
from longhaul.agent.letters.letter import Received
from longhaul.agent.permission.grantable_rules import may_grant
from longhaul.agent.permission.rule_checks import BadRule, check_rules
from longhaul.agent.permission.rulebook import check_room, granted
from longhaul.agent.plain.result_schema import unusable, wrong_places
from longhaul.agent.plain.times import iso
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.spec.mcp import server_of


def confirm(
    record: Record, reply_id: str | None, decisions: tuple[CallDecision, ...], approver: str, key: str = ""
) -> Received:
    """`key`: id of the key that the decisions were signed with, where a worker has checked that."""
    ids = [decision.call_id for decision in decisions]
    if len(set(ids)) != len(ids):
        raise Unusable(f"decisions: {ids} names a call twice; decide once on each")
    decided = tuple(
        _decision(record, waiting_call(record, reply_id, item.call_id, "person"), item) for item in decisions
    )
    _check_room(record, tuple(rule for decision in decided for rule in decision.rules))
    for decision in decided:
        _check_people(record, _open(record, decision.call_id), decision, approver, key)
    entry = e.HumanDecided(decisions=decided, approver=approver, key=key)
    return Received((entry,), {"decided": ids, **_still_open(record, entry)})


def _check_people(record: Record, call: OpenCall, decision: e.DecisionGiven, approver: str, key: str) -> None:
    """What holds for calls that take more than one approval; a denial is anybody's to make, and enough."""
    context = record.state.permission_context
    for rule in decision.rules:
        if context.approvers(rule.tool_name) > 1:
            raise Unusable(f"rules: calls of {rule.tool_name!r} take two approvals each; none can be given in advance")
    needed = context.approvers(call.block.name)
    if needed == 1 or not decision.allow:
        return
    if not approver:
        raise Unusable(f"approver: a call of {call.block.name!r} takes {needed} approvals; say who you are")
    if call.approvals and approvals_with(record, call, decision, approver, key) is call.approvals:
        raise Unusable(f"approver: {approver!r} has approved {call.block.id!r} already; somebody else has to")


def _still_open(record: Record, entry: e.HumanDecided) -> dict[str, object]:
    """The approved calls that need one more person, and how many have approved them."""
    more: dict[str, str] = {}
    for decision in entry.decisions:
        call = _open(record, decision.call_id)
        needed = record.state.permission_context.approvers(call.block.name)
        count = len(approvals_with(record, call, decision, entry.approver, entry.key))
        if decision.allow and count < needed:
            more[decision.call_id] = f"{count} of {needed}"
    return {"approvals": more} if more else {}


def _open(record: Record, call_id: str) -> OpenCall:
    return record.current.calls[call_id]


def _check_room(record: Record, rules: tuple[PermissionRule, ...]) -> None:
    try:
        check_room(record.state.permission_context.rules, rules, record.latest_at)
    except BadRule as full:
        raise Unusable(f"rules: {full}") from full


def _decision(record: Record, call: OpenCall, given: CallDecision) -> e.DecisionGiven:
    if given.decision == "deny" and (given.input is not None or given.rules):
        raise Unusable(f"decisions: a denial of {given.call_id!r} takes no input and no rules; leave them out")
    if given.digest is not None and given.digest != (now := seen_digest(call, record)):
        why = what_changed(given.digest, now)
        raise Unusable(
            f"decisions: {given.call_id!r} has changed since that digest was taken{f' ({why})' if why else ''}; "
            "look at it again and decide"
        )
    if given.input is not None:
        _check_edit(record, call, given.input)
    return e.DecisionGiven(
        call_id=given.call_id,
        allow=given.decision == "allow",
        reason=given.reason,
        input=given.input,
        rules=_granted(record, call, given),
        digest=given.digest or "",
    )


def _check_edit(record: Record, call: OpenCall, text: str) -> None:
    """A slip of the person must not cost the call: refused here, the decision can be made again."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"input: {text[:80]!r} is not JSON ({error}); give a JSON object of arguments") from error
    if not isinstance(value, dict):
        raise Unusable(f"input: {text[:80]!r} is not a JSON object of arguments")
    tool = record.provided.tools.get(call.block.name)
    schema = tool.input_schema if tool else {}
    # Of a schema that says more, the rest is checked by the worker that would run the call.
    if not unusable(schema, other_words=True) and (wrong := wrong_places(cast(object, value), schema)):
        raise Unusable(f"input: it does not fit {call.block.name!r}: {'; '.join(wrong)}; nothing is decided yet")


def _granted(record: Record, call: OpenCall, given: CallDecision) -> tuple[PermissionRule, ...]:
    """Only what was suggested, or what the agent's settings let an approver grant, with the end that they give it."""
    if isinstance(given.rules, bool):
        return call.suggested_rules if given.rules else ()
    patterns = record.state.permission_context.grantable
    try:
        own = tuple(rule for rule in given.rules if may_grant(rule, patterns, record.provided.workspace_root))
        check_rules(own)
        return granted((*own, *call.suggested_rules), given.rules, call.block.id)
    except BadRule as bad:
        raise Unusable(str(bad)) from bad


def confirm_event(record: Record, body: UserConfirmResultEvent) -> Received:
    """The seed's own event."""
    decisions = tuple(_as_decision(record, result) for result in body.confirm_results)
    return confirm(record, body.reply_id, decisions, "")


def _as_decision(record: Record, result: ConfirmResult) -> CallDecision:
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
    if at := record.calls.expired.get(call_id):
        return f" ({call_id!r} expired at {iso(at)}; {_unanswered(record, call_id, whom) or _ENDED[whom]})"
    call = record.reply.calls.get(call_id) if record.reply else None
    if call is not None:
        return f" ({call_id!r} is {call.state.value}{f', decided by {call.approver}' if call.approver else ''})"
    if not record.had_call(call_id):
        return f" ({call_id!r} is no call here)"
    if (found := _result(record, call_id)) is None:
        return f" ({call_id!r} has its result)"
    reply_id, result = found
    other = "" if record.reply and reply_id == record.reply.reply_id else f", in reply {reply_id!r}"
    return f" ({call_id!r} has its result: {result.state.value}{other})"


def _result(record: Record, call_id: str) -> tuple[str, ToolResultBlock] | None:
    """With the id of its reply."""
    for message in record.context.transcript[: -LOOKED_BACK - 1 : -1]:
        for result in message.get_tool_results():
            if result.id == call_id:
                return message.id, result
    return None


def _unanswered(record: Record, call_id: str, whom: Whom) -> str:
    """Of a call whose server has asked somebody: its tool runs on a worker, so that it waits for no other result."""
    found = _result(record, call_id) if whom == "outside" else None
    server = server_of(found[1].name) if found and found[1].state is ToolResultState.ERROR else ""
    return f"{server!r} has no answer, its call has ended with that, and the agent knows it" if server else ""
