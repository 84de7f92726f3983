"""Decisions of people on waiting calls: single, several at once, by several approvers, and signed.

A signed decision counts once a worker has checked its signature, and that is recorded. Keys are given, never
kept.
"""

import base64
import hashlib
import hmac
import json
import re
from typing import Any, Literal, NamedTuple, cast

from pydantic import ValidationError

from longhaul.agent import entries as e
from longhaul.agent.decisions.subagent_start import at_work
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import (
    CallDecision,
    ChangeRules,
    Configure,
    Confirm,
    ConfirmResult,
    Received,
    ReplaceState,
    Unusable,
    UserConfirmResultEvent,
)
from longhaul.agent.permission.foreign_rules import understood
from longhaul.agent.permission.rulebook import BadRule, check_room, check_rules, granted, id_of, may_grant
from longhaul.agent.plain.errors import BadSetup, ImportProblem
from longhaul.agent.plain.json_schemas import unusable, wrong_places
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.reducer.agent_state import AgentState, OpenCall
from longhaul.agent.reducer.approval_digest import seen_digest, what_changed
from longhaul.agent.reducer.call_state import approvals_with
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from longhaul.agent.values.spec.mcp import server_of


def confirm(
    journal: Journal, reply_id: str | None, decisions: tuple[CallDecision, ...], approver: str, key: str = ""
) -> Received:
    """`key`: id of the key that the decisions were signed with, where a worker has checked that."""
    ids = [decision.call_id for decision in decisions]
    if len(set(ids)) != len(ids):
        raise Unusable(f"decisions: {ids} names a call twice; decide once on each")
    decided = tuple(
        _decision(journal, waiting_call(journal, reply_id, item.call_id, "person"), item) for item in decisions
    )
    _check_room(journal, tuple(rule for decision in decided for rule in decision.rules))
    for decision in decided:
        _check_people(journal, _open(journal, decision.call_id), decision, approver, key)
    entry = e.HumanDecided(decisions=decided, approver=approver, key=key)
    return Received((entry,), {"decided": ids, **_still_open(journal, entry)})


def _check_people(journal: Journal, call: OpenCall, decision: e.DecisionGiven, approver: str, key: str) -> None:
    """What holds for calls that take more than one approval; a denial is anybody's to make, and enough."""
    context = journal.state.permission_context
    for rule in decision.rules:
        if context.approvers(rule.tool_name) > 1:
            raise Unusable(f"rules: calls of {rule.tool_name!r} take two approvals each; none can be given in advance")
    needed = context.approvers(call.block.name)
    if needed == 1 or not decision.allow:
        return
    if not approver:
        raise Unusable(f"approver: a call of {call.block.name!r} takes {needed} approvals; say who you are")
    if call.approvals and approvals_with(journal, call, decision, approver, key) is call.approvals:
        raise Unusable(f"approver: {approver!r} has approved {call.block.id!r} already; somebody else has to")


def _still_open(journal: Journal, entry: e.HumanDecided) -> dict[str, object]:
    """The approved calls that need one more person, and how many have approved them."""
    more: dict[str, str] = {}
    for decision in entry.decisions:
        call = _open(journal, decision.call_id)
        needed = journal.state.permission_context.approvers(call.block.name)
        count = len(approvals_with(journal, call, decision, entry.approver, entry.key))
        if decision.allow and count < needed:
            more[decision.call_id] = f"{count} of {needed}"
    return {"approvals": more} if more else {}


def _open(journal: Journal, call_id: str) -> OpenCall:
    return journal.current.calls[call_id]


def _check_room(journal: Journal, rules: tuple[PermissionRule, ...]) -> None:
    try:
        check_room(journal.state.permission_context.rules, rules, journal.latest_at)
    except BadRule as full:
        raise Unusable(f"rules: {full}") from full


def _decision(journal: Journal, call: OpenCall, given: CallDecision) -> e.DecisionGiven:
    if given.decision == "deny" and (given.input is not None or given.rules):
        raise Unusable(f"decisions: a denial of {given.call_id!r} takes no input and no rules; leave them out")
    if given.digest is not None and given.digest != (now := seen_digest(call, journal)):
        why = what_changed(given.digest, now)
        raise Unusable(
            f"decisions: {given.call_id!r} has changed since that digest was taken{f' ({why})' if why else ''}; "
            "look at it again and decide"
        )
    if given.input is not None:
        _check_edit(journal, call, given.input)
    return e.DecisionGiven(
        call_id=given.call_id,
        allow=given.decision == "allow",
        reason=given.reason,
        input=given.input,
        rules=_granted(journal, call, given),
        digest=given.digest or "",
    )


