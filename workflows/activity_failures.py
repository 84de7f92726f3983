"""Turns an activity's failure into entries: it is never lost, and never thrown at the session."""

from temporalio.exceptions import ActivityError, ApplicationError, ServerError, TimeoutType, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeout

from longhaul.activities.contract import LOST_ATTEMPTS, MODEL_FAILED, NOT_HERE, OUT_OF_BUDGET, WORKER_LOST
from longhaul.agent import entries as e
from longhaul.agent.operations.bodies import LEAVING
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.synthetic_results import failed_to_run, outcome_unknown, stopped_under_way
from longhaul.agent.steps import Finish
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, Usage
from longhaul.agent.values.conversation.tools import Effect

NOT_TAKEN_CHARS = 3_000


def finished(step: Finish) -> e.ReplyFinished:
    return e.ReplyFinished(
        reply_id=step.reply_id, reason=step.reason, error=step.error, closing=step.closing, said=step.said
    )


def reply_failed(reply_id: str, error: ActivityError) -> e.ReplyFinished:
    """A reply that could not even begin."""
    _let_cancellation_pass(error)
    return e.ReplyFinished(reply_id=reply_id, reason=FinishedReason.ERROR, error=error_info(error))


def model_failed(model: str, error: ActivityError) -> e.ModelFailed:
    _let_cancellation_pass(error)
    return e.ModelFailed(model=model, error=error_info(error))


def is_left(error: ActivityError) -> bool:
    """Whether the last attempt that there was ended with its worker: nothing has failed, so the step is taken again."""
    cause = _cause(error)
    return isinstance(cause, ApplicationError) and cause.type == LEAVING


def is_out_of_budget(error: ActivityError) -> bool:
    """Whether no attempt was made any more, because those that were lost may have been billed."""
    cause = _cause(error)
    return isinstance(cause, ApplicationError) and cause.type == OUT_OF_BUDGET


def lost_attempts(error: ActivityError, most: int) -> int:
    """How many attempts of a call that gave no answer may have been billed. `most`: where nobody could say it."""
    cause = _cause(error)
    details = cause.details if isinstance(cause, ApplicationError) else ()
    told = details[-1].get(LOST_ATTEMPTS) if details and isinstance(details[-1], dict) else None
    return told if isinstance(told, int) else most


def restore_failed(error: ActivityError) -> e.RestoreFailed:
    _let_cancellation_pass(error)
    info = error_info(error)
    what = info.message.rstrip(".")
    why = f"Whether this session has had an earlier incarnation is unknown: {what}. Resume it to try again."
    return e.RestoreFailed(error=ErrorInfo(type=info.type, message=why))


def checkpoint_failed(error: ActivityError, events: int) -> e.CheckpointFailed:
    """`events`: how long the history was when the checkpoint was started."""
    _let_cancellation_pass(error)
    return e.CheckpointFailed(error=error_info(error), events=events)


def compression_failed(error: ActivityError, lost: int = 0) -> e.NotCompressed:
    """The context stays as it is. `lost`: attempts that may have been billed."""
    _let_cancellation_pass(error)
    cause = _cause(error)
    details = cause.details if isinstance(cause, ApplicationError) else ()
    paid = len(details) > 1 and LOST_ATTEMPTS not in details[1]
    usage = Usage.model_validate(details[1]) if paid else None
    return e.NotCompressed(error=error_info(error), usage=usage, lost_attempts=lost)


def not_verified(error: ActivityError) -> str:
    """Signed decisions that nobody could check do not count."""
    _let_cancellation_pass(error)
    return f"it could not be checked: {error_info(error).message}"


def not_examined(calls: list[OpenCall], error: ActivityError) -> e.CallsExamined:
    """Findings that say that nothing could be found: the calls do not run, and the model reads why."""
    _let_cancellation_pass(error)
    why = f"what it would touch could not be found out: {error_info(error).message}"
    return e.CallsExamined(
        analysis={call.block.id: call.analysis.model_copy(update={"arguments_error": why}) for call in calls}
    )


