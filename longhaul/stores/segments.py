"""Cuts entries into segments, and picks the older segments that are written again with them. Pure.

Small segments are merged as digits of a counter carry over: whatever is written again ends in a segment half as large
again or larger, so an entry is written a number of times that grows with the logarithm of the limit, and the
segments below the limit are few.

Boundaries found while entries are written down: from one that is known, the entries tell all that come after it. Pure.

Segments: entries of a session written down in the blob store, as JSON lines, once and for ever.

Before the entries may stand a line that tells what was open there, so that nothing older has to be read with them.
A segment lies under the digest of its text: a second attempt writes the same thing to the same place, and whoever reads
it knows that it is what was written.

Messages by number out of segments: only those segments are opened that hold what is wanted, one at a time.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from longhaul.agent.entries import AnyEntry, Segment
from longhaul.agent.incarnation.history import History
from longhaul.agent.plain.errors import Damaged
from longhaul.agent.values.conversation.messages import Msg
from longhaul.stores.blobs.blobs import BlobStore, NoBlob
from longhaul.stores.keys.keyring import Keyring
from longhaul.stores.keys.open_keyring import get_disclosed, put_enclosed

Item = TypeVar("Item")

SEGMENT_BYTES = 512_000


class Merge(NamedTuple):
    """`keep` of the older segments, from the oldest, stay; the entries of the others go before the new ones."""

    keep: int
    size: int
    """Bytes of all that is written."""


def plan(older: Sequence[int], new: int, limit: int = SEGMENT_BYTES) -> Merge:
    """Which of the older segments are merged with `new` bytes of entries; `older` are their sizes, oldest first."""
    keep, size = len(older), new
    while new and keep and older[keep - 1] < 2 * size and older[keep - 1] + size <= limit:
        keep -= 1
        size += older[keep]
    return Merge(keep, size)


def cut(items: Sequence[tuple[Item, int]], limit: int = SEGMENT_BYTES) -> list[list[Item]]:
    """Items with their sizes in groups of at most `limit`, in order; an item that is larger stands alone."""
    groups: list[list[Item]] = []
    room = 0
    for item, size in items:
        if not groups or size > room:
            groups.append([])
            room = limit
        groups[-1].append(item)
        room -= size
    return groups


class Begin(NamedTuple):
    """How a segment begins."""

    messages: int | None
    """Messages before it; None when the boundary is not known, or too large to be written down."""
    boundary: Any


class BoundaryWalk:
    """Goes over entries in order. Where too much is open to be written down, the boundary is not known."""

    def __init__(self, known: Mapping[int, Any]) -> None:
        """`known`: by the entry before which they are."""
        self._known = {seq: boundary for seq, boundary in known.items() if boundary is not None}
        self._history: History | None = None
        self._behind: Sequence[AnyEntry] = ()

    def before(self, seq: int) -> Begin:
        """Before this entry, which is the next one."""
        entries, self._behind = self._behind, ()
        try:
            for entry in entries:
                self._history = self._started(entry.seq)
                if self._history is not None:
                    self._history.take(entry)
        except (LookupError, ValueError):
            # Raised, it would fail every checkpoint of a session; unknown, it only makes reading slower.
            self._known, self._history = {}, None
        history = self._started(seq)
        boundary = history.boundary if history else None
        return (
            Begin(history.messages_total, boundary)
            if history and (boundary is not None or seq == 1)
            else Begin(None, None)
        )

    def over(self, entries: Sequence[AnyEntry]) -> None:
        """They are reduced when it is asked what comes behind them: mostly it is not."""
        self._behind = entries

    def _started(self, seq: int) -> History | None:
        if self._history is not None or seq == 1:
            return self._history or History()
        try:
            return History.at(self._known[seq]) if seq in self._known else None
        except ValueError:
            return None


BOUNDARY = "boundary"
"""The kind of a segment's first line, where it has one that is no entry."""
_BOUNDARY_START = b'{"kind":"boundary",'
_ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(AnyEntry)


