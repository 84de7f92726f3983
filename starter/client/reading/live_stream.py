"""One session's live stream: its items as events, in order, of the newest attempt alone, and each word of a reply
once.

Reading it never fails, it only goes silent: what was not told live, the journal tells.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from temporalio.client import Client, WorkflowQueryFailedError

from longhaul.agent.views.event_types import AgentEvent, EventType, Live
from longhaul.starter.client.reading.queries import Asking
from longhaul.starter.connection.connect import keyring_in
from longhaul.starter.settings import Settings
from longhaul.stores.streams.open_streams import decrypting, reach
from longhaul.stores.streams.streams import (
    PIECES,
    SETTLED,
    Item,
    StreamReader,
    Streams,
    StreamsUnavailable,
    decode,
    key_of,
    model_call,
    tool_call,
)
from longhaul.workflows.contract import EventPage

BREATH_SECONDS = 0.025
"""Between looks of somebody who waits for the end, and has no use for the pieces."""
LONGEST_REST_SECONDS = 5.0
"""While a session speaks on. Not every end is told: that of a request which is dropped is not, nor one behind which the
next reply begins while a checkpoint is still being written."""
AGAIN_SECONDS = 2.0
"""Between tries to read a stream that has failed."""

_last_told = WeakKeyDictionary[Client, str]()
"""Where the session was whose address was asked for last: most often all sessions of a client are there."""


class LiveStream:
    """A place in the stream; it begins with the oldest item that is kept. Close it."""

    def __init__(self, asking: Asking, settings: Settings, workflow_id: str) -> None:
        self._asking = asking
        self._settings = settings
        self._key = key_of(asking.client.namespace, workflow_id)
        self._streams: Streams | None = None
        self._reader: StreamReader | None = None
        self._address: str | None = None
        """None: not asked for yet."""
        self._guessed = False
        self.heard = False
        """Whether it has said anything: one that has will say when there is more."""
        self.silent = False
        """Whether it said nothing at all while it was waited for last."""
        self.trouble = ""
        """Why nothing can be read; empty while it can, or was not tried yet."""

    async def read(self, seconds: float) -> list[Item]:
        """What comes next; nothing after so many seconds, or without a stream. Cut short only by what comes."""
        return [item for line in await self._lines(seconds) if (item := decode(line)) is not None]

    async def reach(self, *, guess: bool = False) -> bool:
        """Whether it can be read, as far as is known. The session is asked once where it is.

        `guess`: take it to be where another session's was, which saves the question; `make_sure` puts it.
        """
        if self._address is None:
            known = self._asking.stream_address
            if known is None and guess:
                known = _last_told.get(self._asking.client)
                self._guessed = known is not None
            await self._reach(await self._ask_session() if known is None else known)
        return self.reached

    async def make_sure(self) -> None:
        """Of an address that was guessed: what the stream has said there may be of an earlier time."""
        if self._guessed:
            self._guessed = False
            await self.look_again()

    def unknown_outcome(self) -> None:
        """The session came to something of which this stream said nothing: who reads it next asks where it is."""
        if self.reached and self._asking.stream_address == self._address:
            self._asking.stream_address = None
            _last_told.pop(self._asking.client, None)

    async def _lines(self, seconds: float, *, gently: bool = False) -> list[bytes]:
        await self.reach()
        if self._reader is None:
            await asyncio.sleep(seconds)
            return []
        try:
            lines = await self._reader.read(seconds, gently=gently)
        except StreamsUnavailable as error:
            self.trouble = str(error)
            await asyncio.sleep(min(max(seconds, 0.01), AGAIN_SECONDS))
            return []
        self.trouble = ""
        self.heard = self.heard or bool(lines)
        return lines

    async def pass_over(self, ends: "ToldEnds") -> bool:
        """All that it has said so far: whoever asks the session next hears what came of it. Whether the reply may have
        ended by then."""
        told = list[bool]()
        while lines := await self._lines(0):
            told += [ends.hear(line) for line in lines]
        return any(told)

    async def rest(self, seconds: float, ends: "ToldEnds") -> bool:
        """Until the reply may have ended, or wait for somebody, which is True; or until nothing was said for so long.
        While it speaks on that is LONGEST_REST_SECONDS, or `seconds` where they are more."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        latest = loop.time() + max(LONGEST_REST_SECONDS, seconds)
        self.silent = True
        while (left := until - loop.time()) > 0:
            lines = await self._lines(left, gently=True)
            self.silent = self.silent and not lines
            told = [ends.hear(line) for line in lines]
            if any(told):
                return True
            if lines:
                until = min(loop.time() + seconds, latest)
            await asyncio.sleep(min(BREATH_SECONDS, left))
        return False

    @property
    def reached(self) -> bool:
        return self._reader is not None and not self.trouble

    async def look_again(self) -> None:
        """Where the session's stream is by now: another worker may write to another one, or it has come back."""
        address = await self._ask_session()
        if address != self._address or self.trouble:
            await self.aclose()
            await self._reach(address)

    async def _ask_session(self) -> str:
        """By the session: the client's own folders may be others than the worker's. Empty: of no stream."""
        try:
            told = await self._asking.query("stream", str)
        except WorkflowQueryFailedError:
            return ""  # a session that could not begin
        _last_told[self._asking.client] = self._asking.stream_address = told
        return told

    async def _reach(self, address: str) -> None:
        self._address = address
        self.heard = False
        try:
            self._streams = await reach(address, redis_url=self._settings.redis_url)
            self._reader = decrypting(self._streams.reader(self._key), keyring_in(self._asking.client), self._key)
        except StreamsUnavailable as error:
            self.trouble = str(error)
        else:
            self.trouble = ""

    async def aclose(self) -> None:
        """It may be read again, from the oldest item that is kept."""
        reader, streams, self._reader, self._streams = self._reader, self._streams, None, None
        if reader is not None:
            await reader.close()
        if streams is not None:
            await streams.close()


