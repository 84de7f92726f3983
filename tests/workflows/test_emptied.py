"""A Redis that is emptied under sessions: what was there is written again, or its loss is named; nothing is made up."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from temporalio.client import WorkflowExecutionStatus

from starter.connection import connect, let_go
from starter.history import HistoryUnreadable
from starter.session import Session
from tests.servers.redis_server import find_redis, redis_server
from tests.workflows.conftest import Stage
from tests.workflows.letters import until

pytestmark = [pytest.mark.server, pytest.mark.redis]

SHORT_LIVED: dict[str, Any] = {"idle_close_seconds": 2}


@pytest.fixture
def redis(redis_url: str, tmp_path: Path) -> Iterator[str]:
    """One of this test's own; the shared one is asked for so that there is a Redis at all."""
    del redis_url
    with redis_server(find_redis(print), tmp_path) as url:
        yield url


async def keeping(stage: Stage, **places: str) -> Stage:
    """The stage with its store, or its blobs too, elsewhere; it has no worker yet."""
    stage.settings = stage.settings.model_copy(update=places)
    stage.client = await connect(stage.address, settings=stage.settings)
    stage.rest.push_async_callback(let_go, stage.client)
    return stage


def empty(url: str) -> None:
    with Redis.from_url(url) as client:
        assert client.dbsize()
        client.flushall()


async def is_saved(session: Session) -> None:
    async def saved() -> bool:
        status = await session.status()
        return status.saved_seq >= status.seq

    await until(saved)


async def closes(stage: Stage, session: Session) -> None:
    async def closed() -> bool:
        return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.COMPLETED

    await until(closed)


async def texts(session: Session) -> list[str]:
    return [message.get_text_content() async for message in session.transcript()]


async def test_a_store_that_was_emptied_under_a_session_is_filled_again_by_it(unserved: Stage, redis: str) -> None:
    stage = await keeping(unserved, store=redis)
    async with stage.another_worker():
        session = stage.session({"text": "One."}, {"text": "Two."}, {"text": "Three."}, **SHORT_LIVED)
        await session.reply("First")
        await is_saved(session)
        empty(redis)
        await session.reply("Second")
        await closes(stage, session)

        await session.reply("Third")

        status = await session.status()
        assert await texts(session) == ["First", "One.", "Second", "Two.", "Third", "Three."]
    assert (status.generation, status.hold, status.checkpoint_error) == (2, "", "")


async def test_what_was_lost_of_a_closed_session_is_named_and_what_its_model_reads_is_whole(
    unserved: Stage, redis: str
) -> None:
    stage = await keeping(unserved, store=redis, blobs=redis)
    async with stage.another_worker():
        session = stage.session({"text": "One."}, {"text": "Two."}, **SHORT_LIVED)
        await session.reply("First")
        await closes(stage, session)
        empty(redis)

        done = await session.reply("Second")

        assert done.get_text_content() == "Two."
        context = [message.get_text_content() async for message in session.context()]
        assert context == ["First", "One.", "Second", "Two."]
        assert (await session.status()).note.startswith("It was rebuilt from the history")
        with pytest.raises(HistoryUnreadable, match=r"segment .* can't be used"):
            await texts(session)
