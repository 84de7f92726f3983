"""How long a test may take, and how one that takes longer is ended."""

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

SURE_SECONDS = 90.0
"""How long a test waits for what surely comes: a machine may be as busy as it likes, and no promise is measured."""
LAST_RESORT_SECONDS = 30.0
"""How long a test that is ended may take to clean up, before a signal ends it."""

_LOOP_SECONDS = 0.012
"""What `_loop` takes on an idle machine of the kind for which the tests' seconds were chosen."""
_LOOPS = 10


def usual(seconds: float) -> float:
    """That many seconds of an idle machine of the usual kind, in seconds of this one as busy as it is right now.

    What a promise in seconds is compared with: a slow or crowded machine fails no test.
    """
    began = time.perf_counter()
    for _ in range(_LOOPS):
        _loop()
    return seconds * max(1.0, (time.perf_counter() - began) / _LOOPS / _LOOP_SECONDS)


def _loop() -> int:
    total = 0
    for number in range(500_000):
        total += number % 7
    return total


def pause(waited: float) -> float:
    """Seconds until a test asks again for what nobody tells it, after so many seconds of waiting: an eighth of them. At
    fifty questions a second, server and worker would do little else than to answer."""
    return min(max(waited / 8, 0.02), 0.25)


def limited(test: Callable[..., Awaitable[None]], seconds: float) -> Callable[..., Awaitable[None]]:
    """The same test, cancelled after so long, where it waits: its `finally`s run, and its fixtures find an order in
    which they can be closed. A signal would strike whatever runs at that moment, a worker of the test's too, which
    then can't be shut down any more."""

    @functools.wraps(test)
    async def run(*arguments: Any, **named: Any) -> None:
        given = asyncio.timeout(seconds)
        try:
            async with given:
                await test(*arguments, **named)
        except TimeoutError as error:
            if not given.expired():
                raise
            raise AssertionError(f"the test took longer than {seconds:g} s") from error

    return run


def limit(item: pytest.Item, standard: float) -> None:
    """Have a test that is a coroutine cancelled after its time, and the signal come later."""
    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(item.obj):
        return
    mark = item.get_closest_marker("timeout")
    seconds = float(mark.args[0]) if mark else standard
    item.obj = limited(item.obj, seconds)
    item.add_marker(pytest.mark.timeout(seconds + LAST_RESORT_SECONDS), append=False)
