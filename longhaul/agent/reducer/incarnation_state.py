"""Changes the session state by entries about a session's own incarnation: kept outside, restored, held, put right
from outside."""

from typing import assert_never

from longhaul.agent import entries as e
from longhaul.agent.reducer import notification_state
from longhaul.agent.reducer.agent_state import AgentState, OpenCall, ReplyContext, effect_of
from longhaul.agent.reducer.session_state import NOWHERE, UNHEARD, CheckpointTry, SessionState
from longhaul.agent.reducer.subagent_state import report_again, stop_subagents
from longhaul.agent.reducer.synthetic_results import cancelled_before_start, left_open, outcome_unknown
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

PASSING = (e.Checkpointed, e.CheckpointFailed, e.TimeReached, e.OperationRefused, e.WorkerLacks, e.HostBack)
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
    e.OutcomeProbed,
    e.DecisionsVerified,
    e.InterruptHandled,
    e.MemoryRecorded,
)
"""What steps of our own come to; those of tools end with their result."""

CUT_OFF = "the session was ended from outside while it ran"


def apply(session: SessionState, entry: e.IncarnationEntry) -> None:
    match entry:
        case e.Restored():
            _restored(session, entry)
        case e.RestoreFailed():
            session.incarnation.quarantine = entry.error.message
        case e.QuarantineEnded():
            session.incarnation.quarantine = ""
        case e.Checkpointed():
            _checkpointed(session, entry)
        case e.CheckpointFailed():
            notification_state.checkpoint_failed(session, entry)
            session.keeping.failed = CheckpointTry(session.keeping.changed, entry.events, entry.error)
        case e.StateReplaced():
            _state_replaced(session, entry)
        case e.TimeReached():
            notification_state.notifications_time_reached(session, entry.at)
            notification_state.sleep_time_reached(session, entry.at)
            session.keeping.failed = None  # tried again from time to time, or an idle session would never close
        case e.WorkerLeft():
            session.state.shutdown_interrupted = True
        case e.WorkerLacks() | e.HostBack():
            session.incarnation.lacking = entry if isinstance(entry, e.WorkerLacks) else None
        case _ as never:
            assert_never(never)


def goes_on(session: SessionState, entry: e.AnyEntry) -> None:
    """Take back that a shutdown interrupted the session, or that its workers lack something, when this entry shows that
    some worker has gone on with it."""
    if session.incarnation.lacking is not None and _has_ended(session.incarnation.lacking, entry):
        session.incarnation.lacking = None
    if not session.state.shutdown_interrupted:
        return
    told = isinstance(entry, e.ToolReturned) and entry.result.state is not ToolResultState.UNKNOWN
    if told or isinstance(entry, _GOES_ON):
        session.state.shutdown_interrupted = False


def _has_ended(lacking: e.WorkerLacks, entry: e.AnyEntry) -> bool:
    """Whether that step is over, however it ended."""
    match entry:
        case e.ToolReturned():
            return lacking.call_id in ("", entry.result.id)
        case e.CallUnsettled():
            return lacking.call_id in ("", entry.call_id)
        case e.ReplyFinished():
            return True
        case e.PauseStarted():
            return lacking.away is not None
        case e.Configured():
            return entry.again
        case _:
            return not lacking.call_id and isinstance(entry, _OUR_STEPS)


def _restored(session: SessionState, entry: e.Restored) -> None:
    session.incarnation.restored = True
    if entry.source != "nothing":
        report_again(session)
    session.incarnation.number, session.incarnation.quarantine = entry.incarnation, entry.quarantine
    if entry.note or entry.source != "nothing":
        session.incarnation.note = entry.note  # of a copy the note about its files came first


def _checkpointed(session: SessionState, entry: e.Checkpointed) -> None:
    if not entry.with_state:
        session.keeping.saved, session.keeping.saved_messages = entry.through, entry.messages
        session.keeping.saved_boundary = entry.boundary
    session.keeping.segments = [*session.keeping.segments[: entry.keep], *entry.segments]
    session.keeping.failed = None
    notification_state.checkpointed(session, entry)
    if entry.store_error:
        error = ErrorInfo(type="store", message=entry.store_error)
        session.keeping.failed = CheckpointTry(session.keeping.changed, 0, error)
    else:
        session.keeping.mirrored, session.keeping.closing = entry.through, entry.closing


