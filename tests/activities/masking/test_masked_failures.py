"""An activity that fails says why without the secrets that are in its words, and is tried again as it was meant to."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from longhaul.activities.masker import Masker
from longhaul.activities.worker_output import MaskedFailures

KEY = "gate-9c41f2-open/sesame+7"
MASKER = Masker({"GATE_KEY": KEY})


class Failing(ActivityInboundInterceptor):
    def __init__(self, fail: Callable[[], Any]) -> None:
        self._fail = fail

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        return self._fail()


async def outcome(fail: Callable[[], Any]) -> BaseException:
    """What the server would be told."""
    interceptor = MaskedFailures(MASKER).intercept_activity(Failing(fail))
    with pytest.raises(BaseException) as told:  # noqa: PT011  each test says which one
        await interceptor.execute_activity(cast(ExecuteActivityInput, None))
    return told.value


def raising(error: BaseException, cause: BaseException | None = None) -> Callable[[], Any]:
    def fail() -> Any:
        raise error from cause

    return fail


async def test_a_failure_keeps_its_type_and_loses_the_secret() -> None:
    told = await outcome(raising(ValueError(f"the gate took no {KEY}")))

    assert isinstance(told, ApplicationError)
    assert (told.message, told.type) == ("the gate took no [secret GATE_KEY]", "ValueError")


async def test_how_it_is_tried_again_stays_as_it_was() -> None:
    later = timedelta(seconds=7)
    told = await outcome(
        raising(ApplicationError(f"no {KEY}", KEY, type="Shut", non_retryable=True, next_retry_delay=later))
    )

    assert isinstance(told, ApplicationError)
    assert (told.type, told.non_retryable, told.next_retry_delay) == ("Shut", True, later)
    assert (told.message, told.details) == ("no [secret GATE_KEY]", ())


async def test_a_cause_that_names_it_is_not_told() -> None:
    told = await outcome(raising(RuntimeError("it failed"), OSError(f"connect to https://x:{KEY}@y")))

    assert not MASKER.found(f"{told} {told.__cause__}")
    assert told.__cause__ is None
    assert told.__suppress_context__


@pytest.mark.parametrize("details", [(KEY,), (7, {"sent": [KEY]})])
@pytest.mark.parametrize("inner", [False, True])
async def test_details_that_name_it_are_not_told(details: tuple[Any, ...], inner: bool) -> None:
    error = ApplicationError("the gate is shut", *details, type="Shut")
    told = await outcome(raising(RuntimeError("it failed"), error) if inner else raising(error))

    assert isinstance(told, ApplicationError)
    assert (told.details, told.__cause__) == ((), None)


async def test_details_without_a_secret_stay() -> None:
    error = ApplicationError("the gate is shut", {"lost": 2}, type="Shut")

    assert await outcome(raising(error)) is error


@pytest.mark.parametrize("error", [KeyError("nothing secret"), CancelledError(KEY), asyncio.CancelledError()])
async def test_other_failures_pass_as_they_are(error: BaseException) -> None:
    assert await outcome(raising(error)) is error
