"""What an activity's failure comes to in the record: it is never lost, and never thrown at the session."""

from temporalio.exceptions import ActivityError, ApplicationError, TimeoutType, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeout

from activities.contract import MODEL_FAILED, NOT_HERE
from agent import entries as e
from agent.ledger import SUPERVISED
from agent.messages import ErrorInfo, FinishedReason, Usage
from agent.record import Record
from agent.results import failed_to_run, outcome_unknown, stopped_under_way
from agent.state import OpenCall
from agent.steps import Finish
from agent.tools import Effect
from agent.upkeep_bodies import LEAVING

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


def is_left(record: Record, error: ActivityError) -> bool:
    """Whether the last attempt that there was ended with its worker: nothing has failed, so the step is taken again."""
    left = isinstance(error.cause, ApplicationError) and error.cause.type == LEAVING
    return left and record.state.behaviour >= SUPERVISED


def restore_failed(error: ActivityError) -> e.RestoreFailed:
    _let_cancellation_pass(error)
    info = error_info(error)
    what = info.message.rstrip(".")
    why = f"Whether this session has had an earlier life is unknown: {what}. Resume it to try again."
    return e.RestoreFailed(error=ErrorInfo(type=info.type, message=why))


def checkpoint_failed(error: ActivityError, events: int) -> e.CheckpointFailed:
    """`events`: how long the history was when the checkpoint was begun."""
    _let_cancellation_pass(error)
    return e.CheckpointFailed(error=error_info(error), events=events)


def compression_failed(error: ActivityError) -> e.CompressionFailed:
    """The context stays as it is."""
    _let_cancellation_pass(error)
    details = error.cause.details if isinstance(error.cause, ApplicationError) else ()
    usage = Usage.model_validate(details[1]) if len(details) > 1 else None
    return e.CompressionFailed(error=error_info(error), usage=usage)


def not_verified(error: ActivityError) -> str:
    """Signed decisions that nobody could check do not count."""
    _let_cancellation_pass(error)
    return f"it could not be checked: {error_info(error).message}"


def not_examined(calls: list[OpenCall], error: ActivityError) -> e.CallsExamined:
    """Findings that say that nothing could be found: the calls do not run, and the model reads why."""
    _let_cancellation_pass(error)
    why = f"what it would touch could not be found out: {error_info(error).message}"
    return e.CallsExamined(
        facts={call.block.id: call.facts.model_copy(update={"arguments_error": why}) for call in calls}
    )


def call_failed(call: OpenCall, effect: Effect, error: ActivityError) -> e.ToolReturned:
    """A call whose activity gave no outcome. Of a `once` call nobody knows whether it ran, and that is said."""
    _let_cancellation_pass(error)
    why = _why(error)
    never_ran = isinstance(error.cause, ApplicationError) and error.cause.type == NOT_HERE
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


def not_probed(call_id: str, why: str) -> e.DoubtProbed:
    return e.DoubtProbed(call_id=call_id, finding="unknown", detail=why)


def probe_failed(call_id: str, error: ActivityError) -> e.DoubtProbed:
    _let_cancellation_pass(error)
    return not_probed(call_id, f"it could not be looked: {error_info(error).message}")


def interrupt_not_handled(reply_id: str, error: ActivityError) -> e.InterruptHandled:
    """The reply ends all the same, with the words of the agent's settings, if there are any."""
    _let_cancellation_pass(error)
    return e.InterruptHandled(reply_id=reply_id, error=error_info(error).message[:NOT_TAKEN_CHARS])


def call_interrupted(call: OpenCall) -> e.ToolReturned:
    """A call that was under way when its reply was interrupted."""
    return e.ToolReturned(result=stopped_under_way(call.block))


def error_info(error: ActivityError) -> ErrorInfo:
    """What a person reads about a failed activity."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        if cause.type == MODEL_FAILED and cause.details:
            return ErrorInfo.model_validate(cause.details[0])
        return ErrorInfo(type=cause.type or "upstream", message=cause.message)
    return ErrorInfo(type="internal", message=_why(error))


def _why(error: ActivityError) -> str:
    cause = error.cause
    if isinstance(cause, TemporalTimeout):
        if cause.type is TimeoutType.HEARTBEAT:
            return "the worker that ran it was lost"
        return "it ran out of time"
    if isinstance(cause, ApplicationError):
        return cause.message
    return f"it failed ({type(cause).__name__})"


def _let_cancellation_pass(error: ActivityError) -> None:
    """A cancelled session must end as cancelled; swallowing this would make it go on for ever."""
    if is_cancelled_exception(error):
        raise error
