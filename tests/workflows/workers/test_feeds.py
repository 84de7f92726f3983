"""A feed of sessions that are there, and of some that have not started."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.feed import CLOSED, FeedItem
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage

pytestmark = pytest.mark.server


@pytest.mark.proves("C6")
@pytest.mark.parametrize("start", [None, 1])
async def test_a_session_that_has_not_started_is_waited_for_and_told_from_its_first_event(
    stage: Stage, start: int | None
) -> None:
    early, late = stage.session({"text": "Warm."}, {"text": "Hot."}), stage.session({"text": "At last."})
    await early.reply("Begin")
    items: list[FeedItem] = []

    async def read() -> None:
        async with stage.app.feed([early, late], start=start, live=False) as feed:
            async for item in feed:
                items.append(item)
                if sum(each.event.type == "REPLY_END" for each in items) == (2 if start is None else 3):
                    return

    async with asyncio.timeout(SURE_SECONDS):
        reading = asyncio.create_task(read())
        await asyncio.sleep(1)
        await early.reply("Go on")
        await late.reply("Begin")
        await reading

    told = [item.event for item in items if item.session is late]
    assert CLOSED not in [event.name for event in told]
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    assert (told[0].type, told[-1].type) == ("REPLY_START", "REPLY_END")


@pytest.mark.proves("C6")
@pytest.mark.parametrize("served", [True, False], ids=["its worker answers", "nobody answers"])
async def test_a_session_that_ends_without_a_last_event_leaves_the_feed(unserved: Stage, *, served: bool) -> None:
    """Whoever terminates it tells nobody: only the server knows."""
    told: list[AgentEvent] = []
    async with AsyncExitStack() as worker, asyncio.timeout(SURE_SECONDS):
        await worker.enter_async_context(unserved.another_worker())
        session = unserved.session({"text": "Warm."})
        await session.reply("Begin")
        async with unserved.app.feed([session], start=1) as feed:
            async for item in feed:
                told.append(item.event)
                if item.event.type == "REPLY_END":
                    await unserved.handle(session).terminate("by hand")
                    if not served:
                        await worker.aclose()

    assert [event.type for event in told][-2:] == ["REPLY_END", "CUSTOM"]
    assert (told[-1].name, told[-1].value.partition(";")[0]) == (CLOSED, "terminated")
