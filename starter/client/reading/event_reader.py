"""Reads the events of one session: recorded ones, each once and in order, and between them what is made live.

A reader of one reply is told when it has ended, or what it waits for; or gets the message that the reply came to.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Literal

from longhaul.agent.values.conversation.messages import Msg, ToolCallBlock, ToolCallState, ToolResultState
from longhaul.agent.views.event_types import AgentEvent, EventType
from longhaul.starter.client.hooks import Printing
from longhaul.starter.client.reading.glance import Moves
from longhaul.starter.client.reading.live_stream import LiveEvents, LiveStream, ToldEnds, ToldOnce
from longhaul.starter.client.reading.queries import NoReply
from longhaul.starter.connection.query_retries import Pauses
from longhaul.starter.visible import one_line
from longhaul.stores.streams.streams import PIECES, Item
from longhaul.workflows.contract import EventPage, PendingCall, ReplyResult

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
        # Nothing says that there is more than was read.
        is_untold = self._caught_up and not (self._items or self._more_is_recorded or self._expects)
        looks = self._moves if is_untold else None
        if looks is not None and not await self._has_moved(looks):
            return []
        self._more_is_recorded = self._expects = False
        page = await (self._ask(self._next) if looks is not None else self._page())
        overtaken = await self._overtaken(page) if self._caught_up else []
        if page.events:
            self._next = page.events[-1].seq + 1
            self._news_at = asyncio.get_running_loop().time()
            # A session that does this and that, of which its stream says nothing, may have another one by now.
            unheard = self._caught_up and not self._announced
            self._unheard = self._unheard + 1 if unheard else 0
            self._announced = False
            if unheard and self._stream is not None and (self._unheard == 1 or self._unheard % UNHEARD == 0):
                await self._stream.look_again()
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
        started = {item.call for item in self._items if item.kind == "begin"}
        return [event for item in self._items if item.call not in started for event in self._live.of(item)]

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


SHORTEST_BELOW_SECONDS = 0.5
LONGEST_BELOW_SECONDS = 30.0
"""Between looks at sub-agents; a fifth of the time that the lead has waited for them."""

AsksBelow = Callable[[], Awaitable[Sequence[PendingCall]]]
"""What sub-agents wait for, where nothing moves without an answer; else nothing."""


class LooksBelow:
    """When sub-agents are to be looked at, by one for whom nothing comes meanwhile."""

    def __init__(self, asks: AsksBelow) -> None:
        self._asks = asks
        self.stirred()

    def stirred(self) -> None:
        """Something has come."""
        self._began = self._looked = asyncio.get_running_loop().time()

    @property
    def apart(self) -> float:
        """Seconds between two looks."""
        return min(max((self._looked - self._began) / 5, SHORTEST_BELOW_SECONDS), LONGEST_BELOW_SECONDS)

    async def look(self) -> Sequence[PendingCall]:
        """Nothing before it is time."""
        now = asyncio.get_running_loop().time()
        if now - self._looked < self.apart:
            return ()
        self._looked = now
        return await self._asks()


WAITS_BELOW = "waits_below"
"""Name of the CUSTOM event that ends what is told of a reply whose sub-agents wait for somebody."""


def waits_below(reply_id: str, calls: Sequence[PendingCall]) -> AgentEvent:
    shown = [
        {"call_id": call.call_id, "tool": call.tool, "waits_for": call.waits_for, "path": call.path}
        | ({"session_id": call.at.session_id, "agent": call.at.agent} if call.at is not None else {})
        for call in calls
    ]
    value = {"waiting_for": [call.call_id for call in calls], "calls": shown}
    return AgentEvent(type="CUSTOM", name=WAITS_BELOW, reply_id=reply_id, value=value)


class Questions:
    """Of one reply, which is followed."""

    def __init__(
        self,
        reply_id: str,
        standing: Callable[[str], Awaitable[ReplyResult]],
        pending: Callable[[], Awaitable[list[PendingCall]]],
    ) -> None:
        self._reply_id = reply_id
        self._standing = standing
        self._pending = pending
        self._told: set[str] = set()
        """Calls that wait, by what was told."""
        self._untold: frozenset[str] = frozenset()
        """Calls that waited when it was asked last, and of which nothing was told."""
        self._resumed = False
        self.delegates = False
        """Whether sub-agents may be at work for it."""
        self.has_ended = False
        self.due = False
        """Whether it may wait for somebody by now, or have ended before, so that its session has to be asked."""

    def resume(self) -> None:
        """The reply was there before its events are told: calls of it may wait that were asked about then."""
        self._resumed = self.due = True

    def is_of_it(self, event: AgentEvent) -> bool:
        return event.reply_id == self._reply_id

    def hear(self, event: AgentEvent) -> None:
        if not self.is_of_it(event):
            # A request that has joined another's reply stands as that one does.
            self.due = self.due or event.type in ("REPLY_END", "REQUIRE_USER_CONFIRM", "REQUIRE_EXTERNAL_EXECUTION")
            return
        match event.type:
            case "REQUIRE_USER_CONFIRM" | "REQUIRE_EXTERNAL_EXECUTION":
                self._told |= {call.id for call in event.tool_calls}
                self.due = True
            case "USER_CONFIRM_RESULT":
                self._answered(*(decision["call_id"] for decision in event.value["decisions"]))
            case "EXTERNAL_EXECUTION_RESULT":
                self._answered(event.tool_call_id)
            case "TOOL_RESULT_END" if event.state is ToolResultState.UNKNOWN:
                self._told.add(event.tool_call_id)
                self.due = True
            case "TOOL_RESULT_END":
                self._answered(event.tool_call_id)
            case "CUSTOM" if event.name == "asleep":
                self._told.add(event.tool_call_id)
                self.due = True
            case "CUSTOM":
                self.delegates = self.delegates or event.name == "subagent_started"
                self.due = self.due or bool(self._told)
            case _:
                pass

    def _answered(self, *call_ids: str) -> None:
        self._told -= set(call_ids)
        self.due = self.due or self._resumed or bool(self._told)

    async def open_ones(self) -> list[AgentEvent] | None:
        """What to tell last of a reply that waits, or has ended, of which all was told that its session had recorded;
        None: it goes on, or may do so. Raises NoReply."""
        found = await self._standing(self._reply_id)
        self.delegates = found.delegates
        if found.status == "unknown":
            raise NoReply(f"the session knows no reply {self._reply_id!r}")
        if found.status == "finished":
            # Perhaps in this moment: then the next page tells of it.
            had_ended, self.has_ended = self.has_ended, True
            return [] if had_ended else None
        if found.status != "waiting":
            self.due, self._untold = False, frozenset()
            return None
        asked = frozenset(found.message.metadata.get("waiting_for", ()) if found.message else ())
        untold = asked - self._told
        if untold and untold != self._untold:
            self._untold = untold  # asked about in this moment, perhaps: then the next page tells of it
            return None
        return [*_asked_again([call for call in await self._pending() if call.call_id in untold])] if untold else []

    async def is_left_to_others(self) -> bool:
        """Whether it is still being made, by sub-agents: asked right before that is told."""
        found = await self._standing(self._reply_id)
        self.delegates = found.delegates
        return found.delegates

    @property
    def reply_id(self) -> str:
        return self._reply_id


class Until:
    """A session's events in bunches, as `Following` has them, until the reply has ended or waits. Close it."""

    def __init__(self, following: Following, questions: Questions, asks_below: AsksBelow) -> None:
        self._following = following
        self._questions = questions
        self._below = LooksBelow(asks_below)
        self.over: Literal["", "finished", "waiting"] = ""
        """Why the last bunch was the last one."""

    async def next(self) -> list[AgentEvent]:
        """Raises NoReply, and what `Following.next` does."""
        events = await self._following.next()
        for place, event in enumerate(events, 1):
            self._questions.hear(event)
            if event.type == "REPLY_END" and self._questions.is_of_it(event):
                self.over = "finished"
                return events[:place]
        if self._following.is_fresh and self._questions.due:
            if (last := await self._questions.open_ones()) is not None:
                self.over = "finished" if self._questions.has_ended else "waiting"
                return [*events, *last]
            if self._questions.due:
                self._following.expect_news()
        if events:
            self._below.stirred()
        elif self._questions.delegates:
            asked = await self._below.look()
            if asked and await self._questions.is_left_to_others():
                self.over = "waiting"
                return [waits_below(self._questions.reply_id, asked)]
        return events

    async def aclose(self) -> None:
        await self._following.aclose()