def _check_edit(journal: Journal, call: OpenCall, text: str) -> None:
    """A slip of the person must not cost the call: refused here, the decision can be made again."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"input: {text[:80]!r} is not JSON ({error}); give a JSON object of arguments") from error
    if not isinstance(value, dict):
        raise Unusable(f"input: {text[:80]!r} is not a JSON object of arguments")
    tool = journal.provided.tools.get(call.block.name)
    schema = tool.input_schema if tool else {}
    # Of a schema that says more, the rest is checked by the worker that would run the call.
    if not unusable(schema, other_words=True) and (wrong := wrong_places(cast(object, value), schema)):
        raise Unusable(f"input: it does not fit {call.block.name!r}: {'; '.join(wrong)}; nothing is decided yet")


def _granted(journal: Journal, call: OpenCall, given: CallDecision) -> tuple[PermissionRule, ...]:
    """Only what was suggested, or what the agent's settings let an approver grant, with the end that they give it."""
    if isinstance(given.rules, bool):
        return call.suggested_rules if given.rules else ()
    patterns = journal.state.permission_context.grantable
    try:
        own = tuple(rule for rule in given.rules if may_grant(rule, patterns, journal.provided.workspace_root))
        check_rules(own)
        return granted((*own, *call.suggested_rules), given.rules, call.block.id)
    except BadRule as bad:
        raise Unusable(str(bad)) from bad


def confirm_event(journal: Journal, body: UserConfirmResultEvent) -> Received:
    """The seed's own event."""
    decisions = tuple(_as_decision(journal, result) for result in body.confirm_results)
    return confirm(journal, body.reply_id, decisions, "")


def _as_decision(journal: Journal, result: ConfirmResult) -> CallDecision:
    block = result.tool_call
    call = journal.reply.calls.get(block.id) if journal.reply else None
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
_ENDED: dict[Whom, str] = {"person": "it was denied", "outside": "its outcome is unknown, see `resolve`"}


def waiting_call(journal: Journal, reply_id: str | None, call_id: str, whom: Whom) -> OpenCall:
    """The open call that waits for this, or a refusal that says how things stand."""
    reply = journal.reply
    waiting = [each.block.id for each in reply.waiting() if each.waits_for == whom] if reply else []
    if reply is None or not waiting:
        told = _why_closed(journal, call_id, whom)
        raise Unusable(f"this session waits for nothing of the kind: no call needs {_FOR[whom]}{told}")
    if reply_id not in (None, reply.reply_id):
        raise Unusable(f"reply_id: {reply_id!r} is not the reply being made; that is {reply.reply_id!r}")
    call = reply.calls.get(call_id)
    if call is None or call.waits_for != whom:
        raise Unusable(
            f"call {call_id!r} does not wait for {_FOR[whom]}{_why_closed(journal, call_id, whom)}; waiting: {waiting}"
        )
    return call


def _why_closed(journal: Journal, call_id: str, whom: Whom) -> str:
    if at := journal.calls.expired.get(call_id):
        return f" ({call_id!r} expired at {iso(at)}; {_unanswered(journal, call_id, whom) or _ENDED[whom]})"
    call = journal.reply.calls.get(call_id) if journal.reply else None
    if call is not None:
        return f" ({call_id!r} is {call.state.value}{f', decided by {call.approver}' if call.approver else ''})"
    if not journal.had_call(call_id):
        below = ", ".join(repr(child.session_id) for child in at_work(journal))
        where = f"; a call of a sub-agent is answered in its session: {below}" if below else ""
        return f" ({call_id!r} is no call here{where})"
    if (found := _result(journal, call_id)) is None:
        return f" ({call_id!r} has its result)"
    reply_id, result = found
    other = "" if journal.reply and reply_id == journal.reply.reply_id else f", in reply {reply_id!r}"
    return f" ({call_id!r} has its result: {result.state.value}{other})"


def _result(journal: Journal, call_id: str) -> tuple[str, ToolResultBlock] | None:
    """With the id of its reply."""
    for message in journal.context.transcript[: -LOOKED_BACK - 1 : -1]:
        for result in message.get_tool_results():
            if result.id == call_id:
                return message.id, result
    return None


def _unanswered(journal: Journal, call_id: str, whom: Whom) -> str:
    """Of a call whose server has asked somebody: its tool runs on a worker, so that it waits for no other result."""
    found = _result(journal, call_id) if whom == "outside" else None
    server = server_of(found[1].name) if found and found[1].state is ToolResultState.ERROR else ""
    return f"{server!r} has no answer, its call has ended with that, and the agent knows it" if server else ""


