"""Several sessions' events in one list: each session's in its own order, and across sessions as they arrive."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.reading.event_reader import Following
from longhaul.starter.client.reading.queries import SILENT_SECONDS, NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.connection.query_retries import Pauses

BUFFERED_EVENTS = 256
"""Of one session. A session that is ahead waits here; it never makes the others wait, nor takes their room."""
SHORTEST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0
"""Between looks whether a session has started; a tenth of the time waited."""
BEYOND_THE_LAST = 2**31
LOOK_SECONDS = 5.0
LONGEST_LOOK_SECONDS = 60.0
"""Of silence, until it is looked whether a session runs at all; half of the time that it has been silent."""
CLOSED = "session_closed"
"""Name of the CUSTOM event that says once that a session has closed, or could not be read any more (`value`: why)."""


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One event of a feed, and its session."""

    number: int
    """Number of the event in the feed, from 1, without gaps."""
    session: Session
    event: AgentEvent
    arrived_at: datetime
    """When this client received the event, in UTC."""


@dataclass(slots=True)
class _Lane:
    """One session's way into the feed."""

    session: Session
    waiting: deque[tuple[int, datetime, AgentEvent]] = field(default_factory=deque)
    """Each with its place among those of all lanes: a clock that is set back would hold the others up."""
    reader: asyncio.Task[None] | None = None
    muted: bool = False


class Feed:
    """Events of several sessions: `async with app.feed([one, two]) as feed: async for item in feed: …`. The feed ends
    when it has no session left."""

    def __init__(self, sessions: Iterable[Session] = (), *, start: int | None = None, live: bool = True) -> None:
        """`start`: number of the first event of each session; None for new events only. A session that has not started
        is waited for, and all of its events come."""
        self._first = [(session, start) for session in sessions]
        self._live = live
        self._lanes: dict[str, _Lane] = {}
        self._changed = asyncio.Condition()
        self._number = self._arrived = 0

    async def __aenter__(self) -> Self:
        for session, start in self._first:
            await self.add(session, start=start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lane in list(self._lanes.values()):
            await self.remove(lane.session)

    async def add(self, session: Session, *, start: int | None = None) -> None:
        """Add a session: its new events come, or its events from number `start` on. A session that is in the feed
        already stays unchanged."""
        if session.workflow_id not in self._lanes:
            lane = self._lanes[session.workflow_id] = _Lane(session)
            lane.reader = asyncio.create_task(self._read(lane, start))

    async def remove(self, session: Session) -> None:
        """Remove a session. Its events that have not been read yet are dropped."""
        lane = self._lanes.pop(session.workflow_id, None)
        if lane is not None and lane.reader is not None:
            lane.reader.cancel()
            await asyncio.gather(lane.reader, return_exceptions=True)
        async with self._changed:
            self._changed.notify_all()

    async def switch(self, session: Session, *, on: bool) -> None:
        """Turn a session's events off or on. Events that happen while it is off are skipped. Raises KeyError if the
        session is not in the feed."""
        lane = self._lanes[session.workflow_id]
        async with self._changed:
            lane.muted = not on
            if not on:
                lane.waiting.clear()
            self._changed.notify_all()

    async def __aiter__(self) -> AsyncIterator[FeedItem]:
        while (lane := await self._next_lane()) is not None:
            async with self._changed:
                if not lane.waiting:
                    continue  # switched off or removed meanwhile
                _, arrived_at, event = lane.waiting.popleft()
                self._changed.notify_all()
            self._number += 1
            yield FeedItem(self._number, lane.session, event, arrived_at)

    async def _next_lane(self) -> _Lane | None:
        """The one whose next event came first; None when there is none left."""
        async with self._changed:
            while self._lanes:
                ready = [lane for lane in self._lanes.values() if lane.waiting]
                if ready:
                    return min(ready, key=lambda lane: lane.waiting[0][0])
                for name in [name for name, lane in self._lanes.items() if lane.reader is None]:
                    del self._lanes[name]
                if self._lanes:
                    await self._changed.wait()
        return None

    async def _read(self, lane: _Lane, start: int | None) -> None:
        why = "closed"
        try:
            first = await _first(lane.session, start)
            async with aclosing(lane.session.following(first, live=self._live)) as following:
                why = await self._follow(lane, following)
        except NoSession:
            pass
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  one session that can't be read must not end the feed of the others
            why = f"{type(error).__name__}: {error}"
        await self._put(lane, AgentEvent(type="CUSTOM", name=CLOSED, value=why))
        async with self._changed:
            lane.reader = None
            self._changed.notify_all()

    async def _follow(self, lane: _Lane, following: Following) -> str:
        """Until the session has ended, which no event may say; returns how. Raises NoSession."""
        now = asyncio.get_running_loop().time
        heard, look_after, end = now(), LOOK_SECONDS, ""
        while True:
            asked = asyncio.ensure_future(following.next())
            try:
                while not (await asyncio.wait({asked}, timeout=LOOK_SECONDS))[0]:
                    if now() - heard > 2 * LOOK_SECONDS + SILENT_SECONDS and (end := await lane.session.end()):
                        return f"{end}; the rest of it does not answer"
                events = await asked
            finally:
                asked.cancel()
                await asyncio.wait({asked})
            for event in events:
                await self._put(lane, event)
            if events:
                heard, look_after, end = now(), LOOK_SECONDS, ""
            elif end and following.is_fresh:
                return "closed" if end == "completed" else end
            elif not end and (silent := now() - heard) >= look_after:
                if end := await lane.session.end():
                    following.expect_news()  # what it recorded last may have come since it was asked
                look_after = silent + min(max(silent / 2, LOOK_SECONDS), LONGEST_LOOK_SECONDS)

    async def _put(self, lane: _Lane, event: AgentEvent) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: lane.muted or len(lane.waiting) < BUFFERED_EVENTS)
            if not lane.muted or event.name == CLOSED:
                self._arrived += 1
                lane.waiting.append((self._arrived, datetime.now(UTC), event))
                self._changed.notify_all()


async def _first(session: Session, start: int | None) -> int:
    """Number of the event to begin with, once there is a session. Raises NoSession for one that has closed."""
    try:
        last = (await session.events(BEYOND_THE_LAST)).last
    except NoSession:
        if await session.stored.is_known():
            raise
    else:
        return last + 1 if start is None else start
    pauses = Pauses()
    while not await session.has_started():  # noqa: ASYNC110  the server tells nobody of its own accord
        await asyncio.sleep(max(pauses.length(LONGEST_PAUSE_SECONDS), SHORTEST_PAUSE_SECONDS))
    return start or 1