def _state_replaced(session: SessionState, entry: e.StateReplaced) -> None:
    """The whole state but the session's own name; what a provider reported of the old context holds no more."""
    stop_subagents(session, tuple(session.children))
    own = session.state
    state = AgentState.model_validate(entry.state)
    reply = own.reply_context if entry.goes_on else None
    state.session_id, state.user_id, state.agent = own.session_id, own.user_id, own.agent
    state.behaviour, state.reply_context, state.decisions = own.behaviour, reply, own.decisions
    state.tool_context.cwd = own.tool_context.cwd
    context, state.context = state.context, []
    session.provided.take_told_prompt()
    session.state, session.context.marks, session.context.cached_prefix, session.context.heard = (
        state,
        [],
        NOWHERE,
        UNHEARD,
    )
    session.context.summary_tokens = text_tokens(state.summary)
    session.context.tokens = session.context.summary_tokens
    session.context.epoch += 1
    session.compaction.failed_at, session.compaction.asked = 0, None
    if entry.before != NO_CALLS_BEFORE:
        session.spent.before = entry.before
    if reply is not None:
        # What was said before stands in the transcript twice: the reply is what stands in the new context.
        session.requests.reply_start, session.rules.changed = session.messages_total, entry.seq
        _ask_about(session, reply, context)
    session.append(tuple(context))
    session.incarnation.note = entry.note or session.incarnation.note
    session.unknown_outcomes = {
        key: unknown_outcome.model_copy(update={"due": False})
        for key, unknown_outcome in session.unknown_outcomes.items()
    }
    session.calls.unmarked = {key: kept for key, kept in session.calls.unmarked.items() if key in session.open_calls}
    session.context.goal = session.context.newest = (0, 0)
    users = [
        mark.number for message, mark in zip(context, session.context.marks, strict=True) if message.role == "user"
    ]
    if users:
        session.context.goal, session.context.newest = (users[0], users[0] + 1), (users[-1], users[-1] + 1)
    for message in context:
        session.calls.names.update({block.id: block.name for block in message.get_tool_calls()})


def _ask_about(session: SessionState, reply: ReplyContext, context: list[Msg]) -> None:
    """Of calls that wait and have other arguments now, whoever was asked is asked again."""
    for block in (block for message in context for block in message.get_tool_calls()):
        call = reply.calls.get(block.id)
        if call is None or call.state is ToolCallState.FINISHED or block.input == call.block.input:
            continue
        call.block, call.input, call.state = block, block.input, ToolCallState.PENDING
        session.keep_unmarked(block.id, "")
        call.analysis_stale, call.approved, call.approvals, call.approved_analysis = True, False, (), None
        call.analyzed, call.pieces, call.changed, call.sleep, call.unchanged = False, (), "", None, None
        call.asked = None


def cut_off(session: SessionState, reply: ReplyContext) -> e.ReplyFinished:
    """The end of a reply that was being made when its session was ended from outside, or of which the later steps
    are unknown."""
    closing = tuple(_closed(session, call) for call in reply.calls.values() if call.state is not ToolCallState.FINISHED)
    error = ErrorInfo(type="internal", message=f"This reply was cut off: {CUT_OFF}.")
    return e.ReplyFinished(reply_id=reply.reply_id, reason=FinishedReason.INTERRUPTED, error=error, closing=closing)


def _closed(session: SessionState, call: OpenCall) -> ToolResultBlock:
    """Of a call that was allowed nobody knows whether it had been started."""
    if call.sleep is not None or call.block.id in session.children:
        return left_open(call, session.children)
    tool = session.provided.tools.get(call.block.name)
    once = tool is None or effect_of(call, tool) is Effect.ONCE
    may_have_run = call.state is ToolCallState.ALLOWED or bool(session.incarnation.quarantine)
    return outcome_unknown(call.block, CUT_OFF) if once and may_have_run else cancelled_before_start(call.block)
