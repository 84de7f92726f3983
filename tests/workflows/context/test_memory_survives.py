"""Memories that are written down while workers are killed at random: each once."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.reading.queries import Unexplained
from longhaul.starter.client.session import Session
from longhaul.stores.memories.memories import MemoryOwner
from longhaul.stores.memories.sqlite_memories import SqliteMemories
from tests.e2e.dying_workers import OVER
from tests.e2e.processes import WorkerSettings, worker
from tests.workflows import own_memories
from tests.workflows.conftest import Stage

SESSIONS = 4
MOST_REPLIES = 120
BOTH: dict[str, Any] = {
    "long_term_memory_mode": "both",
    "permission": {"rules": [{"tool_name": "record_to_memory", "behavior": "allow"}]},
}


def told(who: int, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """One reply: a fact is written down by the tool, and then the reply itself is."""
    fact = {"content": [f"Buoy {who}-{number} is green."]}
    return {"tool_calls": [{"name": "record_to_memory", "input": fact}]}, {"text": f"Noted {who}-{number}."}


async def answered(session: Session, number: int) -> Msg:
    """Of a task at which three workers died the server says that it failed, until the next one has done it."""
    while True:
        try:
            return await session.wait(await session.submit(f"Number {number}", request_id=f"number-{number}"))
        except Unexplained:
            await asyncio.sleep(0.5)


@pytest.mark.proves("C11")
@pytest.mark.server
@pytest.mark.parametrize(
    "kills", [2, pytest.param(50, marks=[pytest.mark.chaos, pytest.mark.timeout(600)])], ids=["few", "fifty"]
)
async def test_each_fact_is_written_down_once_however_often_workers_die(
    unserved: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    monkeypatch.setenv(own_memories.FOLDER, str(tmp_path))
    own = "tests.workflows.own_memories:Slow"
    stage = replace(unserved, settings=unserved.settings.model_copy(update={"memory": own}))
    process = WorkerSettings(
        address=stage.address,
        task_queue=stage.settings.task_queue,
        directory=stage.settings.data_dir,
        tools=stage.settings.tools,
        further={"LONGHAUL_MEMORY": own, own_memories.FOLDER: str(tmp_path)},
    )
    script = [[line for number in range(MOST_REPLIES) for line in told(who, number)] for who in range(SESSIONS)]
    sessions = [stage.session(*lines, user="buoy keeper", **BOTH) for lines in script]
    over = asyncio.Event()

    async def ask(session: Session) -> int:
        """How many replies it made until the killing was over."""
        for number in range(MOST_REPLIES):
            assert (await answered(session, number)).error is None
            if over.is_set():
                return number + 1
        return MOST_REPLIES

    asking = asyncio.gather(*map(ask, sessions))
    async with worker(replace(process, program=("tests.e2e.dying_workers", str(kills), str(kills)))) as doomed:
        assert OVER in await doomed.rest_of_stdout()
    over.set()
    async with worker(process):
        made = await asking

    kept = await SqliteMemories(tmp_path / "memory.db").list_memories(MemoryOwner("buoy keeper", "lamp"), 10_000)
    texts = Counter(each.text for each in kept)
    wanted = [(who, number) for who, replies in enumerate(made) for number in range(replies)]
    assert texts == Counter(
        text
        for who, number in wanted
        for text in (
            f"Buoy {who}-{number} is green.",
            f"The user said: Number {number}\nlamp answered: Noted {who}-{number}.",
        )
    )
    tried = Counter((tmp_path / own_memories.TRIED).read_text().split("\n"))
    if kills >= 50:
        assert sum(tries > 1 for tries in tried.values()) >= 10, "too few kills met one that was being written"