_EDITING = frozenset({"Write", "Edit", "Bash"})
"""What `accept_edits` lets run unasked."""


def refuse_alone(journal: Journal, body: object) -> None:
    """Whoever sends an operation is one person. Raises Unusable for what would let such calls run without the
    others."""
    context = journal.state.permission_context
    if not (tools := _taking_several(context)):
        return
    match body:
        case Configure():
            if body.mode is PermissionMode.BYPASS or (body.mode is PermissionMode.ACCEPT_EDITS and tools & _EDITING):
                raise Unusable(f"mode: {body.mode.value!r} can't be set here: {_sentence(min(tools))}")
            _check_added(body.rules, tools)
        case ChangeRules():
            _check_added(body.add, tools)
            kept = {id_of(rule): rule for rule in context.rules if rule.behavior is not Behavior.ALLOW}
            if gone := next((kept[one] for one in body.revoke if one in kept and kept[one].tool_name in tools), None):
                raise Unusable(f"revoke: {gone.spelt()} stays: {_sentence(gone.tool_name)}")
        case ReplaceState() if body.state.get("permission_context") != context.model_dump(mode="json"):
            raise Unusable(f"state.permission_context: it stays as it is: {_sentence(min(tools))}")
        case _:
            pass


def _taking_several(context: PermissionContext) -> frozenset[str]:
    return frozenset(name for name in context.tools if context.approvers(name) > 1)


def _check_added(rules: tuple[PermissionRule, ...], tools: frozenset[str]) -> None:
    for rule in rules:
        if rule.behavior is Behavior.ALLOW and rule.tool_name in tools:
            raise Unusable(f"rules: {rule.spelt()} can't be allowed in advance: {_sentence(rule.tool_name)}")


def _sentence(tool: str) -> str:
    return f"calls of {tool!r} take more than one approval each, so that nobody lets them run alone; see the agent file"


MOST_UNVERIFIED = 20
"""That wait to be checked: each costs an activity, also those that somebody makes up."""


def must_sign(journal: Journal) -> bool:
    return journal.state.permission_context.approvals == "signed"


def decide(journal: Journal, body: Confirm) -> Received:
    """Decisions that count at once, or signed ones that are put down to be checked. All is checked that can be here."""
    signed = [one for one in body.decisions if one.signature is not None]
    if not signed and not must_sign(journal):
        return confirm(journal, body.reply_id, body.decisions, body.approver)
    for one in body.decisions:
        if one.signature is None:
            raise Unusable(
                f"decisions: the one on {one.call_id!r} has no signature, and only signed ones are taken here; decide "
                "with LONGHAUL_APPROVAL_KEY set"
            )
        if one.digest is None or body.reply_id is None:
            raise Unusable(
                f"decisions: a signed one names reply_id and digest, and the one on {one.call_id!r} does not"
            )
    confirm(journal, body.reply_id, body.decisions, body.approver)
    if len(journal.unverified.waiting) >= MOST_UNVERIFIED:
        raise Unusable(f"{MOST_UNVERIFIED} signed decisions wait to be checked; send this one again in a moment")
    offered = e.DecisionsReceived(body=body.model_dump(mode="json"))
    return Received((offered,), {"checking": [one.call_id for one in body.decisions], "decisions_at": journal.seq + 1})


def conclude_verification(journal: Journal, number: int, why: str, key: str) -> tuple[e.AnyEntry, ...]:
    """What is recorded of decisions that were checked: meanwhile others may have decided, or the world changed."""
    waiting = journal.unverified.waiting.get(number)
    if waiting is None:
        return ()
    if not why:
        try:
            body = Confirm.model_validate(waiting.body)
            received = confirm(journal, body.reply_id, body.decisions, body.approver, key)
        except Unusable as refusal:
            why = str(refusal)
        else:
            return (e.DecisionsVerified(decisions_at=number), *received.entries)
    refused = e.OperationRefused(name="confirm", reason=why, count=journal.refused.count + 1)
    return (e.DecisionsVerified(decisions_at=number, why=why), refused)


def refuse_unsigned(journal: Journal, body: object) -> None:
    """Where decisions must be signed, nothing that comes without a signature may loosen what needs one."""
    if not must_sign(journal):
        return
    match body:
        case UserConfirmResultEvent():
            raise Unusable("confirm_results: only signed decisions are taken here, and this event has no signature")
        case Configure() if _may_loosen(body):
            raise Unusable(
                "configure: mode, allow rules, confirm, analyzers and middlewares stay as they are where "
                "decisions must be signed"
            )
        case ChangeRules() if body.revoke or any(rule.behavior is Behavior.ALLOW for rule in body.add):
            raise Unusable("rules: where decisions must be signed, deny and ask rules can be added, and none revoked")
        case ReplaceState() if kept := _loosened(journal, body.state):
            raise Unusable(f"state.{kept}: it stays as it is where decisions must be signed")
        case _:
            pass


