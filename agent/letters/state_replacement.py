"""The letter that puts another state in the place of a session's own."""

from collections.abc import Sequence

from pydantic import ValidationError

from longhaul.agent.decisions.subagents import at_work
from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.agent_state import AgentState, ReplyContext
from longhaul.agent.fold.synthetic_results import left_open
from longhaul.agent.letters.bodies import ReplaceState, Unusable
from longhaul.agent.letters.doubts import blocking
from longhaul.agent.letters.letter import Received
from longhaul.agent.permission.foreign_rules import understood
from longhaul.agent.permission.rule_checks import BadRule, check_tools_of
from longhaul.agent.permission.rulebook import check_book
from longhaul.agent.plain.import_problem import ImportProblem
from longhaul.agent.plain.mistakes import what_is_wrong
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.hints import hint_message
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, ToolCallBlock, ToolCallState
from longhaul.agent.values.conversation.wellformed import problem

MOVED_ON = "moved_on"
"""Kind of refusal: the state is not what whoever sent this had read."""


def replace_state(record: Record, body: ReplaceState) -> Received:
    """Of a session that is idle, or waits for somebody: while something runs, what comes of it would hang on a context
    that is gone. Questions that stand in the new state stay open; with another state the reply that asked them ends."""
    waits = _waits(record)
    if not waits and (record.reply is not None or record.requests.queue):
        raise Unusable("the session is at work; wait for its reply, or interrupt it, and send this again")
    if body.expected_seq is not None and body.expected_seq != record.keeping.changed:
        raise Unusable(
            f"expected_seq: {body.expected_seq} is not where the session stands; that is {record.keeping.changed}. "
            "Read its state again and make the change there",
            MOVED_ON,
        )
    try:
        state = AgentState.model_validate(understood(body.state))
    except ImportProblem as error:
        raise Unusable(f"state.{error}") from error
    except ValidationError as error:
        raise Unusable(f"state.{what_is_wrong(error)}") from error
    open_calls = [call.block for call in record.open_calls.values() if call.waits_for] if waits else []
    goes_on = waits and not _not_the_same(state, open_calls)
    if not goes_on and (wrong := problem(state.context)):
        raise Unusable(f"state.context: {wrong}")
    try:
        check_book(state.permission_context.rules)
        # Of a rule that was taken before, a repair of the state may not hang.
        known = (*record.spec.all_tools, *(rule.tool_name for rule in record.state.permission_context.rules))
        check_tools_of(state.permission_context.rules, known)
    except BadRule as error:
        raise Unusable(f"state.permission_context.{error}") from error
    note, hints = _of_the_stopped(record)
    replaced = e.StateReplaced(
        state=state.model_dump(mode="json"), by=body.by, why=body.why, note=body.note or note, goes_on=goes_on
    )
    ended = () if record.reply is None or goes_on else (_ended(record, record.reply),)
    answer = {"replaced": True, "messages": len(state.context)}
    return Received(
        (*ended, replaced, *hints), {**answer, "ended": record.reply.reply_id} if ended and record.reply else answer
    )


def _of_the_stopped(record: Record) -> tuple[str, tuple[e.Observed, ...]]:
    """What becomes of sub-agents at work: for whoever looks at the session, and for its model, which waits for them. By
    rules of version 1 nobody is told: an entry more would ask for a checkpoint more where such a one is replayed."""
    stopped = ", ".join(f"{child.agent!r} (session {child.session_id!r})" for child in at_work(record))
    if not stopped or record.state.behaviour < 2:
        return "", ()
    hint = (
        "This conversation was changed by somebody, and its sub-agents in the background were told to stop for that: "
        f"{stopped}. No message of theirs comes. Find out what they have done before you give their tasks again."
    )
    note = f"sub-agents were told to stop when its state was changed: {stopped}"
    return note, (e.Observed(messages=(hint_message(hint, "sub-agent"),)),)


def _waits(record: Record) -> bool:
    """Whether nothing but somebody's answer is waited for."""
    reply = record.reply
    if reply is None or record.interrupted or record.offers.waiting:
        return False
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    return all(call.waits_for for call in unfinished) if unfinished else bool(blocking(record))


def _not_the_same(state: AgentState, waiting: Sequence[ToolCallBlock]) -> str:
    """Why the calls that wait are not the open ones of this state; empty if they are."""
    if wrong := problem(state.context, [block.id for block in waiting]):
        return wrong
    named = {block.id: block.name for message in state.context for block in message.get_tool_calls()}
    return next((f"call {block.id!r} is of another tool" for block in waiting if named[block.id] != block.name), "")


def _ended(record: Record, reply: ReplyContext) -> e.ReplyFinished:
    """The end of a reply whose questions are not in the new state."""
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    closing = tuple(left_open(call, record.children) for call in unfinished)
    error = ErrorInfo(type="internal", message="This reply was cut off: somebody has put another state in its place.")
    return e.ReplyFinished(reply_id=reply.reply_id, reason=FinishedReason.INTERRUPTED, error=error, closing=closing)