_REQUIRES: tuple[tuple[str, EventType, ToolCallState], ...] = (
    ("person", "REQUIRE_USER_CONFIRM", ToolCallState.ASKING),
    ("outside", "REQUIRE_EXTERNAL_EXECUTION", ToolCallState.SUBMITTED),
)


def _asked_again(pending: Sequence[PendingCall]) -> Iterator[AgentEvent]:
    """Questions that were recorded before, as events without a number; just the calls that still wait."""
    for whom, kind, state in _REQUIRES:
        calls = [call for call in pending if call.waits_for == whom]
        if not calls:
            continue
        blocks = tuple(
            ToolCallBlock(
                id=call.call_id, name=call.tool, input=call.input, state=state, suggested_rules=call.suggested_rules
            )
            for call in calls
        )
        shown = {
            call.call_id: {**call.preview.model_dump(mode="json"), "reason": call.reason, "digest": call.digest}
            for call in calls
            if call.preview
        }
        value = {"previews": shown} if shown else None
        yield AgentEvent(type=kind, reply_id=calls[0].reply_id, tool_calls=blocks, value=value)


log = logging.getLogger(__name__)

UNHEARD_SECONDS = 1.0
"""Until a look where a stream has said nothing yet."""
LONGEST_UNHEARD_SECONDS = 5.0
LONGEST_HEARD_SECONDS = 20.0
"""A stream that is heard tells nearly all ends. This is for those that it does not tell."""

