"""Turns a failed model call into the error that leaves the activity: to be tried again, after a pause or at once, or
for good."""

import random
from datetime import timedelta

from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from longhaul.activities.contract import MODEL_FAILED
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.agent.values.conversation.messages import ErrorInfo, Usage

SPREAD = 0.1
"""Of a pause that the provider asks for: what it has turned away together does not come back at the same moment."""
BY_HAND = (
    "Nothing could be left out that would have helped: `longhaul repair SESSION` takes all attachments and all "
    "thinking out of the context."
)


class FewTries(ApplicationError):
    """Worth another try or two, and no outage: whoever waits those out has not to wait for it."""


def as_action(error: Exception) -> ApplicationError:
    """What the verdict table makes of any exception that a model call can end in."""
    action = judge(error)
    if action.kind in ("retry", "retry_after"):
        delay = timedelta(seconds=action.delay_seconds) if action.delay_seconds else None
        return ApplicationError(action.sentence, type=action.error_type, next_retry_delay=delay)
    if action.kind == "few_tries":
        return FewTries(action.sentence, type=action.error_type)
    hint = f" {BY_HAND}" if action.kind == "repair" else ""
    return failed_for_good(action.error_type, f"{action.sentence}{hint}")


def failed_for_good(error_type: str, sentence: str, usage: Usage | None = None) -> ApplicationError:
    """Details are [ErrorInfo], and the tokens that were paid for nevertheless when there were any."""
    info = ErrorInfo(type=error_type, message=sentence)
    details = (info,) if usage is None else (info, usage)
    return ApplicationError(sentence, *details, type=MODEL_FAILED, non_retryable=True)


def pause_seconds(attempt: int, told_seconds: float, policy: RetryPolicy) -> float:
    """Before the next try: what the provider asks for, or what the policy's growing interval comes to, whichever is
    longer. A provider that always asks for 300 ms is not asked three times a second for the length of its outage. Both
    are spread, for many calls fail at once."""
    growing = policy.initial_interval.total_seconds() * policy.backoff_coefficient ** min(attempt - 1, 60)
    longest = policy.maximum_interval.total_seconds() if policy.maximum_interval else growing
    own = min(growing, longest) * random.uniform(0.5, 1.0)  # noqa: S311  no secret hangs on it
    return max(told_seconds * random.uniform(1.0, 1.0 + SPREAD), own)  # noqa: S311
