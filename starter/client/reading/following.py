"""Following a session: its recorded events, each once and in order, and what is made between them while it is made.

Recorded events come from the session by query, live ones from its stream. The stream also says when to ask: whoever
can read it hears of an event milliseconds after it was recorded. Beside that, and without a stream, the server is
looked at with growing pauses (`glance`), and the session asked when it has recorded something.
"""

import asyncio
from collections.abc import Awaitable, Callable

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.hooks import Printing
from longhaul.starter.client.reading.glance import Moves
from longhaul.starter.client.reading.live_events import LiveEvents
from longhaul.starter.client.reading.live_stream import LiveStream
from longhaul.stores.streams.streams import PIECES, Item
from longhaul.workflows.contract import EventPage

UNAVAILABLE = "live_unavailable"
"""Name of the CUSTOM event that says once that there will be recorded events only, and why."""
SHORTEST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 1.0
SHORTEST_WITH_STREAM_SECONDS = 0.1
"""Nearly everything is announced, and each question holds up what is live."""
LONGEST_WITH_STREAM_SECONDS = 3.0
UNHEARD = 4
"""Times in a row that something new came of which the stream had said nothing: at the first one the session is asked
where its stream is, and then each so many."""

_SURELY_RECORDED = ("begin", "wake")
"""Marks that an activity makes when it starts: what led to it is recorded by then."""


class Following:
    """One reader. Close it."""

    def __init__(
        self,
        ask: Callable[[int], Awaitable[EventPage]],
        stream: LiveStream | None,
        start: int,
        printing: Printing | None = None,
        moves: Moves | None = None,
    ) -> None:
        """Recorded events from number `start` on. Without a stream: those alone; without moves: the session is asked
        after each pause."""
        self._printing = printing or Printing()
        self._moves = moves
        self._ask = ask
        self._stream = stream
        self._live = LiveEvents()
        self._items: list[Item] = []
        self._next = max(start, 1)
        self._told_of_trouble = False
        self._announced = self._heard_before = False
        self._unheard = 0
        self._news_at = asyncio.get_running_loop().time()
        self._caught_up = False
        self._more_is_recorded = False
        """Marks were read that may be younger than the newest page."""
        self._expects = False
        self.is_fresh = False
        """Whether the session has just been asked, and all that it had recorded was given."""

    async def next(self) -> list[AgentEvent]:
        """What there is to tell; nothing after a pause in which nothing came. Raises NoSession, HistoryUnreadable."""
        await self._printing.printed()
        return await self._printing.shown(await self._next_ones())

    async def _next_ones(self) -> list[AgentEvent]:
        self.is_fresh = False
        if self._caught_up and not self._items and not self._more_is_recorded:
            self._items = await self._listen()
            if self._items and not any(self._says_more_is_recorded(item) for item in self._items):
                return self._live_ones()
        if trouble := self._trouble():
            return trouble
        looks = self._moves if self._is_untold() else None
        if looks is not None and not await self._has_moved(looks):
            return []
        self._more_is_recorded = self._expects = False
        page = await (self._ask(self._next) if looks is not None else self._page())
        overtaken = await self._overtaken(page) if self._caught_up else []
        if page.events:
            self._next = page.events[-1].seq + 1
            self._news_at = asyncio.get_running_loop().time()
            await self._doubt_the_stream()
        self._caught_up = self.is_fresh = self._next > page.last
        if not self._caught_up:
            return [*overtaken, *page.events]
        self._live.recorded(page)
        return [*overtaken, *page.events, *self._live_ones()]

    def expect_news(self) -> None:
        """Ask again soon: something was done that the session will answer."""
        self._expects = True
        self._news_at = asyncio.get_running_loop().time()

    async def aclose(self) -> None:
        await self._printing.printed()
        if self._stream is not None:
            await self._stream.aclose()

    def _is_untold(self) -> bool:
        """Nothing says that there is more than was read."""
        return self._caught_up and not (self._items or self._more_is_recorded or self._expects)

    async def _has_moved(self, moves: Moves) -> bool:
        due = await moves.due()
        self._news_at = max(self._news_at, moves.stirred_at)
        return due

    async def _page(self) -> EventPage:
        """What is recorded; before the question a glance, with which later ones are compared. Taken beside it, the
        glance could show what the answer lacks, and nobody would ask for that."""
        if self._moves is not None:
            await self._moves.note()
        return await self._ask(self._next)

    async def _overtaken(self, page: EventPage) -> list[AgentEvent]:
        """The last pieces of what the page records: in the stream they come before the mark that had us ask, and who
        asked without one looks there once more. Told after the page they would be of the past."""
        if page.events and not self._items and self._stream is not None:
            self._items = await self._heard(self._stream, 0)
            self._more_is_recorded = any(item.kind in _SURELY_RECORDED for item in self._items)
        # What begins in these lines may come after all that the page records: a call's words after the result before.
        begun = {item.call for item in self._items if item.kind == "begin"}
        return [event for item in self._items if item.call not in begun for event in self._live.of(item)]

    async def _listen(self) -> list[Item]:
        now = asyncio.get_running_loop().time()
        shortest, longest = SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
        if self._stream is not None and self._stream.reached:
            shortest, longest = SHORTEST_WITH_STREAM_SECONDS, LONGEST_WITH_STREAM_SECONDS
        pause = min(max((now - self._news_at) / 10, shortest), longest)
        if self._stream is None:
            await asyncio.sleep(pause)
            return []
        return await self._heard(self._stream, pause)

    async def _heard(self, stream: LiveStream, seconds: float) -> list[Item]:
        items = await stream.read(seconds)
        if any(item.kind in (*_SURELY_RECORDED, "end") for item in items):
            self._news_at = asyncio.get_running_loop().time()
            # A stream that is no longer written to tells of the past as well.
            kept, self._heard_before = not self._heard_before, True
            now = ((item.kind == "wake" and not kept) or self._live.is_of_now(item) for item in items)
            self._announced = self._announced or any(now)
        return items

    async def _doubt_the_stream(self) -> None:
        """A session that does this and that, of which its stream says nothing, may have another one by now."""
        unheard = self._caught_up and not self._announced
        self._unheard = self._unheard + 1 if unheard else 0
        self._announced = False
        if unheard and self._stream is not None and (self._unheard == 1 or self._unheard % UNHEARD == 0):
            await self._stream.look_again()

    def _says_more_is_recorded(self, item: Item) -> bool:
        return item.kind in _SURELY_RECORDED or (item.kind in PIECES and not self._live.is_open(item.call))

    def _live_ones(self) -> list[AgentEvent]:
        items, self._items = self._items, []
        return [event for item in items for event in self._live.of(item)]

    def _trouble(self) -> list[AgentEvent]:
        if self._told_of_trouble or self._stream is None or not self._stream.trouble:
            return []
        self._told_of_trouble = True
        return [AgentEvent(type="CUSTOM", name=UNAVAILABLE, reply_id=self._live.reply_id, value=self._stream.trouble)]
