"""Changes the ledger by entries about a session's own life: kept outside, restored, held, put right from outside."""

from typing import assert_never

from longhaul.agent import entries as e
from longhaul.agent.fold import notification_state
from longhaul.agent.fold.agent_state import AgentState, OpenCall, ReplyContext, effect_of
from longhaul.agent.fold.ledger import NOWHERE, UNHEARD, CheckpointTry, Ledger
from longhaul.agent.fold.subagent_state import report_anew, stop_subagents
from longhaul.agent.fold.synthetic_results import cancelled_before_start, left_open, outcome_unknown
from longhaul.agent.values.budget import NO_CALLS_BEFORE
from longhaul.agent.values.conversation.messages import (
    ErrorInfo,
    FinishedReason,
    Msg,
    ToolCallState,
    ToolResultBlock,
    ToolResultState,
    text_tokens,
)
from longhaul.agent.values.conversation.tools import Effect

PASSING = (e.Checkpointed, e.CheckpointFailed, e.TimeReached, e.LetterRefused, e.WorkerLacks, e.HostBack)
"""Entries that change nothing that is worth another checkpoint."""

_GOES_ON = (e.ModelSaid, e.ModelFailed, e.ContextCompressed, e.CallUnsettled, e.ReplyFinished)
"""And a result, unless it is what the leaving worker itself says of a call that it can't answer for."""

_OUR_STEPS = (
    e.Prepared,
    e.ModelSaid,
    e.ModelFailed,
    e.ContextCompressed,
    e.NotCompressed,
    e.CallsExamined,
    e.DoubtProbed,
    e.OfferSettled,
    e.InterruptHandled,
    e.MemoryRecorded,
)
"""What steps of our own come to; those of tools end with their result."""

CUT_OFF = "the session was ended from outside while it ran"


def apply(ledger: Ledger, entry: e.LifeEntry) -> None:
    match entry:
        case e.Restored():
            _restored(ledger, entry)
        case e.RestoreFailed():
            ledger.life.hold = entry.error.message
        case e.HoldEnded():
            ledger.life.hold = ""
        case e.Checkpointed():
            _checkpointed(ledger, entry)
        case e.CheckpointFailed():
            notification_state.checkpoint_failed(ledger, entry)
            ledger.keeping.failed = CheckpointTry(ledger.keeping.changed, entry.events, entry.error)
        case e.StateReplaced():
            _state_replaced(ledger, entry)
        case e.TimeReached():
            notification_state.notices_time_reached(ledger, entry.at)
            notification_state.sleep_time_reached(ledger, entry.at)
            ledger.keeping.failed = None  # tried again from time to time, or an idle session would never close
        case e.WorkerLeft():
            ledger.state.shutdown_interrupted = True
        case e.WorkerLacks() | e.HostBack():
            ledger.life.lacking = entry if isinstance(entry, e.WorkerLacks) else None
        case _ as never:
            assert_never(never)


def goes_on(ledger: Ledger, entry: e.AnyEntry) -> None:
    """Take back that a shutdown interrupted the session, or that its workers lack something, when this entry shows that
    some worker has gone on with it."""
    if ledger.life.lacking is not None and _has_ended(ledger.life.lacking, entry):
        ledger.life.lacking = None
    if not ledger.state.shutdown_interrupted:
        return
    told = isinstance(entry, e.ToolReturned) and entry.result.state is not ToolResultState.UNKNOWN
    if told or isinstance(entry, _GOES_ON):
        ledger.state.shutdown_interrupted = False


def _has_ended(lacking: e.WorkerLacks, entry: e.AnyEntry) -> bool:
    """Whether that step is over, however it ended."""
    match entry:
        case e.ToolReturned():
            return lacking.call_id in ("", entry.result.id)
        case e.CallUnsettled():
            return lacking.call_id in ("", entry.call_id)
        case e.ReplyFinished():
            return True
        case e.PauseBegun():
            return lacking.away is not None
        case e.Configured():
            return entry.anew
        case _:
            return not lacking.call_id and isinstance(entry, _OUR_STEPS)


def _restored(ledger: Ledger, entry: e.Restored) -> None:
    ledger.life.restored = True
    if entry.source != "nothing":
        report_anew(ledger)
    ledger.life.generation, ledger.life.hold = entry.generation, entry.hold
    if entry.note or entry.source != "nothing":
        ledger.life.note = entry.note  # of a copy the note about its files came first


