"""An interrupt is heard of by whichever worker runs the call, long before that one's next heartbeat."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from longhaul.starter.client.session import Session
from tests.e2e.processes import worker
from tests.limits import usual
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, until

pytestmark = [pytest.mark.server, pytest.mark.alone]

SESSIONS = 12
HEARTBEAT_SECONDS = 15.0
"""Between the beats of a `once` call."""


@pytest.fixture(params=["directory", "redis"])
async def two_workers(unserved: Stage, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """Two processes, each of which takes some of the sessions and some of their calls."""
    redis = str(request.getfixturevalue("redis_url")) if request.param == "redis" else ""
    unserved.settings = unserved.settings.model_copy(update={"redis_url": redis})
    settings = replace(unserved.worker_settings, redis_url=redis)
    async with worker(settings), worker(settings):
        yield unserved


@pytest.mark.redis
async def test_an_interrupt_reaches_calls_on_both_workers(two_workers: Stage) -> None:
    stage = two_workers
    free: dict[str, Any] = {"permission": {"mode": "bypass"}, "tools": ("dawdle",)}
    marks = [stage.folder / f"marks-{number}" for number in range(SESSIONS)]
    sessions = [stage.session(calls("dawdle", path=str(mark)), {"text": "Done."}, **free) for mark in marks]
    replies = [await session.submit("Go") for session in sessions]
    await until(all_there(marks))

    async def stopped(session: Session, reply_id: str) -> float:
        began = time.monotonic()
        await session.interrupt()
        await session.wait(reply_id)
        return time.monotonic() - began

    took = [await stopped(session, reply) for session, reply in zip(sessions, replies, strict=True)]

    assert sorted(took)[SESSIONS // 2] < usual(HEARTBEAT_SECONDS / 15), took
    assert max(took) < usual(HEARTBEAT_SECONDS / 6), took


def all_there(marks: list[Any]) -> Callable[[], Awaitable[bool]]:
    async def there() -> bool:
        await asyncio.sleep(0.05)
        return all(mark.exists() for mark in marks)

    return there
