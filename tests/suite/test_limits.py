"""A test that takes too long is ended where it waits, and what it has opened is closed."""

import asyncio

import pytest

from tests.limits import limited


async def test_what_takes_too_long_is_cancelled_and_may_clean_up() -> None:
    seen = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            seen.append("closed")

    with pytest.raises(AssertionError, match=r"longer than 0\.01 s"):
        await limited(endless, 0.01)()

    assert seen == ["closed"]


async def test_a_failure_in_time_stays_what_it_is() -> None:
    async def fails(number: int) -> None:
        raise ValueError(number)

    with pytest.raises(ValueError, match="7"):
        await limited(fails, 5)(7)


def test_a_coroutine_test_has_the_signal_behind_its_limit(request: pytest.FixtureRequest) -> None:
    both = [item for item in request.session.items if item.path == request.path and item.name.startswith("test_a")]

    limits = {item.name: item.get_closest_marker("timeout") for item in both}

    assert limits["test_a_coroutine_test_has_the_signal_behind_its_limit"] is None
    mark = limits["test_a_failure_in_time_stays_what_it_is"]
    assert mark is not None
    assert mark.args == (270.0,)
