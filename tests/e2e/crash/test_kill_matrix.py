"""Each way in which a `once` tool can end, in each form, with each fault before and behind its effect.

Nothing is done twice, and of nothing the record says what is not so.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from temporalio.service import RPCError

from longhaul.activities.run_tool import RUNS_ON
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.reading.queries import SILENCES
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.crash.crash_ends import BOOK, FORMS, POINTS
from tests.e2e.crash.crash_stage import Stage, until
from tests.e2e.processes import WorkerProcess
from tests.replay.everything import unreplayable
from tests.workflows.ending_tools import HOWS

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(600)]

CALLS_OF_A_TURN = 8
PATIENCE_SECONDS = 240.0

Answer = TypeVar("Answer")


@dataclass
class Ground:
    """Where the sessions of one trial play."""

    stage: Stage
    server: DevServer
    folder: Path
    worker: WorkerProcess
    sessions: Sequence[Session]

    async def another_worker(self) -> None:
        settings = self.stage.one_directory(tools="tests.e2e.crash.crash_ends")
        self.worker = await WorkerProcess.start(settings)

    async def interrupted(self) -> None:
        """Of each that has not ended, by itself or by the interrupt before."""
        for session in self.sessions:
            with suppress(Refused):
                await insisted(session.interrupt)

    def lines(self, what: str) -> Counter[str]:
        book = (self.folder / BOOK).read_text() if (self.folder / BOOK).exists() else ""
        return Counter(line.partition(" ")[2] for line in book.splitlines() if line.startswith(f"{what} "))


async def nothing(_ground: Ground) -> None:
    """Only the ends."""


async def killed(ground: Ground) -> None:
    await ground.worker.kill()
    await ground.another_worker()


async def interrupted(ground: Ground) -> None:
    await ground.interrupted()


async def interrupted_and_killed(ground: Ground) -> None:
    await ground.interrupted()
    await killed(ground)


async def killed_and_interrupted(ground: Ground) -> None:
    await ground.worker.kill()
    for session in ground.sessions:
        handle = ground.stage.app.client.get_workflow_handle(session.workflow_id)
        await handle.signal("interrupt", {})  # an update would wait for a worker
    await ground.another_worker()


async def interrupted_twice(ground: Ground) -> None:
    await ground.interrupted()
    await asyncio.sleep(0.3)
    await ground.interrupted()


async def stopped(ground: Ground) -> None:
    ground.worker.ask_to_stop()
    await ground.worker.wait()
    await ground.another_worker()


async def server_killed(ground: Ground) -> None:
    await ground.server.kill()
    await ground.server.start()


async def both_killed(ground: Ground) -> None:
    await asyncio.gather(ground.server.kill(), ground.worker.kill())
    await ground.server.start()
    await ground.another_worker()


FAULTS: tuple[Callable[[Ground], Awaitable[None]], ...] = (
    nothing,
    killed,
    interrupted,
    interrupted_and_killed,
    killed_and_interrupted,
    interrupted_twice,
    stopped,
    server_killed,
    both_killed,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("point", POINTS)
async def test_nothing_is_done_twice_and_nothing_is_told_wrongly(
    point: str, fault: Callable[[Ground], Awaitable[None]], temporal_cli: Path, tmp_path: Path
) -> None:
    gate = tmp_path / point
    gate.touch()
    settings = DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    async with DevServer(settings) as server:
        stage = await Stage.on(server.address, tmp_path / "stage")
        worker = await WorkerProcess.start(stage.one_directory(tools="tests.e2e.crash.crash_ends"))
        ground = Ground(stage, server, tmp_path, worker, list(sessions_on(stage, tmp_path)))
        try:
            replies = [await session.submit("End in every way") for session in ground.sessions]
            reached = "started" if point == POINTS[0] else "effect"

            async def all_stand() -> bool:
                return ground.lines(reached).total() == len(FORMS) * len(HOWS)

            await until(all_stand, f"{len(FORMS) * len(HOWS)} calls have {reached}", seconds=120)
            await fault(ground)
            gate.unlink()
            told = [await told_by(session, reply) for session, reply in zip(ground.sessions, replies, strict=True)]
            effects = ground.lines("effect")
            await went_on(ground.sessions)
            late = ground.lines("effect") - effects

            found = {key: result for one in told for key, result in one.items()}
            assert found.keys() == {f"{form} {how}" for form in FORMS for how in HOWS}
            assert [
                key for what in ("started", "effect") for key, times in ground.lines(what).items() if times > 1
            ] == []
            assert untrue(found, effects + late, late) == {}
            assert await unreplayable(stage.app.client) == {}
        finally:
            await ground.worker.kill()


def sessions_on(stage: Stage, folder: Path) -> list[Session]:
    """One for each few calls; the ids of calls say which they are."""
    made: list[Session] = []
    for form in FORMS:
        for first in range(0, len(HOWS), CALLS_OF_A_TURN):
            calls = [
                {"name": form, "input": {"how": how, "folder": str(folder)}}
                for how in HOWS[first : first + CALLS_OF_A_TURN]
            ]
            script = folder / f"{form}-{first}.jsonl"
            lines = ({"tool_calls": calls}, {"text": "I see."}, {"text": "And on."}, {"text": "And on."})
            script.write_text("\n".join(json.dumps(line) for line in lines))
            spec = AgentSpec.model_validate(
                {
                    "name": "matrix",
                    "model": f"scripted:{script}",
                    "tools": [form],
                    "permission": {"mode": "bypass"},
                    "stuck": {"enabled": False},
                    "workspace": {"root": str(folder)},
                }
            )
            made.append(stage.app.session(f"{form}-{first}".replace("_", "-"), agent=spec))
    return made


async def told_by(session: Session, reply: str) -> dict[str, ToolResultBlock]:
    """What its transcript says of each call, by form and way to end; each has one result."""

    async def look() -> dict[str, ToolResultBlock]:
        await session.wait(reply)
        messages = [message async for message in session.transcript()]
        calls = [call for one in messages for call in one.get_tool_calls()]
        results = [result for one in messages for result in one.get_tool_results()]
        assert Counter(result.id for result in results) == dict.fromkeys((call.id for call in calls), 1)
        asked = {call.id: f"{call.name} {json.loads(call.input)['how']}" for call in calls}
        return {asked[result.id]: result for result in results}

    return await insisted(look)


async def went_on(sessions: Sequence[Session]) -> None:
    """Of a reply that was interrupted in its calls the model had not been told what came of them."""
    for session in sessions:
        assert (await session.reply("Go on")).get_text_content() in {"I see.", "And on."}


def untrue(found: Mapping[str, ToolResultBlock], effects: Counter[str], late: Counter[str]) -> dict[str, str]:
    """Calls whose result says what is not so, and what it says."""
    return {
        key: f"{result.state} {effects[key]} {late[key]} {result.get_text()[:200]}"
        for key, result in found.items()
        if not is_true(result, effects[key], late[key])
    }


def is_true(result: ToolResultBlock, effects: int, late: int) -> bool:
    text = result.get_text()
    if late and RUNS_ON not in text:
        return False
    match result.state:
        case ToolResultState.SUCCESS | ToolResultState.ERROR:
            return effects == 1
        case ToolResultState.UNKNOWN:
            return "may have" in text
        case ToolResultState.INTERRUPTED:
            return effects == 0 if "did not run" in text else "may have" in text
        case _:
            return False


async def insisted(act: Callable[[], Awaitable[Answer]]) -> Answer:
    """Again while nobody answers."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await act()
            except (RPCError, *SILENCES):
                await asyncio.sleep(0.3)
    raise AssertionError
