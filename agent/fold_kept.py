"""What entries about a session's own life do to the ledger: kept outside, restored, held, put right from outside."""

from typing import assert_never

from agent import entries as e
from agent import fold_notices as notices
from agent.ledger import SUPERVISED, Ledger
from agent.ledger_values import NOWHERE, UNHEARD, CheckpointTry
from agent.messages import ErrorInfo, FinishedReason, ToolCallState, ToolResultBlock, ToolResultState
from agent.results import cancelled_before_start, outcome_unknown
from agent.sizes import text_tokens
from agent.state import AgentState, OpenCall, ReplyContext, effect_of
from agent.tools import Effect

PASSING = (e.Checkpointed, e.CheckpointFailed, e.TimeReached, e.Refused)
"""Entries that change nothing that is worth another checkpoint."""

_GOES_ON = (e.ModelSaid, e.ModelFailed, e.ContextCompressed, e.CallUnsettled, e.ReplyFinished)
"""And a result, unless it is what the leaving worker itself says of a call that it can't answer for."""

CUT_OFF = "the session was ended from outside while it ran"


KeptEntry = (
    e.Restored
    | e.RestoreFailed
    | e.Resumed
    | e.Checkpointed
    | e.CheckpointFailed
    | e.StateReplaced
    | e.TimeReached
    | e.WorkerLeft
)


def apply(ledger: Ledger, entry: KeptEntry) -> None:
    match entry:
        case e.Restored():
            _restored(ledger, entry)
        case e.RestoreFailed():
            ledger.hold = entry.error.message
        case e.Resumed():
            ledger.hold = ""
        case e.Checkpointed():
            _checkpointed(ledger, entry)
        case e.CheckpointFailed():
            notices.checkpoint_failed(ledger, entry)
            ledger.checkpoint_failed = CheckpointTry(ledger.changed, entry.events, entry.error)
        case e.StateReplaced():
            _state_replaced(ledger, entry)
        case e.TimeReached():
            notices.time_reached(ledger, entry.at)
            ledger.checkpoint_failed = None  # tried again from time to time, or an idle session would never close
        case e.WorkerLeft():
            ledger.state.shutdown_interrupted = True
        case _ as never:
            assert_never(never)


def goes_on(ledger: Ledger, entry: e.AnyEntry) -> None:
    """Take back that a shutdown interrupted the session, when this entry shows that some worker has gone on with it."""
    if not ledger.state.shutdown_interrupted or ledger.state.behaviour < SUPERVISED:
        return
    told = isinstance(entry, e.ToolReturned) and entry.result.state is not ToolResultState.UNKNOWN
    if told or isinstance(entry, _GOES_ON):
        ledger.state.shutdown_interrupted = False


def _restored(ledger: Ledger, entry: e.Restored) -> None:
    ledger.restored = True
    ledger.generation, ledger.note, ledger.hold = entry.generation, entry.note, entry.hold


def _checkpointed(ledger: Ledger, entry: e.Checkpointed) -> None:
    ledger.saved, ledger.saved_messages, ledger.saved_seam = entry.through, entry.messages, entry.seam
    ledger.segments = [*ledger.segments[: entry.keep], *entry.segments]
    ledger.checkpoint_failed = None
    notices.checkpointed(ledger, entry)
    if entry.store_error:
        error = ErrorInfo(type="store", message=entry.store_error)
        ledger.checkpoint_failed = CheckpointTry(ledger.changed, 0, error)
    else:
        ledger.mirrored, ledger.closing = entry.through, entry.closing


def _state_replaced(ledger: Ledger, entry: e.StateReplaced) -> None:
    """The whole state but the session's own name; what a provider reported of the old context holds no more."""
    own = ledger.state
    state = AgentState.model_validate(entry.state)
    state.session_id, state.user_id, state.agent = own.session_id, own.user_id, own.agent
    state.behaviour, state.reply_context, state.decisions = own.behaviour, None, own.decisions
    state.tool_context.cwd = own.tool_context.cwd
    context, state.context = state.context, []
    ledger.state, ledger.marks, ledger.anchor, ledger.heard = state, [], NOWHERE, UNHEARD
    ledger.summary_tokens = text_tokens(state.summary)
    ledger.context_tokens = ledger.summary_tokens
    ledger.epoch += 1
    ledger.compression_failed_at, ledger.compress_asked = 0, None
    ledger.append(tuple(context))
    ledger.doubts = {key: doubt.model_copy(update={"due": False}) for key, doubt in ledger.doubts.items()}
    ledger.goal = ledger.newest = (0, 0)
    users = [mark.number for message, mark in zip(context, ledger.marks, strict=True) if message.role == "user"]
    if users:
        ledger.goal, ledger.newest = (users[0], users[0] + 1), (users[-1], users[-1] + 1)
    for message in context:
        ledger.call_names.update({block.id: block.name for block in message.get_tool_calls()})


def cut_off(ledger: Ledger, reply: ReplyContext) -> e.ReplyFinished:
    """The end of a reply that was being made when its session was ended from outside, or of which the later steps
    are unknown."""
    closing = tuple(_closed(ledger, call) for call in reply.calls.values() if call.state is not ToolCallState.FINISHED)
    error = ErrorInfo(type="internal", message=f"This reply was cut off: {CUT_OFF}.")
    return e.ReplyFinished(reply_id=reply.reply_id, reason=FinishedReason.INTERRUPTED, error=error, closing=closing)


def _closed(ledger: Ledger, call: OpenCall) -> ToolResultBlock:
    """Of a call that was allowed nobody knows whether it had been started."""
    tool = ledger.tools.get(call.block.name)
    once = tool is None or effect_of(call, tool) is Effect.ONCE
    may_have_run = call.state is ToolCallState.ALLOWED or bool(ledger.hold)
    return outcome_unknown(call.block, CUT_OFF) if once and may_have_run else cancelled_before_start(call.block)