def _may_loosen(body: Configure) -> bool:
    allows = any(rule.behavior is Behavior.ALLOW for rule in body.rules)
    # A middleware may be there to stop calls.
    given = (body.mode, body.confirm, body.analyzers, body.middlewares)
    return allows or any(value is not None for value in given)


_KEPT = ("permission_context", "plan_mode_context", "tainted")
"""Of a state, what decides what runs unasked."""


def _loosened(journal: Journal, state: dict[str, Any]) -> str:
    """The first of these parts that would not be as it is now, read as the operation will be: rules that others spell
    otherwise are rules too. A state that can't be read is refused as that."""
    try:
        given = AgentState.model_validate(understood(state))
    except (ImportProblem, ValidationError):
        return ""
    return next((name for name in _KEPT if getattr(given, name) != getattr(journal.state, name)), "")


_VERSION = "longhaul decision 1"
LEAST_SECRET = 16
_KEY = re.compile(r"[A-Za-z0-9_.@-]{1,100}")
_SIGNATURE = re.compile(r"(?P<key>[A-Za-z0-9_.@-]{1,100}):(?P<at>[0-9]{1,15}):(?P<mac>[A-Za-z0-9_-]{43})")


class BadKey(BadSetup, ValueError):
    """A setting of keys can't be used; the sentence never holds a secret."""


class Key(NamedTuple):
    id: str
    secret: bytes


def keys_of(setting: str) -> tuple[Key, ...]:
    """The keys of `id:secret,id:secret`; the first one signs, all of them are accepted. Raises BadKey."""
    keys: list[Key] = []
    for number, part in enumerate(filter(None, (part.strip() for part in setting.split(","))), start=1):
        key_id, colon, secret = part.partition(":")
        if not colon or not _KEY.fullmatch(key_id):
            raise BadKey(f"key {number} is not written as id:secret, with an id of letters, digits and . _ @ -")
        if len(secret.encode("utf-8", "surrogateescape")) < LEAST_SECRET:
            raise BadKey(f"the secret of key {key_id!r} is too short; take at least {LEAST_SECRET} random characters")
        keys.append(Key(key_id, secret.encode("utf-8", "surrogateescape")))
    if len({key.id for key in keys}) != len(keys):
        raise BadKey("two keys have the same id; give each its own")
    return tuple(keys)


def signed(body: Confirm, key: Key, workflow_id: str, at_ms: int) -> Confirm:
    """The same decisions, each with a signature of its own."""
    decisions = tuple(
        one.model_copy(update={"signature": f"{key.id}:{at_ms}:{_mac(key, _covered(body, one, workflow_id, at_ms))}"})
        for one in body.decisions
    )
    return body.model_copy(update={"decisions": decisions})


def why_not(body: Confirm, keys: tuple[Key, ...], workflow_id: str) -> tuple[str, str]:
    """Why these signatures do not hold, as a sentence without its full stop (empty: they do), and the key's id."""
    known = {key.id: key for key in keys}
    used: set[str] = set()
    for one in body.decisions:
        found = _SIGNATURE.fullmatch(one.signature or "")
        if found is None:
            return f"the signature on {one.call_id!r} is not one of ours (key:milliseconds:code)", ""
        key = known.get(found["key"])
        if key is None:
            return f"the decision on {one.call_id!r} is signed with key {found['key']!r}, which this worker has not", ""
        if not hmac.compare_digest(_mac(key, _covered(body, one, workflow_id, int(found["at"]))), found["mac"]):
            return (
                f"the signature on {one.call_id!r} is not of this decision, in this session, on this question",
                "",
            )
        used.add(key.id)
    if len(used) > 1:
        return "these decisions are signed with different keys; send each person's by themselves", ""
    return "", next(iter(used), "")


def _covered(body: Confirm, one: CallDecision, workflow_id: str, at_ms: int) -> bytes:
    """All that is decided, where, by whom and when. The digest names the arguments, and the question itself."""
    decision = one.model_dump(mode="json", exclude={"signature"}, exclude_defaults=True)
    return canonical_json([_VERSION, workflow_id, body.reply_id, body.approver, at_ms, decision])


def _mac(key: Key, covered: bytes) -> str:
    code = hmac.new(key.secret, covered, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(code).decode("ascii").rstrip("=")
