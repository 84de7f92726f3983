"""A workspace that lies on one host: the session parks while nobody works there, says so, and goes on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.client.session import Session
from longhaul.starter.render_session import head
from tests.e2e.processes import WorkerProcess, WorkerSettings
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, recorded, results, until

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"mode": "bypass"}


def written(book: Path) -> str:
    return book.read_text()


def is_there(book: Path) -> bool:
    return book.exists()


class Den:
    """The host `den`: its one worker, a process that can be killed and started again."""

    def __init__(self, stage: Stage) -> None:
        self._settings = WorkerSettings(
            address=stage.address,
            task_queue=stage.settings.task_queue,
            directory=stage.folder / "den",
            tools=stage.settings.tools,
            further={"LONGHAUL_HOST": "den", "LONGHAUL_STORE": f"sqlite:///{stage.folder}/den.db"},
        )
        self._worker: WorkerProcess | None = None

    async def come(self) -> None:
        self._worker = await WorkerProcess.start(self._settings)

    async def leave(self) -> None:
        if self._worker is not None:
            await self._worker.kill()


@pytest.fixture
async def elsewhere(unserved: Stage) -> AsyncIterator[Stage]:
    """A worker of the queue that is not on that host."""
    stage = replace(
        unserved, settings=unserved.settings.model_copy(update={"store": f"sqlite:///{unserved.folder}/den.db"})
    )
    async with stage.another_worker():
        yield stage


@pytest.fixture
async def den(elsewhere: Stage) -> AsyncIterator[Den]:
    host = Den(elsewhere)
    try:
        yield host
    finally:
        await host.leave()


def at_den(stage: Stage) -> Workspace:
    return Workspace(root=str(stage.workspace), place="local", host="den")


async def parked(stage: Stage, session: Session) -> str:
    """Why, once the inbox says it too."""

    async def listed() -> bool:
        found = await stage.app.inbox()
        return session.id in [card.session_id for card, _ in found.parked]

    await until(listed)
    status = await session.status()
    assert status.status == "waiting"
    return status.host_unavailable


@pytest.mark.proves("E12")
async def test_a_session_parks_while_its_host_is_away_and_goes_on_when_it_is_back(elsewhere: Stage, den: Den) -> None:
    lines = [calls("fetch", page=1), calls("send", to="Ana"), {"text": "Both."}, {"text": "Back."}]
    session = elsewhere.session(*lines, workspace=at_den(elsewhere), permission=FREE)

    first = await session.submit("Begin")
    before = await parked(elsewhere, session)
    shown = head(await session.status()).plain
    await den.come()
    done = await session.wait(first)
    await den.leave()
    second = await session.submit("And now?")
    meanwhile = await parked(elsewhere, session)
    standing = await session.result(second)
    await den.come()
    again = await session.wait(second)

    assert "host 'den', which is unavailable" in before == meanwhile
    assert f"parked: {before}" in shown
    assert (standing.status, standing.lacking) == ("working", before)
    assert [state for state, _ in results(done)] == [ToolResultState.SUCCESS] * 2
    assert (done.get_text_content(), again.get_text_content()) == ("Both.", "Back.")
    kinds = [entry.kind for entry in await recorded(elsewhere, session)]
    assert (kinds.count("worker_lacks"), kinds.count("host_back")) == (2, 2)
    inbox = await elsewhere.app.inbox()
    assert session.id not in [card.session_id for card, _ in inbox.parked]


@pytest.mark.proves("E12")
@pytest.mark.parametrize("away_seconds", [0, pytest.param(60, marks=pytest.mark.chaos)])
@pytest.mark.parametrize("tool", ["dawdle", "look_long"])
async def test_what_was_under_way_when_its_host_died_is_told_or_done_again(
    elsewhere: Stage, den: Den, tool: str, away_seconds: float
) -> None:
    """A `once` call is not started again; a look is."""
    book = elsewhere.folder / "book"
    lines = [calls(tool, path=str(book)), {"text": "I see."}]
    session = elsewhere.session(*lines, workspace=at_den(elsewhere), permission=FREE, tools=(tool,))
    await den.come()
    reply = await session.submit("Begin")

    async def started() -> bool:
        return is_there(book)

    await until(started)
    await den.leave()
    await parked(elsewhere, session)
    await asyncio.sleep(away_seconds)
    book.with_suffix(".enough").touch()
    await den.come()
    done = await session.wait(reply)

    once = tool == "dawdle"
    assert [state for state, _ in results(done)] == [ToolResultState.UNKNOWN if once else ToolResultState.SUCCESS]
    assert (done.get_text_content(), written(book)) == ("I see.", "started\n" * (1 if once else 2))


async def test_a_parked_reply_can_be_interrupted(elsewhere: Stage) -> None:
    session = elsewhere.session({"text": "Never."}, workspace=at_den(elsewhere))
    reply = await session.submit("Begin")
    await parked(elsewhere, session)

    await session.interrupt()
    done = await session.wait(reply)

    assert done.finished_reason is FinishedReason.INTERRUPTED
    assert (await session.status()).host_unavailable == ""
    assert not [entry for entry in await recorded(elsewhere, session) if isinstance(entry, e.HostBack)]


async def test_a_command_in_the_background_runs_where_the_files_are(elsewhere: Stage, den: Den) -> None:
    mark = elsewhere.workspace / "painted"
    paint = {"id": "bg", "name": "Bash", "input": {"command": f"echo red > {mark}", "run_in_background": True}}
    session = elsewhere.session(
        {"tool_calls": [paint]},
        {"text": "It paints."},
        {"text": "It is done."},
        workspace=at_den(elsewhere),
        permission=FREE,
        tools=("Bash",),
    )
    await den.come()

    await session.reply("Paint")

    async def over() -> bool:
        return any(entry.kind == "command_ended" for entry in await recorded(elsewhere, session))

    await until(over)
    assert mark.read_text() == "red\n"
    (ended,) = [entry for entry in await recorded(elsewhere, session) if isinstance(entry, e.CommandEnded)]
    assert ended.fate == "ended"