def call_failed(call: OpenCall, effect: Effect, error: ActivityError) -> e.ToolReturned:
    """A call whose activity gave no outcome. Of a `once` call nobody knows whether it ran, and that is said."""
    _let_cancellation_pass(error)
    why = _why(error)
    cause = _cause(error)
    never_ran = isinstance(cause, ApplicationError) and cause.type == NOT_HERE
    unknown = effect is Effect.ONCE and not never_ran
    result = outcome_unknown(call.block, why) if unknown else failed_to_run(call.block, why)
    return e.ToolReturned(result=result)


def not_taken_in(call: OpenCall, error: ActivityError) -> e.ToolReturned:
    """A result from outside that no worker could shorten: the model gets its beginning."""
    _let_cancellation_pass(error)
    received = call.received
    text = received.get_text() if received is not None else ""
    shown = f"{text[:NOT_TAKEN_CHARS]}\n[The rest of the {len(text)} characters is left out: {_why(error)}.]"
    result = (
        failed_to_run(call.block, _why(error)) if received is None else received.model_copy(update={"output": shown})
    )
    return e.ToolReturned(result=result, outside=True)


def not_probed(call_id: str, why: str) -> e.OutcomeProbed:
    return e.OutcomeProbed(call_id=call_id, finding="unknown", detail=why)


def probe_failed(call_id: str, error: ActivityError) -> e.OutcomeProbed:
    _let_cancellation_pass(error)
    return not_probed(call_id, f"it could not be looked: {error_info(error).message}")


def interrupt_not_handled(reply_id: str, error: ActivityError) -> e.InterruptHandled:
    """The reply ends all the same, with the words of the agent's settings, if there are any."""
    _let_cancellation_pass(error)
    return e.InterruptHandled(reply_id=reply_id, error=error_info(error).message[:NOT_TAKEN_CHARS])


def memory_not_recorded(reply_id: str, error: ActivityError) -> e.MemoryRecorded:
    """The reply ends all the same."""
    _let_cancellation_pass(error)
    return e.MemoryRecorded(reply_id=reply_id, error=error_info(error).message[:NOT_TAKEN_CHARS])


def call_interrupted(call: OpenCall) -> e.ToolReturned:
    """A call that was under way when its reply was interrupted."""
    return e.ToolReturned(result=stopped_under_way(call.block))


def error_info(error: ActivityError) -> ErrorInfo:
    """What a person reads about a failed activity."""
    cause = _cause(error)
    if isinstance(cause, ApplicationError):
        if cause.type == MODEL_FAILED and cause.details:
            return ErrorInfo.model_validate(cause.details[0])
        kind = "internal" if cause.type == WORKER_LOST else cause.type or "upstream"
        return ErrorInfo(type=kind, message=cause.message)
    return ErrorInfo(type="internal", message=_why(error))


def _cause(error: ActivityError) -> BaseException | None:
    """What the last attempt ended in. The server puts words of its own around a failure of more than 4 kB."""
    cause = error.cause
    return cause.__cause__ if isinstance(cause, ServerError) and cause.__cause__ is not None else cause


def _why(error: ActivityError) -> str:
    cause = _cause(error)
    if isinstance(cause, TemporalTimeout):
        if cause.type is TimeoutType.HEARTBEAT:
            return "the worker that ran it was lost"
        if cause.type is TimeoutType.SCHEDULE_TO_START:
            return "the worker that had started it was lost, and its host is unavailable"
        return "it ran out of time"
    if isinstance(cause, ApplicationError):
        return cause.message
    return f"it failed ({type(cause).__name__})"


def _let_cancellation_pass(error: ActivityError) -> None:
    """A cancelled session must end as cancelled; swallowing this would make it go on for ever."""
    if is_cancelled_exception(error):
        raise error
