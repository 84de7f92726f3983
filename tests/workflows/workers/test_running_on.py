"""A plain function in a thread can't be ended, nor an async one that swallows its cancellation: interrupted, out of
time or left by its worker, it may run on. That is what its result says; and what it may have changed is of unknown
outcome until somebody knows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from longhaul.starter.client.session import Session
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"mode": "bypass"}
UNKNOWN, INTERRUPTED = ToolResultState.UNKNOWN, ToolResultState.INTERRUPTED


@pytest.fixture
async def workerless(unserved: Stage) -> Stage:
    """With other tools, and without a worker yet."""
    changes = {"tools": "tests.workflows.ending_tools", "graceful_shutdown_timeout": 0.2}
    return replace(unserved, settings=unserved.settings.model_copy(update=changes))


@pytest.fixture
async def late(workerless: Stage) -> AsyncIterator[Stage]:
    async with workerless.another_worker():
        yield workerless


def session_of(stage: Stage, tool: str, **arguments: Any) -> Session:
    return stage.session(calls(tool, **arguments), {"text": "I see."}, tools=(tool,), permission=FREE)


async def is_there(path: Path) -> None:
    async def there() -> bool:
        return path in path.parent.iterdir()

    await until(there)


async def started(path: Path) -> None:
    await is_there(path.with_name(f"{path.name}.started"))


async def let_end(path: Path) -> None:
    path.with_name(f"{path.name}.go").touch()
    await is_there(path)


async def at_rest(session: Session) -> None:
    async def idle() -> bool:
        return (await session.status()).status == "idle"

    await until(idle)


@pytest.mark.proves("E7")
@pytest.mark.parametrize(
    ("tool", "state", "unknown_outcomes"),
    [
        *(("write_late", UNKNOWN, 1), ("put_late", UNKNOWN, 1), ("look_late", INTERRUPTED, 0)),
        *(("write_deaf", UNKNOWN, 1), ("put_deaf", UNKNOWN, 1), ("look_deaf", INTERRUPTED, 0)),
        ("look_at_disk", INTERRUPTED, 0),
    ],
)
async def test_an_interrupted_call_that_runs_on_is_never_called_stopped(
    late: Stage, tool: str, state: ToolResultState, unknown_outcomes: int
) -> None:
    path = late.folder / "late"
    session = session_of(late, tool, path=str(path), seconds=SURE_SECONDS)
    reply = await session.submit("Write")
    await started(path)

    await session.interrupt("What have you done?")
    interrupted = await session.wait(reply)
    await at_rest(session)
    by_then, status = path.exists(), await session.status()

    ((ended, text),) = results(interrupted)
    assert (interrupted.finished_reason, by_then) == (FinishedReason.INTERRUPTED, False)
    assert (ended, status.unknown_outcomes) == (state, unknown_outcomes)
    assert "the reply was interrupted" in text
    assert "t may still run" in text
    assert "stopped" not in text
    assert ("It only reads." in text) is (unknown_outcomes == 0)

    await let_end(path)
    if unknown_outcomes:
        await session.resolve("call_0_0", happened=True, by="bo")
        assert (await session.status()).unknown_outcomes == 0


async def test_a_thread_that_ends_within_the_grace_has_its_own_result(late: Stage) -> None:
    path = late.folder / "late"
    session = session_of(late, "write_late", path=str(path), seconds=0.7)
    reply = await session.submit("Write")
    await started(path)

    await session.interrupt()
    interrupted = await session.wait(reply)

    assert results(interrupted) == [(ToolResultState.SUCCESS, "written")]
    assert path.exists()


async def test_a_thread_that_an_async_tool_has_started_is_never_called_stopped(workerless: Stage) -> None:
    path = workerless.folder / "late"
    session = session_of(workerless, "write_aside", path=str(path), seconds=SURE_SECONDS)
    async with workerless.worker_process():
        reply = await session.submit("Write")
        await started(path)
        await session.interrupt()
        interrupted = await session.wait(reply)
        by_then, status = path.exists(), await session.status()

    ((ended, text),) = results(interrupted)
    assert (ended, status.unknown_outcomes, by_then) == (UNKNOWN, 1, False)
    assert "It may still run" in text
    assert "stopped" not in text


async def test_an_interrupted_generator_stops_where_it_yields(late: Stage) -> None:
    path = late.folder / "lines"
    session = session_of(late, "write_lines", path=str(path))
    reply = await session.submit("Write")

    async def some() -> bool:
        return path.exists()

    await until(some)
    await session.interrupt()
    interrupted = await session.wait(reply)
    lines = path.read_text()
    await asyncio.sleep(0.3)

    ((ended, text),) = results(interrupted)
    assert (ended, (await session.status()).unknown_outcomes) == (INTERRUPTED, 0)
    assert "was stopped" in text
    assert path.read_text() == lines


@pytest.mark.parametrize(
    ("tool", "state", "unknown_outcomes"),
    [
        ("write_briefly", UNKNOWN, 1),
        ("put_briefly", UNKNOWN, 1),
        ("look_briefly", ToolResultState.ERROR, 0),
        *(("write_past", UNKNOWN, 1), ("put_past", UNKNOWN, 1), ("look_past", ToolResultState.ERROR, 0)),
    ],
)
async def test_a_call_that_outlives_its_time_may_still_be_at_it(
    late: Stage, tool: str, state: ToolResultState, unknown_outcomes: int
) -> None:
    path = late.folder / "late"
    session = session_of(late, tool, path=str(path), seconds=SURE_SECONDS)

    done = await session.reply("Write")
    by_then = path.exists()
    await let_end(path)

    ((ended, text),) = results(done)
    assert (ended, (await session.status()).unknown_outcomes, by_then) == (state, unknown_outcomes, False)
    assert "or still be at it" in text
    assert "stopped" not in text


async def test_a_thread_that_its_worker_leaves_behind_is_never_called_stopped(workerless: Stage) -> None:
    path = workerless.folder / "late"
    session = session_of(workerless, "write_late", path=str(path), seconds=SURE_SECONDS)
    async with AsyncExitStack() as first:
        await first.enter_async_context(workerless.another_worker())
        reply = await session.submit("Write")
        await started(path)
    async with workerless.another_worker():
        done = await session.wait(reply)
        by_then, status = path.exists(), await session.status()
    await let_end(path)

    ((ended, text),) = results(done)
    assert (ended, status.unknown_outcomes, by_then) == (UNKNOWN, 1, False)
    assert "its worker was shut down. It may still run" in text
    assert "stopped" not in text


@pytest.mark.parametrize("tool", ["put_deaf", "look_deaf"])
async def test_a_deaf_call_that_its_worker_leaves_behind_is_made_by_another(workerless: Stage, tool: str) -> None:
    path = workerless.folder / "late"
    session = session_of(workerless, tool, path=str(path), seconds=SURE_SECONDS)
    async with AsyncExitStack() as first:
        await first.enter_async_context(workerless.another_worker())
        reply = await session.submit("Write")
        await started(path)
    by_then = path.exists()
    await let_end(path)
    async with workerless.another_worker():
        done = await session.wait(reply)

    assert not by_then, "the first one still runs"
    assert results(done) == [(ToolResultState.SUCCESS, "written")]
    assert path.with_name("late.started").read_text() == "started\nstarted\n"
