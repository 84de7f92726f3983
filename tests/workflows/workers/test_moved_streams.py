"""A worker that moved writes its live streams to another place: clients that knew the old one ask again."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.workers.test_live import SLOW, live_text

pytestmark = [pytest.mark.server, pytest.mark.alone]

SLOWLY = {"text": "x" * 20, "chunk_chars": 1, "delay_ms": 50}


@asynccontextmanager
async def worker_at(stage: Stage, name: str) -> AsyncIterator[None]:
    """One that keeps sessions where the others do, and streams in a data directory of its own."""
    kept = {"store": f"sqlite:///{stage.folder}/sessions.db", "blobs": str(stage.folder / "blobs")}
    async with stage.with_settings(**kept, data_dir=stage.folder / name).another_worker():
        yield


async def seconds_late(session: Session, request: str) -> float:
    """How long after its end a reply is heard of."""
    done = await session.reply(request)
    return time.time() - datetime.fromisoformat(done.finished_at).timestamp()


async def test_the_end_of_a_reply_is_heard_of_at_once_again_where_the_worker_moved(unserved: Stage) -> None:
    session = unserved.session({"text": "One."}, {"text": "Two."}, SLOWLY)
    async with worker_at(unserved, "here"):
        await session.reply("Count")
    async with worker_at(unserved, "there"):
        await session.reply("Go on")
        late = await seconds_late(session, "And slowly")

    assert late < 0.5


async def test_text_is_told_live_again_where_the_worker_moved(unserved: Stage) -> None:
    session = unserved.session(SLOW, {"text": "Two."}, SLOW)
    async with worker_at(unserved, "here"):
        before = [event async for event in session.reply_stream("How many?")]
    async with worker_at(unserved, "there"):
        async for _ in session.reply_stream("Go on"):
            pass
        after = [event async for event in session.reply_stream("How many now?")]

    assert (live_text(before), live_text(after)) == (SLOW["text"], SLOW["text"])