class ToldEnds:
    """What a stream tells of the end of one reply."""

    def __init__(self, reply_id: str) -> None:
        self._reply_id = reply_id
        self._started = False
        """Whether the reply is the newest one that was started: of others nothing is told."""

    def is_made(self, reply_id: str) -> None:
        """The reply is being made, perhaps as a part of that one."""
        self._reply_id, self._started = reply_id, True

    def hear(self, line: bytes) -> bool:
        """Whether it may have ended by then, or wait for somebody."""
        if SETTLED.encode() not in line:
            return False
        item = decode(line)
        if item is None or item.kind != "wake" or item.name != SETTLED:
            return False
        if not item.text:
            return self._started
        before, self._started = self._started, item.text == self._reply_id
        return before and not self._started


RESTARTED = "restarted"
"""Name of the CUSTOM event: what was shown of this call does not count, it is made once more."""
LOST = "lost"
"""Name of the CUSTOM event: some of what is shown of this call is missing; the journal will have it."""

_TYPES: dict[str, tuple[EventType | None, EventType, EventType | None]] = {
    "text": ("TEXT_BLOCK_START", "TEXT_BLOCK_DELTA", "TEXT_BLOCK_END"),
    "thinking": ("THINKING_BLOCK_START", "THINKING_BLOCK_DELTA", "THINKING_BLOCK_END"),
    "tool_call": ("TOOL_CALL_START", "TOOL_CALL_DELTA", "TOOL_CALL_END"),
    "output": (None, "TOOL_RESULT_TEXT_DELTA", None),
}
"""Kind of a piece to the events of its block. A result's start and end are the journal's alone."""


@dataclass(slots=True)
class _Call:
    """The newest attempt at one call, as far as it was told."""

    fence: tuple[int, int]
    """When it was asked for, and the attempt: what is lower is of the past."""
    next: int = 0
    told: bool = False
    lost: bool = False
    block: AgentEvent | None = field(default=None)
    """The last event of a block that is open."""


