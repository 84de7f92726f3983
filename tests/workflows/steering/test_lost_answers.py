"""Answers of a session's own upkeep that were lost: it is said, the session goes on, and a replay finds the same."""

from collections.abc import AsyncIterator

import pytest

from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.operations import recorded, until
from tests.workflows.roomy import Moody, Roomy, failure_of_replay, worker_with

pytestmark = pytest.mark.server

EVERYTHING_FROM_BYTES = 30


@pytest.fixture
async def roomy(unserved: Stage) -> Roomy:
    """Without a worker yet."""
    return await Roomy.over(unserved)


@pytest.fixture
async def blobs(roomy: Roomy) -> AsyncIterator[Moody]:
    """Where the only worker puts almost every value."""
    moody = Moody(roomy.blobs)
    async with worker_with(moody, roomy, EVERYTHING_FROM_BYTES):
        yield moody


async def replays_with_and_without(blobs: Moody, roomy: Roomy, session: Session) -> bool:
    """What was lost may come back, and changes nothing any more."""
    assert blobs.lost
    before = await failure_of_replay(roomy, session)
    for key, data in blobs.lost.items():
        await roomy.blobs.put(key, data)
    return (before, await failure_of_replay(roomy, session)) == (None, None)


async def test_a_session_is_held_while_what_was_found_of_its_earlier_life_is_lost(roomy: Roomy, blobs: Moody) -> None:
    blobs.losing = b'"kind":"restored"'
    session = await roomy.opened({"text": "Here I am."})
    asked = await session.submit("Are you there?")

    async def held(times: int) -> bool:
        entries = await recorded(roomy, session)
        return len([entry for entry in entries if entry.kind == "restore_failed"]) == times

    await until(lambda: held(1))
    quarantine = (await session.status()).quarantine
    await session.resume(by="ana")
    await until(lambda: held(2))
    blobs.losing = None
    await session.resume(by="ana")
    done = await session.wait(asked)

    assert quarantine.startswith(
        "Whether this session has had an earlier incarnation is unknown: It has ended, but what was stored"
    )
    assert quarantine.endswith("or not whole: its outcome is lost. Resume it to try again.")
    assert done.get_text_content() == "Here I am."
    assert await replays_with_and_without(blobs, roomy, session)


async def test_a_checkpoint_of_which_nobody_hears_has_failed_and_is_made_again(roomy: Roomy, blobs: Moody) -> None:
    blobs.losing = b'"kind":"checkpointed"'
    session = await roomy.opened({"text": "One."}, {"text": "Two."})
    first = await session.reply("First")

    async def failed() -> bool:
        return (await session.status()).checkpoint_error != ""

    await until(failed)
    said = await session.status()
    blobs.losing = None
    second = await session.reply("Second")

    async def saved() -> bool:
        status = await session.status()
        return status.saved_seq >= status.seq

    await until(saved)
    status = await session.status()
    assert (first.get_text_content(), second.get_text_content()) == ("One.", "Two.")
    assert "its outcome is lost" in said.checkpoint_error
    assert (said.saved_seq, said.quarantine, status.checkpoint_error) == (0, "", "")
    assert await replays_with_and_without(blobs, roomy, session)