class DamagedSegment(Damaged, RuntimeError):
    """A segment is missing, or differs from what was written. The sentence says which segment and what to do."""

    def __init__(self, segment: Segment, wrong: str) -> None:
        super().__init__(
            f"blobs: the segment {segment.key!r} (entries {segment.first_seq} to {segment.last_seq}) can't be used: "
            f"{wrong}. Restore it from a backup of the blob store; what the session shows its model is not affected"
        )
        self.segment = segment


class Extended(NamedTuple):
    """`keep` of the given segments, from the oldest, stay as they are; `new` come after them."""

    keep: int
    new: tuple[Segment, ...]


class Whole(NamedTuple):
    """What stands in a segment."""

    boundary: Any
    """What was open before its first entry, as `agent.incarnation.history.boundary_of` says it; None = unknown, or
    nothing was."""
    entries: list[AnyEntry]


class Segments:
    def __init__(self, blobs: BlobStore, limit: int = SEGMENT_BYTES, keys: Keyring | None = None) -> None:
        """With `keys`, what is written is encrypted."""
        self._blobs = blobs
        self._keys = keys
        self._limit = limit

    async def extend(
        self,
        prefix: str,
        older: Sequence[Segment],
        entries: Sequence[AnyEntry],
        boundary: Any = None,
        *,
        few: bool = False,
    ) -> Extended:
        """Write entries down, and with them again those of small older segments. One of those that can't be read stays
        as it is. `boundary`: before the first of `entries`. `few`: they are short together, so that no thread has to
        spell them. Raises what the blob store raises when it does not answer."""
        lines = encode_entries(entries) if few else await asyncio.to_thread(encode_entries, entries)
        keep, _ = plan([segment.size for segment in older], sum(len(line) for _, line in lines), self._limit)
        again: list[tuple[AnyEntry, bytes]] = []
        boundaries = {entry.seq: boundary for entry in entries[:1]}
        while keep < len(older):
            try:
                read = [await self.read_whole(segment) for segment in older[keep:]]
            except DamagedSegment as damage:
                keep = older.index(damage.segment) + 1
            else:
                again = [(entry, line_of(entry)) for whole in read for entry in whole.entries]
                boundaries |= {whole.entries[0].seq: whole.boundary for whole in read}
                break
        few = few and not again
        return Extended(keep, tuple(await self._write(prefix, [*again, *lines], BoundaryWalk(boundaries), few=few)))

    async def write(self, prefix: str, entries: Sequence[AnyEntry]) -> list[Segment]:
        """Write entries down as they come, in as few segments as hold them."""
        return await self._write(prefix, encode_entries(entries), BoundaryWalk({}))

    async def read(self, segment: Segment) -> list[AnyEntry]:
        """Exactly the entries that were written. Raises DamagedSegment, or what the blob store raises."""
        return (await self.read_whole(segment)).entries

    async def read_whole(self, segment: Segment) -> Whole:
        """The same, with the boundary before them."""
        try:
            data = await get_disclosed(self._blobs, self._keys, segment.key)
        except (NoBlob, ValueError) as error:
            raise DamagedSegment(segment, str(error)) from error
        return await asyncio.to_thread(_read, segment, data)

    async def _write(
        self, prefix: str, lines: Sequence[tuple[AnyEntry, bytes]], walk: BoundaryWalk, *, few: bool = False
    ) -> list[Segment]:
        groups = cut([(pair, len(pair[1])) for pair in lines], self._limit)
        segments: list[Segment] = []
        for group in groups:
            first, last = group[0][0].seq, group[-1][0].seq
            begin = walk.before(first) if few else await asyncio.to_thread(walk.before, first)
            boundary_line = (
                b""
                if begin.boundary is None
                else json.dumps({"kind": BOUNDARY, "boundary": begin.boundary}, separators=(",", ":")).encode() + b"\n"
            )
            data = b"".join([boundary_line, *(line for _, line in group)])
            key = await put_enclosed(self._blobs, self._keys, prefix, data)
            # Read back and checked before anybody relies on it: the session forgets what it has written down.
            await self._blobs.get(key)
            walk.over([entry for entry, _ in group])
            segments.append(Segment(key=key, first_seq=first, last_seq=last, size=len(data), messages=begin.messages))
        return segments


