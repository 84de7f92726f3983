"""A session that is over and has no worker any more: all that can be read of it is read from what it wrote down."""

import pytest

from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, calls, until

pytestmark = pytest.mark.server


async def is_saved(session: Session) -> None:
    async def saved() -> bool:
        status = await session.status()
        return status.saved_seq >= status.seq

    await until(saved)


async def everything(session: Session) -> tuple[list[Msg], list[Msg], list[object], list[object], object]:
    transcript = [message async for message in session.transcript()]
    context = [message async for message in session.context()]
    steps: list[object] = [event async for event in session.trajectory()]
    events: list[object] = list((await session.events()).events)
    return transcript, context, steps, events, await session.state()


async def test_all_that_was_said_and_done_is_read_from_the_store(unserved: Stage) -> None:
    stage = unserved
    session = stage.session(calls("fetch", page=3), {"text": "Read."})
    async with stage.another_worker():
        answer = await session.reply("Read page three")
        await is_saved(session)
        before = await everything(session)
        await stage.handle(session).terminate("moved")

    silent = stage.app.session(session.id, agent=session.spec)
    status = await silent.status()

    assert await everything(silent) == before
    assert (await silent.result(answer.id)).message == answer
    assert (status.messages, status.status) == (len(before[0]), "idle")
    assert status.note.startswith("it is over, and no worker answers for it: this is the checkpoint of entry ")
    assert (await silent.stored.found()).note.startswith("this is the checkpoint of entry ")


async def test_what_waited_is_shown_and_a_worker_that_comes_answers_again(unserved: Stage) -> None:
    stage = unserved
    session = stage.session(*ASKS)
    async with stage.another_worker():
        await session.reply("Write to Ana")
        (asked,) = await session.pending()
        await is_saved(session)
        await stage.handle(session).terminate("moved")

    silent = stage.app.session(session.id, agent=session.spec)
    (still,) = await silent.pending()
    async with stage.another_worker():
        waiting = await silent.submit("Once more")

        async def started() -> bool:
            return (await silent.status()).incarnation == 2

        await until(started)
        status = await silent.status()

    assert (still.call_id, still.digest) == (asked.call_id, asked.digest)
    assert waiting
    assert "no worker answers for it" not in status.note
