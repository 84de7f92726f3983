"""A later reply is prepared, and each one written down, within the session's own tasks: few events, nothing lost."""

import pytest

from longhaul.activities.contract import CHECKPOINT, PREPARE_REPLY
from longhaul.starter.client.session import Session
from longhaul.workflows.within_task import LONGEST_CHARS
from tests.workflows.conftest import Stage
from tests.workflows.operations import until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

SAID = {"text": "Six metres."}
MODEL_CALL = 6
"""Events of the activity, and of the task behind it."""
MOST_OF_A_REPLY, MOST_OF_A_SESSION = 12, 20
"""Beside model calls and tools."""


async def length(stage: Stage, session: Session) -> int:
    return (await stage.handle(session).describe()).history_length


async def is_saved(session: Session) -> None:
    """Wait until all that it has recorded is in the store."""

    async def saved() -> bool:
        status = await session.status()
        return status.saved_seq >= status.seq and status.checkpoint_error == ""

    await until(saved)


async def checkpoints(stage: Stage, session: Session) -> tuple[int, int]:
    """How many were asked for within a task, and by activities of their own."""
    within = (await stage.within_tasks(session)).count(CHECKPOINT)
    return within, (await stage.scheduled(session)).count(CHECKPOINT)


async def test_a_session_and_a_reply_cost_few_events_beside_their_steps(stage: Stage) -> None:
    """On a machine that stands still for a second, activities are asked, and rightly: three sessions are tried."""
    session, first, second = stage.session(SAID), 0, 0
    for _ in range(3):
        session = stage.session(SAID, SAID)
        await session.reply("How deep is it here?")
        first = await length(stage, session)
        await session.reply("And there?")
        second = await length(stage, session)
        if {CHECKPOINT, PREPARE_REPLY}.isdisjoint(await stage.scheduled(session)):
            break

    assert first - MODEL_CALL <= MOST_OF_A_SESSION
    assert second - first - MODEL_CALL <= MOST_OF_A_REPLY
    assert await checkpoints(stage, session) == (2, 0)
    assert await failure_of_replay(stage, session) is None


async def test_what_is_long_is_written_down_by_an_activity(stage: Stage) -> None:
    session = stage.session({"text": "x" * LONGEST_CHARS}, model_config={"context_length": 10_000_000})

    await session.reply("Tell all of it")

    async def written() -> bool:
        return await checkpoints(stage, session) == (0, 1)

    await until(written)
    await is_saved(session)
    assert await failure_of_replay(stage, session) is None


async def test_while_the_store_is_away_no_reply_waits_for_it_twice(stage: Stage) -> None:
    session = stage.session(SAID, SAID, SAID, SAID)
    await session.reply("One")
    await is_saved(session)
    folder = stage.settings.data_dir / "sessions"
    folder.rename(folder.with_name("away"))
    folder.write_text("no directory")
    await session.reply("Two")
    within, by_activity = await checkpoints(stage, session)

    await session.reply("Three")

    async def asked_by_activity() -> bool:
        return await checkpoints(stage, session) == (within, by_activity + 1)

    await until(asked_by_activity)
    folder.unlink()
    folder.with_name("away").rename(folder)
    await session.reply("Four")
    await is_saved(session)
    assert await failure_of_replay(stage, session) is None
