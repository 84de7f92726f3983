"""Turns a failed model call into the error that leaves the activity: to be tried again, after a pause or at once, or
for good."""

from datetime import timedelta

from temporalio.exceptions import ApplicationError

from longhaul.activities.contract import MODEL_FAILED
from longhaul.activities.models.failures.verdicts import judge
from longhaul.agent.values.conversation.messages import ErrorInfo, Usage

BY_HAND = (
    "Nothing could be left out that would have helped: `longhaul repair SESSION` takes all attachments and all "
    "thinking out of the context."
)


def as_verdict(error: Exception) -> ApplicationError:
    """What the verdict table makes of any exception that a model call can end in."""
    verdict = judge(error)
    if verdict.kind in ("retry", "retry_after"):
        delay = timedelta(seconds=verdict.delay_seconds) if verdict.delay_seconds else None
        return ApplicationError(verdict.sentence, type=verdict.error_type, next_retry_delay=delay)
    hint = f" {BY_HAND}" if verdict.kind == "repair" else ""
    return failed_for_good(verdict.error_type, f"{verdict.sentence}{hint}")


def failed_for_good(error_type: str, sentence: str, usage: Usage | None = None) -> ApplicationError:
    """Details are [ErrorInfo], and the tokens that were paid for nevertheless when there were any."""
    info = ErrorInfo(type=error_type, message=sentence)
    details = (info,) if usage is None else (info, usage)
    return ApplicationError(sentence, *details, type=MODEL_FAILED, non_retryable=True)