def encode_entries(entries: Sequence[AnyEntry]) -> list[tuple[AnyEntry, bytes]]:
    """Each with its line."""
    return [(entry, line_of(entry)) for entry in entries]


def line_of(entry: AnyEntry) -> bytes:
    """One line of a segment. Any text survives, half surrogate pairs too."""
    try:
        return entry.model_dump_json().encode() + b"\n"
    except PydanticSerializationError:
        # Such text has no UTF-8, so it is written in ASCII escapes.
        return json.dumps(entry.model_dump()).encode() + b"\n"


def _read(segment: Segment, data: bytes) -> Whole:
    lines = data.splitlines()
    boundary = None
    try:
        if lines and lines[0].startswith(_BOUNDARY_START):
            boundary = json.loads(lines.pop(0))["boundary"]
        entries = [_entry(line) for line in lines]
    except (ValidationError, ValueError, KeyError) as error:
        raise DamagedSegment(segment, f"a line of it is no entry ({type(error).__name__})") from error
    if [entry.seq for entry in entries] != list(range(segment.first_seq, segment.last_seq + 1)):
        raise DamagedSegment(segment, "its entries are not the ones that it should hold")
    return Whole(boundary, entries)


def _entry(line: bytes) -> AnyEntry:
    try:
        return _ENTRY.validate_json(line)
    except ValidationError:
        return _ENTRY.validate_python(json.loads(line))  # half surrogate pairs, which pydantic's own reader refuses


Read = Callable[[Segment], Awaitable[Whole]]
Numbered = list[tuple[int, Msg]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Segments in order that are read as one: of the first it is known how it begins, of the others it is not."""

    segments: tuple[Segment, ...]
    first: int
    """The number of its first message."""
    end: int
    """The number behind its last one; of the newest stretch, no message has that number or a higher one."""


def stretches(segments: Sequence[Segment], end: int) -> Iterator[Stretch]:
    """The newest first; `end`: the number behind the last message in segments. Each has one segment, but for those
    that begin where too much was open.

    What has no known beginning is left out: the segments before it are missing.
    """
    started = [at for at, segment in enumerate(segments) if _first(segment) is not None]
    for at, after in reversed(list(pairwise([*started, len(segments)]))):
        first = _first(segments[at]) or 0
        yield Stretch(tuple(segments[at:after]), first, end)
        end = first


def _first(segment: Segment) -> int | None:
    return 0 if segment.first_seq == 1 else segment.messages


async def messages_of(read: Read, stretch: Stretch) -> AsyncGenerator[Numbered, None]:
    """Its messages with their numbers, a list to each segment. Raises what `read` does, and ValueError when the
    segments don't fit together."""
    history = History()
    for segment in stretch.segments:
        whole = await read(segment)
        if history.seq == 0 and whole.boundary is not None:
            history = await asyncio.to_thread(History.at, whole.boundary)
        yield await asyncio.to_thread(history.take_all, whole.entries)


async def messages_between(
    read: Read, segments: Sequence[Segment], first: int, end: int
) -> AsyncIterator[tuple[int, Msg]]:
    """Messages from number `first` up to `end`, oldest first. Raises the same."""
    holding = [stretch for stretch in stretches(segments, end) if stretch.first < end and stretch.end > first]
    for stretch in reversed(holding):
        async for page in messages_of(read, stretch):
            for number, message in page:
                if first <= number < end:
                    yield number, message
