"""How a failed model call leaves an activity: to be tried again, after a pause or at once, or for good."""

from datetime import timedelta

from temporalio.exceptions import ApplicationError

from activities.contract import MODEL_FAILED
from activities.models.verdicts import judge
from agent.messages import ErrorInfo, Usage


def as_verdict(error: Exception) -> ApplicationError:
    """What the verdict table makes of any exception that a model call can end in."""
    verdict = judge(error)
    if verdict.kind in ("retry", "retry_after"):
        delay = timedelta(seconds=verdict.delay_seconds) if verdict.delay_seconds else None
        return ApplicationError(verdict.sentence, type=verdict.error_type, next_retry_delay=delay)
    return failed_for_good(verdict.error_type, verdict.sentence)


def failed_for_good(error_type: str, sentence: str, usage: Usage | None = None) -> ApplicationError:
    """Details are [ErrorInfo], and the tokens that were paid for nevertheless when there were any."""
    info = ErrorInfo(type=error_type, message=sentence)
    details = (info,) if usage is None else (info, usage)
    return ApplicationError(sentence, *details, type=MODEL_FAILED, non_retryable=True)
