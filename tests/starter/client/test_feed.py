"""Several sessions in one feed: each in its own order, none of them able to hold up or drown another."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import cast

import pytest

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.feed import BUFFERED_EVENTS, CLOSED, Feed, FeedItem
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.workflows.contract import EventPage
from tests.limits import SURE_SECONDS


class Recorded:
    """A session with so many events, which closes after them."""

    def __init__(self, name: str, count: int, *, fails: Exception | None = None) -> None:
        self.workflow_id = self.id = name
        self.read = 0
        self.count = count
        self.fails = fails or NoSession(name)

    async def events(self, start: int) -> EventPage:
        return EventPage(events=(), last=self.count)

    def following(self, start: int, *, live: bool) -> "Reading":
        del live
        return Reading(self, start)

    async def end(self) -> str:
        return ""


class Reading:
    """What was recorded, event by event."""

    is_fresh = False

    def __init__(self, recorded: Recorded, start: int) -> None:
        self._recorded, self._next = recorded, start

    async def next(self) -> list[AgentEvent]:
        await asyncio.sleep(0)
        if self._next > self._recorded.count:
            raise self._recorded.fails
        self._recorded.read = self._next
        self._next += 1
        return [AgentEvent(type="CUSTOM", name="tick", seq=self._recorded.read)]

    async def aclose(self) -> None:
        return


def session(name: str, count: int, *, fails: Exception | None = None) -> Session:
    return cast(Session, Recorded(name, count, fails=fails))


async def gathered(feed: Feed) -> list[FeedItem]:
    return [item async for item in feed]


@pytest.mark.proves("C6")
async def test_each_session_comes_whole_and_in_order_and_the_feed_is_numbered() -> None:
    async with Feed([session("a", 700), session("b", 40), session("c", 3)], start=1) as feed:
        items = await gathered(feed)

    assert [item.number for item in items] == list(range(1, len(items) + 1))
    for name, count in (("a", 700), ("b", 40), ("c", 3)):
        own = [item.event for item in items if item.session.id == name]
        assert [event.seq for event in own] == [*range(1, count + 1), 0]
        assert own[-1].name == CLOSED
    assert [item.arrived_at for item in items] == sorted(item.arrived_at for item in items)


async def test_a_session_that_is_far_ahead_does_not_make_others_wait() -> None:
    async with Feed([session("loud", 5_000), session("quiet", 5)], start=1) as feed:
        first = [item async for item, _ in _zipped(feed, 30)]

    assert Counter(item.session.id for item in first)["quiet"] == 6


async def _zipped(feed: Feed, most: int) -> AsyncGenerator[tuple[FeedItem, int]]:
    number = 0
    async for item in feed:
        number += 1
        yield item, number
        if number == most:
            return


async def test_what_waits_is_bounded() -> None:
    loud = session("loud", 5_000)
    async with Feed([loud], start=1), asyncio.timeout(SURE_SECONDS):
        while cast(Recorded, loud).read <= BUFFERED_EVENTS:  # noqa: ASYNC110  it counts, and tells nobody
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)

        assert cast(Recorded, loud).read == BUFFERED_EVENTS + 1


@pytest.mark.proves("C6")
async def test_a_session_may_be_switched_off_and_be_removed() -> None:
    one, two = session("one", 2_000), session("two", 2_000)
    seen: Counter[str] = Counter()
    async with Feed([one, two], start=1) as feed:
        async for item in feed:
            seen[item.session.id] += 1
            if seen["one"] == 10:
                await feed.switch(one, on=False)
            if seen["two"] == 1_000:
                await feed.remove(two)

    assert seen == {"one": 11, "two": 1_000}


async def test_one_that_fails_says_why_and_ends_no_other() -> None:
    async with Feed([session("sick", 1, fails=OSError("no route")), session("well", 2)], start=1) as feed:
        items = await gathered(feed)

    assert [item.event.value for item in items if item.session.id == "sick"] == [None, "OSError: no route"]
    assert len(items) == 5


async def test_without_a_start_only_what_is_to_come_is_told() -> None:
    async with Feed([session("past", 7)]) as feed:
        items = await gathered(feed)

    assert [item.event.name for item in items] == [CLOSED]


class Unbegun(Recorded):
    """One that begins when it was asked for the fifth time."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 2)
        self.asked: list[float] = []
        self.stored = self

    async def events(self, start: int) -> EventPage:
        del start
        raise NoSession(self.id)

    async def is_known(self) -> bool:
        return False

    async def has_started(self) -> bool:
        self.asked.append(asyncio.get_running_loop().time())
        return len(self.asked) == 5


async def test_whether_a_session_has_started_is_asked_with_pauses() -> None:
    unbegun = Unbegun("late")
    async with Feed([cast(Session, unbegun)]) as feed:
        items = await gathered(feed)

    assert [item.event.seq for item in items] == [1, 2, 0]
    assert all(later - earlier > 0.2 for earlier, later in pairwise(unbegun.asked))