Ask = Callable[[str], Awaitable[ReplyResult]]
"""How the reply of an id stands."""


async def events_of(reply_id: str, until: Until, *, once: bool) -> AsyncGenerator[AgentEvent]:
    """Its own among the events of the session, whose reader is closed with it. `once`: of what was told live, the
    record tells the rest."""
    told = ToldOnce()
    async with aclosing(until):
        while not until.over:
            for event in await until.next():
                if event.reply_id == reply_id:
                    for each in told.of(event) if once else (event,):
                        yield each


async def message_of(
    reply_id: str,
    result: Ask,
    stream: LiveStream,
    moves: Moves,
    asks_below: AsksBelow,
    *,
    just_asked: bool = False,
) -> Msg:
    """Asks when the stream says that the reply may have ended, or the server that the session has come to rest: a
    question costs the session's worker as much as a step of its own. What its workers lack is logged. `just_asked`: the
    request is a new one, with a reply of its own to come. Raises NoReply for an unknown one."""
    pauses, ends, lacking = Pauses(), ToldEnds(reply_id), ""
    async with aclosing(stream):
        await stream.reach(guess=True)
        if just_asked and not await stream.pass_over(ends):
            await _rest(stream, ends, moves, pauses, None)
        elif not just_asked:
            await moves.note()
        while True:
            await stream.pass_over(ends)
            found = await result(reply_id)
            if found.message is not None and found.status in ("finished", "waiting"):
                if stream.silent:
                    stream.unknown_outcome()
                return found.message
            if found.status == "unknown":
                raise NoReply(f"the session knows no reply {reply_id!r}")
            lacking = _tell_lacking(reply_id, found, lacking)
            if found.status != "queued":
                ends.is_made(found.message.id if found.message is not None else reply_id)
            if stream.silent and stream.reached:
                await stream.look_again()  # it says nothing of what is recorded
            asked = await _rest(stream, ends, moves, pauses, asks_below if found.delegates else None)
            if asked and found.message is not None:
                waiting = {"waiting_for": [call.call_id for call in asked]}
                return found.message.model_copy(update={"metadata": {**found.message.metadata, **waiting}})


def _tell_lacking(reply_id: str, found: ReplyResult, told: str) -> str:
    """Logged once; returns what was told last."""
    if found.lacking and found.lacking != told:
        log.warning("reply %s waits for a worker that can continue: %s", reply_id, one_line(found.lacking))
    return found.lacking or told


async def _rest(
    stream: LiveStream, ends: ToldEnds, moves: Moves, pauses: Pauses, asks_below: AsksBelow | None
) -> Sequence[PendingCall]:
    """Until it is time to ask, or until nothing moves any more without an answer to what sub-agents ask, which is
    returned."""
    below = None if asks_below is None else LooksBelow(asks_below)
    while True:
        # Seconds between looks. They cost little, but not nothing: the longer it has been, the less a person minds.
        if stream.reached and stream.heard:
            pause = max(pauses.length(LONGEST_HEARD_SECONDS), LONGEST_WITH_STREAM_SECONDS)
        else:
            pause = max(pauses.length(LONGEST_UNHEARD_SECONDS), UNHEARD_SECONDS if stream.reached else 0.0)
        if await stream.rest(pause if below is None else min(pause, below.apart), ends):
            return ()
        if not stream.heard:
            await stream.make_sure()
        if await moves.due(told=stream.reached and stream.heard and not stream.silent):
            return ()
        if below is not None and (asked := await below.look()):
            return asked
