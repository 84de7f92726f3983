"""Batches hold what waits to be written to one stream: bounded, in order, neighbouring pieces joined, numbered when it
is taken.

One attempt's way into the live stream, and the mask that each text passes on its way.

Publishes what activities put into the live streams: given away at once, written in batches, and never waited for.

An activity hands over a piece and goes on. Pieces of one session are joined while a batch of it is being written, so a
slow store gets few and large ones. What does not fit into the buffer, or comes while the store is out of reach, is
dropped, and readers are told: no session depends on it.
"""

import asyncio
import contextlib
import hashlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from longhaul.stores.streams.streams import PIECES, SETTLED, Item, Kind, Piece, Streams, StreamsUnavailable, encode

MOST_CHARACTERS = 256_000
"""Waiting to be written, of one session."""
MOST_OF_AN_ATTEMPT = 2_000_000
"""Characters: a tool that floods its output is shown no further."""
BATCH_BYTES = 32_000
"""Of one write, about: small enough to be one piece in a file."""
LONGEST_PIECE = 8_000
"""Characters of one line."""
READ_AT_ONCE: frozenset[Kind] = frozenset(("text", "thinking", "output"))
"""What a person reads as it comes."""


@dataclass(slots=True)
class WrittenAttempt:
    """One attempt at a call, as far as it was written."""

    call: str
    turn: int
    attempt: int
    items: int = 0
    characters: int = 0
    dropped: bool = False
    """Since the last item that was taken."""
    digest: Any = field(default_factory=hashlib.sha256)
    """Of all pieces that were written."""


@dataclass(slots=True)
class WaitingPieces:
    kind: Kind
    attempt: WrittenAttempt | None = None
    block: int = 0
    text: str = ""
    tool_call_id: str = ""
    name: str = ""

    def continues(self, other: "WaitingPieces") -> bool:
        """Whether it can be joined to the one before it."""
        return (
            self.kind in PIECES
            and (self.kind, self.block, self.tool_call_id, self.name)
            == (other.kind, other.block, other.tool_call_id, other.name)
            and self.attempt is other.attempt
            and len(self.text) + len(other.text) <= LONGEST_PIECE
        )


def _is_urgent(one: WaitingPieces) -> bool:
    """Also the end of what came in pieces: who has seen the first ones is to see the last before all is recorded."""
    started = one.attempt is not None and one.attempt.items > 0
    return one.kind in READ_AT_ONCE or one.name == SETTLED or (one.kind == "end" and started)


class Batches:
    def __init__(self) -> None:
        self._waiting: list[WaitingPieces] = []
        self._characters = 0
        self._urgent = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, new: WaitingPieces) -> None:
        """Pieces that there is no room for are dropped, and that is said; marks are always taken."""
        attempt = new.attempt
        if attempt is not None and new.kind in PIECES:
            attempt.characters += len(new.text)
            if self._characters + len(new.text) > MOST_CHARACTERS or attempt.characters > MOST_OF_AN_ATTEMPT:
                attempt.dropped = True
                return
        if attempt is not None and attempt.dropped:
            attempt.dropped = False
            self._waiting.append(WaitingPieces("lost", attempt))
        self._characters += len(new.text)
        self._urgent = self._urgent or _is_urgent(new)
        if self._waiting and new.continues(self._waiting[-1]):
            self._waiting[-1].text += new.text
        elif not (new.kind == "wake" and not new.name and self._waiting and self._waiting[-1].kind == "wake"):
            self._waiting.append(new)

    @property
    def urgent(self) -> bool:
        """Whether there is something that a person would read as it comes, or somebody waits for."""
        return self._urgent or self._characters > BATCH_BYTES

    def take(self) -> bytes:
        """The lines of the next batch; empty when nothing waits."""
        lines, taken = bytearray(), 0
        while taken < len(self._waiting) and len(lines) < BATCH_BYTES:
            lines += encode(self._numbered(self._waiting[taken]))
            taken += 1
        del self._waiting[:taken]
        self._urgent = any(map(_is_urgent, self._waiting))
        return bytes(lines)

    def _numbered(self, one: WaitingPieces) -> Item:
        self._characters -= len(one.text)
        attempt = one.attempt
        if attempt is None:
            return Item(one.kind, name=one.name, text=one.text)
        index, text = attempt.items, one.text
        attempt.items += 1
        if one.kind in PIECES:
            attempt.digest.update(text.encode("utf-8", "surrogatepass"))
        elif one.kind == "end":
            text = attempt.digest.hexdigest()[:16]
        return Item(
            one.kind, attempt.call, attempt.turn, attempt.attempt, index, one.block, text, one.tool_call_id, one.name
        )


class Mask(Protocol):
    """Takes one block's text in pieces and gives back what may be shown of it. It may keep the end of a piece back
    until it has seen how it goes on: what it hides may be torn."""

    def feed(self, piece: str) -> str: ...

    def end(self) -> str:
        """What was kept back, when no more comes."""
        ...


class Unmasked:
    """Shows everything."""

    def feed(self, piece: str) -> str:
        return piece

    def end(self) -> str:
        return ""


Put = Callable[[WaitingPieces], None]


