"""The bounds of a read that is fused into its session's task, as a local activity of Temporal's.

Its answer is a marker in the session's history, which is sent with the whole task and never by reference: a long one
goes its own way. So does a call around which somebody else's code may ask the session, which can't answer before its
task ends.
"""

import asyncio
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

LONGEST_ANSWER_BYTES = 50_000
"""As JSON. Those of a whole turn together stay far below what the server takes with a task."""
UNFUSED = "Unfused"
"""Error type of a read that has to go its own way. Nothing is known of it, and nothing was done."""


def unfused(why: str) -> ApplicationError:
    """No failure: nothing is logged of it, and the session starts the call again as an activity."""
    return ApplicationError(
        f"not within the task: {why}", type=UNFUSED, non_retryable=True, category=ApplicationErrorCategory.BENIGN
    )


class FusedBounds(Interceptor):
    """Next to the activity, so that whoever counts and watches takes it for an attempt that came to nothing."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Bounded(next)


class _Bounded(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        if not activity.info().is_local:
            return await super().execute_activity(input)
        try:
            outcome = await super().execute_activity(input)
        except ApplicationError as error:
            raise unfused(error.message) from None
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if details is not None and details.cancel_requested:
                raise
            raise unfused("it takes long, or its worker stops") from None
        if (size := len(outcome.model_dump_json().encode())) > LONGEST_ANSWER_BYTES:
            raise unfused(f"its answer has {size} bytes")
        return outcome