def _checkpointed(ledger: Ledger, entry: e.Checkpointed) -> None:
    if not entry.with_state:
        ledger.keeping.saved, ledger.keeping.saved_messages = entry.through, entry.messages
        ledger.keeping.saved_seam = entry.seam
    ledger.keeping.segments = [*ledger.keeping.segments[: entry.keep], *entry.segments]
    ledger.keeping.failed = None
    notification_state.checkpointed(ledger, entry)
    if entry.store_error:
        error = ErrorInfo(type="store", message=entry.store_error)
        ledger.keeping.failed = CheckpointTry(ledger.keeping.changed, 0, error)
    else:
        ledger.keeping.mirrored, ledger.keeping.closing = entry.through, entry.closing


def _state_replaced(ledger: Ledger, entry: e.StateReplaced) -> None:
    """The whole state but the session's own name; what a provider reported of the old context holds no more."""
    stop_subagents(ledger, tuple(ledger.children))
    own = ledger.state
    state = AgentState.model_validate(entry.state)
    reply = own.reply_context if entry.goes_on else None
    state.session_id, state.user_id, state.agent = own.session_id, own.user_id, own.agent
    state.behaviour, state.reply_context, state.decisions = own.behaviour, reply, own.decisions
    state.tool_context.cwd = own.tool_context.cwd
    context, state.context = state.context, []
    ledger.provided.take_told_prompt()
    ledger.state, ledger.context.marks, ledger.context.anchor, ledger.context.heard = state, [], NOWHERE, UNHEARD
    ledger.context.summary_tokens = text_tokens(state.summary)
    ledger.context.tokens = ledger.context.summary_tokens
    ledger.context.epoch += 1
    ledger.compaction.failed_at, ledger.compaction.asked = 0, None
    if entry.before != NO_CALLS_BEFORE:
        ledger.spent.before = entry.before
    if reply is not None:
        # What was said before stands in the transcript twice: the reply is what stands in the new context.
        ledger.requests.reply_start, ledger.rules.changed = ledger.messages_total, entry.seq
        _ask_about(ledger, reply, context)
    ledger.append(tuple(context))
    ledger.life.note = entry.note or ledger.life.note
    ledger.doubts = {key: doubt.model_copy(update={"due": False}) for key, doubt in ledger.doubts.items()}
    ledger.calls.unmarked = {key: kept for key, kept in ledger.calls.unmarked.items() if key in ledger.open_calls}
    ledger.context.goal = ledger.context.newest = (0, 0)
    users = [mark.number for message, mark in zip(context, ledger.context.marks, strict=True) if message.role == "user"]
    if users:
        ledger.context.goal, ledger.context.newest = (users[0], users[0] + 1), (users[-1], users[-1] + 1)
    for message in context:
        ledger.calls.names.update({block.id: block.name for block in message.get_tool_calls()})


def _ask_about(ledger: Ledger, reply: ReplyContext, context: list[Msg]) -> None:
    """Of calls that wait and have other arguments now, whoever was asked is asked anew."""
    for block in (block for message in context for block in message.get_tool_calls()):
        call = reply.calls.get(block.id)
        if call is None or call.state is ToolCallState.FINISHED or block.input == call.block.input:
            continue
        call.block, call.input, call.state = block, block.input, ToolCallState.PENDING
        ledger.keep_unmarked(block.id, "")
        call.facts_stale, call.approved, call.approvals, call.approved_facts = True, False, (), None
        call.analyzed, call.pieces, call.changed, call.sleep, call.unchanged = False, (), "", None, None
        call.asked = None


def cut_off(ledger: Ledger, reply: ReplyContext) -> e.ReplyFinished:
    """The end of a reply that was being made when its session was ended from outside, or of which the later steps
    are unknown."""
    closing = tuple(_closed(ledger, call) for call in reply.calls.values() if call.state is not ToolCallState.FINISHED)
    error = ErrorInfo(type="internal", message=f"This reply was cut off: {CUT_OFF}.")
    return e.ReplyFinished(reply_id=reply.reply_id, reason=FinishedReason.INTERRUPTED, error=error, closing=closing)


def _closed(ledger: Ledger, call: OpenCall) -> ToolResultBlock:
    """Of a call that was allowed nobody knows whether it had been started."""
    if call.sleep is not None or call.block.id in ledger.children:
        return left_open(call, ledger.children)
    tool = ledger.provided.tools.get(call.block.name)
    once = tool is None or effect_of(call, tool) is Effect.ONCE
    may_have_run = call.state is ToolCallState.ALLOWED or bool(ledger.life.hold)
    return outcome_unknown(call.block, CUT_OFF) if once and may_have_run else cancelled_before_start(call.block)