class Outlet:
    """What an activity writes to while it works on one attempt. Nothing here waits or raises."""

    def __init__(self, put: Put, mask: Callable[[], Mask], attempt: WrittenAttempt, name: str = "") -> None:
        self._put = put
        self._new_mask = mask
        self._masks: dict[tuple[Piece, int], tuple[Mask, str, str]] = {}
        self._attempt = attempt
        put(WaitingPieces("begin", attempt, name=name))

    def write(self, kind: Piece, text: str, *, block: int = 0, tool_call_id: str = "", name: str = "") -> None:
        """Publish the next piece of a block."""
        mask, *_ = self._masks.get((kind, block), (self._new_mask(), "", ""))
        self._masks[kind, block] = (mask, tool_call_id, name)
        self._publish(kind, mask.feed(text), block, tool_call_id, name)

    def end(self) -> None:
        """The attempt has come to a result; without it, readers take what they have for torn."""
        for (kind, block), (mask, tool_call_id, name) in self._masks.items():
            self._publish(kind, mask.end(), block, tool_call_id, name)
        self._put(WaitingPieces("end", self._attempt))

    def _publish(self, kind: Piece, text: str, block: int, tool_call_id: str, name: str) -> None:
        for start in range(0, len(text), LONGEST_PIECE):
            piece = text[start : start + LONGEST_PIECE]
            self._put(WaitingPieces(kind, self._attempt, block, piece, tool_call_id, name))


log = logging.getLogger(__name__)

FIRST_SECONDS = 0.001
"""How long the first piece waits for others: an answer that comes all at once is one write."""
BETWEEN_BATCHES_SECONDS = 0.004
"""What comes within this time after a batch goes out together."""
MARKS_SECONDS = 0.2
"""How long marks, and the arguments of calls, wait for what goes with them: a step that says nothing to a person costs
no write of its own, and who watches sees what is done within a glance. Arguments that take longer come to their end at
once."""
SILENT_SECONDS = 1.0
"""Nothing is written for so long to a store that has just failed."""
WRITE_SECONDS = 2.0
CLOSE_SECONDS = 1.0


class Publisher:
    """One per worker, for the event loop in which it is first used; an outlet may be written to from any thread."""

    def __init__(self, streams: Streams, mask: Callable[[], Mask] = Unmasked) -> None:
        """`mask` makes what each block's text passes through before it leaves the worker."""
        self._streams = streams
        self._mask = mask
        self._waiting: dict[str, Batches] = {}
        """By key; one is there as long as its session has something to write."""
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}
        """Of those that are not being written."""
        self._silent_until = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def open(self, key: str, call: str, *, turn: int, attempt: int, name: str = "") -> Outlet:
        """Begin an attempt at a call; its pieces go through what is returned."""
        self._bind()
        return Outlet(lambda new: self._put(key, new), self._mask, WrittenAttempt(call, turn, attempt), name)

    def wake(self, key: str, *, settled: bool = False, begins: str = "") -> None:
        """Tell readers that the session has done something; `settled`, that a reply has ended or waits; `begins`, which
        reply is started."""
        self._bind()
        self._put(key, WaitingPieces("wake", name=SETTLED if settled or begins else "", text=begins))

    async def close(self) -> None:
        """Write what is waiting, for a second at most; the streams themselves stay open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._waiting:
                    for key in list(self._later):
                        self._begin(key)
                    await asyncio.wait(list(self._writing.values()))
        for task in self._writing.values():
            task.cancel()

    def _bind(self) -> None:
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def _put(self, key: str, new: WaitingPieces) -> None:
        if threading.get_ident() == self._thread:
            self._put_here(key, new)
        elif self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put_here, key, new)

    def _put_here(self, key: str, new: WaitingPieces) -> None:
        batches = self._waiting.setdefault(key, Batches())
        batches.put(new)
        if key in self._writing:
            return
        timer = self._later.get(key)
        if timer is None:
            self._begin_within(FIRST_SECONDS if batches.urgent else MARKS_SECONDS, key)
        elif batches.urgent and timer.when() > asyncio.get_running_loop().time() + FIRST_SECONDS:
            timer.cancel()
            self._begin_within(FIRST_SECONDS, key)

    def _begin_within(self, seconds: float, key: str) -> None:
        self._later[key] = asyncio.get_running_loop().call_later(seconds, self._begin, key)

    def _begin(self, key: str) -> None:
        if (timer := self._later.pop(key, None)) is not None:
            timer.cancel()
        self._writing[key] = asyncio.get_running_loop().create_task(self._write_all(key, self._waiting[key]))

    async def _write_all(self, key: str, batches: Batches) -> None:
        """What is waiting now, and what comes meanwhile and can't wait."""
        while lines := batches.take():
            await self._write(key, lines)
            await asyncio.sleep(BETWEEN_BATCHES_SECONDS)
            if not batches.urgent:
                break
        del self._writing[key]
        if batches:
            self._begin_within(MARKS_SECONDS, key)
        else:
            del self._waiting[key]

    async def _write(self, key: str, lines: bytes) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._silent_until:
            return
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._streams.append(key, lines)
        except Exception as error:  # noqa: BLE001  a store may be anybody's; whatever it does, the session goes on
            self._silent_until = loop.time() + SILENT_SECONDS
            why = error if isinstance(error, StreamsUnavailable) else repr(error)
            if isinstance(error, TimeoutError):
                why = f"their store did not answer within {WRITE_SECONDS:g} s"
            log.warning("live deltas are lost: %s", why)