class LiveEvents:
    """One reader's view."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._open: frozenset[str] = frozenset()
        self._model_calls = 0
        self._since = 0
        """Microseconds, as in items."""
        self.reply_id = ""

    def recorded(self, page: EventPage) -> None:
        """What the session said last: items of calls that have come to a result are of the past."""
        if page.reply_id != self.reply_id:
            # A call of this number may be open again: nothing of it was told in this reply.
            for call in self._calls.values():
                call.told = call.lost = False
                call.block = None
        self.reply_id = page.reply_id
        self._open = frozenset(tool_call(call_id) for call_id in page.open_calls)
        self._model_calls = page.model_calls
        self._since = page.since * 1000
        self._calls = {name: call for name, call in self._calls.items() if self.is_open(name)}

    def of(self, item: Item) -> Iterator[AgentEvent]:
        """What is told of an item; nothing of most marks."""
        # The stream begins with what is kept: also with calls of this number in a reply that was cut off before.
        if not self.reply_id or not self.is_open(item.call) or item.turn < self._since:
            return
        fence = (item.turn, item.attempt)
        call = self._calls.get(item.call)
        if call is None or call.fence < fence:
            if call is not None and call.told:
                yield from self._ended_block(call)
                yield self._event(item, "CUSTOM", name=RESTARTED)
            call = self._calls[item.call] = _Call(fence)
        if call.fence > fence or item.index < call.next:
            return
        gap = item.index > call.next or item.kind == "lost"
        call.next = item.index + 1
        if gap and not call.lost:
            call.lost = call.told = True
            yield self._event(item, "CUSTOM", name=LOST)
        yield from self._ask_session(call, item)

    def _ask_session(self, call: _Call, item: Item) -> Iterator[AgentEvent]:
        if item.kind == "begin" and item.call.startswith("model:"):
            call.told = True
            yield self._event(item, "MODEL_CALL_START", model_name=item.name)
        elif item.kind == "end":
            yield from self._ended_block(call)
        elif item.kind in PIECES:
            call.told = True
            yield from self._piece(call, item)

    def _piece(self, call: _Call, item: Item) -> Iterator[AgentEvent]:
        start, delta, _ = _TYPES[item.kind]
        block_id = f"{item.call}.{item.attempt}.{item.block}"
        match item.kind:
            case "tool_call":
                about = {"block_id": block_id, "tool_call_id": item.tool_call_id, "tool_call_name": item.name}
            case "output":
                about = {"block_id": block_id, "tool_call_id": item.call.removeprefix("tool:")}
            case _:
                about = {"block_id": block_id}
        if call.block is None or (call.block.type, call.block.block_id) != (delta, about["block_id"]):
            yield from self._ended_block(call)
            if start is not None:
                yield self._event(item, start, **about)
        call.block = self._event(item, delta, delta=item.text, **about)
        yield call.block

    def _ended_block(self, call: _Call) -> Iterator[AgentEvent]:
        last, call.block = call.block, None
        for _, delta, end in _TYPES.values():
            if last is not None and last.type == delta and end is not None:
                yield last.model_copy(update={"type": end, "delta": ""})

    def _event(self, item: Item, kind: EventType, **about: Any) -> AgentEvent:
        live = Live(call=item.call, attempt=item.attempt, index=item.index)
        return AgentEvent(type=kind, reply_id=self.reply_id, live=live, **about)

    def is_of_now(self, item: Item) -> bool:
        """Whether it is of a call that was asked for in the reply that is being made."""
        return item.kind != "wake" and item.turn >= self._since

    def is_open(self, name: str) -> bool:
        """Whether a call had no result when the session was asked last."""
        return name in self._open or name == model_call(self._model_calls)


WITHDRAWN = "withdrawn"
"""Name of the CUSTOM event: what was told live of this block is not in the journal; what is follows whole."""

_DELTAS = ("TEXT_BLOCK_DELTA", "THINKING_BLOCK_DELTA", "TOOL_CALL_DELTA", "TOOL_RESULT_TEXT_DELTA")


@dataclass(slots=True)
class _Block:
    """One that was told live, as far as it was."""

    kind: str
    block_id: str
    tool_call_id: str
    live: Live
    pieces: list[str] = field(default_factory=list[str])
    blank: bool = True
    """As far as it has come; a block that stays so is not recorded, so it is not told before it says something."""


class ToldOnce:
    """The events of one reply on their way to a reader, in the order in which they come."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, str], _Block] = {}
        """By call and block, in the order in which they were started."""
        self._broken: set[str] = set()
        """Live calls of which pieces are missing: from there on the journal tells them."""

    def of(self, event: AgentEvent) -> list[AgentEvent]:
        if event.live is not None:
            return self._live(event, event.live)
        if not event.seq:
            return [event]
        if event.type in _DELTAS:
            block = self._next(event)
            if block is None:
                return [event]
            told = "".join(block.pieces)
            if not event.delta.startswith(told):
                return [_withdrawn(block, event), event]
            return [event.model_copy(update={"delta": event.delta[len(told) :], "whole": event.delta})]
        if event.type == "MODEL_CALL_END":
            return [*self._left_over("model:", event), event]
        if event.type == "REPLY_END":
            return [*self._left_over("", event), event]
        return [event]

    def _live(self, event: AgentEvent, live: Live) -> list[AgentEvent]:
        if event.name == RESTARTED:
            self._broken.discard(live.call)
            self._blocks = {key: block for key, block in self._blocks.items() if key[0] != live.call}
        elif event.name == LOST:
            self._broken.add(live.call)
        elif event.block_id and live.call in self._broken:
            return []
        elif event.type in _DELTAS:
            return self._piece(event, live)
        return [event]

    def _piece(self, event: AgentEvent, live: Live) -> list[AgentEvent]:
        key = (live.call, event.block_id)
        if key not in self._blocks:
            self._blocks[key] = _Block(event.type, event.block_id, event.tool_call_id, live)
        block = self._blocks[key]
        block.pieces.append(event.delta)
        if not block.blank:
            return [event]
        said = "".join(block.pieces)
        block.blank = not said.strip()
        return [] if block.blank else [event.model_copy(update={"delta": said})]

    def _next(self, event: AgentEvent) -> _Block | None:
        """The first that was told of this kind: the journal has another id for it, and for its call perhaps, too. Of a
        tool's output the one of the call."""
        output = event.type == "TOOL_RESULT_TEXT_DELTA"
        for key, block in self._blocks.items():
            if (
                block.kind == event.type
                and not block.blank
                and (not output or block.tool_call_id == event.tool_call_id)
            ):
                return self._blocks.pop(key)
        return None

    def _left_over(self, calls: str, event: AgentEvent) -> list[AgentEvent]:
        """Of these calls, what the journal has nothing of."""
        left = {key: block for key, block in self._blocks.items() if key[0].startswith(calls)}
        self._blocks = {key: block for key, block in self._blocks.items() if key not in left}
        return [_withdrawn(block, event) for block in left.values() if not block.blank]


def _withdrawn(block: _Block, event: AgentEvent) -> AgentEvent:
    return AgentEvent(
        type="CUSTOM",
        name=WITHDRAWN,
        reply_id=event.reply_id,
        block_id=block.block_id,
        tool_call_id=block.tool_call_id,
        live=block.live,
    )
