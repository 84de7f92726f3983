"""Segments: entries of a session written down in the blob store, as JSON lines, once and for ever.

Before the entries may stand a line that tells what was open there, so that nothing older has to be read with them.
A segment lies under the digest of its text: a second attempt writes the same thing to the same place, and whoever reads
it knows that it is what was written.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from longhaul.agent.entries import AnyEntry, Segment
from longhaul.agent.plain.errors import Damaged
from longhaul.stores.blobs.blobs import BlobStore, NoBlob
from longhaul.stores.keys.enclosed_blobs import get_disclosed, put_enclosed
from longhaul.stores.keys.keyring import Keyring
from longhaul.stores.segments.merging import SEGMENT_BYTES, cut, plan
from longhaul.stores.segments.seams import SeamWalk

SEAM = "seam"
"""The kind of a segment's first line, where it has one that is no entry."""
_SEAM_START = b'{"kind":"seam",'
_ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(AnyEntry)


class DamagedSegment(Damaged, RuntimeError):
    """A segment is missing, or is not what was written; the sentence says which and what to do."""

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

    seam: Any
    """What was open before its first entry, as `agent.life.history.seam_of` says it; None = unknown, or nothing was."""
    entries: list[AnyEntry]


class Segments:
    def __init__(self, blobs: BlobStore, limit: int = SEGMENT_BYTES, keys: Keyring | None = None) -> None:
        """With `keys`, what is written is encrypted."""
        self._blobs = blobs
        self._keys = keys
        self._limit = limit

    async def extend(
        self, prefix: str, older: Sequence[Segment], entries: Sequence[AnyEntry], seam: Any = None, *, few: bool = False
    ) -> Extended:
        """Write entries down, and with them again those of small older segments. One of those that can't be read stays
        as it is. `seam`: before the first of `entries`. `few`: they are short together, so that no thread has to spell
        them. Raises what the blob store raises when it does not answer."""
        lines = spelt(entries) if few else await asyncio.to_thread(spelt, entries)
        keep, _ = plan([segment.size for segment in older], sum(len(line) for _, line in lines), self._limit)
        again: list[tuple[AnyEntry, bytes]] = []
        seams = {entry.seq: seam for entry in entries[:1]}
        while keep < len(older):
            try:
                read = [await self.read_whole(segment) for segment in older[keep:]]
            except DamagedSegment as damage:
                keep = older.index(damage.segment) + 1
            else:
                again = [(entry, line_of(entry)) for whole in read for entry in whole.entries]
                seams |= {whole.entries[0].seq: whole.seam for whole in read}
                break
        few = few and not again
        return Extended(keep, tuple(await self._write(prefix, [*again, *lines], SeamWalk(seams), few=few)))

    async def write(self, prefix: str, entries: Sequence[AnyEntry]) -> list[Segment]:
        """Write entries down as they come, in as few segments as hold them."""
        return await self._write(prefix, spelt(entries), SeamWalk({}))

    async def read(self, segment: Segment) -> list[AnyEntry]:
        """Exactly the entries that were written. Raises DamagedSegment, or what the blob store raises."""
        return (await self.read_whole(segment)).entries

    async def read_whole(self, segment: Segment) -> Whole:
        """The same, with the seam before them."""
        try:
            data = await get_disclosed(self._blobs, self._keys, segment.key)
        except (NoBlob, ValueError) as error:
            raise DamagedSegment(segment, str(error)) from error
        return await asyncio.to_thread(_read, segment, data)

    async def _write(
        self, prefix: str, lines: Sequence[tuple[AnyEntry, bytes]], walk: SeamWalk, *, few: bool = False
    ) -> list[Segment]:
        groups = cut([(pair, len(pair[1])) for pair in lines], self._limit)
        return [await self._put(prefix, group, walk, few=few) for group in groups]

    async def _put(self, prefix: str, group: Sequence[tuple[AnyEntry, bytes]], walk: SeamWalk, *, few: bool) -> Segment:
        first, last = group[0][0].seq, group[-1][0].seq
        begin = walk.before(first) if few else await asyncio.to_thread(walk.before, first)
        data = b"".join([_seam_line(begin.seam), *(line for _, line in group)])
        key = await put_enclosed(self._blobs, self._keys, prefix, data)
        # Read back and checked before anybody relies on it: the session forgets what it has written down.
        await self._blobs.get(key)
        walk.over([entry for entry, _ in group])
        return Segment(key=key, first_seq=first, last_seq=last, size=len(data), messages=begin.messages)


def spelt(entries: Sequence[AnyEntry]) -> list[tuple[AnyEntry, bytes]]:
    """Each with its line."""
    return [(entry, line_of(entry)) for entry in entries]


def line_of(entry: AnyEntry) -> bytes:
    """One line of a segment. Any text survives, half surrogate pairs too."""
    try:
        return entry.model_dump_json().encode() + b"\n"
    except PydanticSerializationError:
        # Such text has no UTF-8, so it is written in ASCII escapes.
        return json.dumps(entry.model_dump()).encode() + b"\n"


def _seam_line(seam: Any) -> bytes:
    return b"" if seam is None else json.dumps({"kind": SEAM, "seam": seam}, separators=(",", ":")).encode() + b"\n"


def _read(segment: Segment, data: bytes) -> Whole:
    lines = data.splitlines()
    seam = None
    try:
        if lines and lines[0].startswith(_SEAM_START):
            seam = json.loads(lines.pop(0))["seam"]
        entries = [_entry(line) for line in lines]
    except (ValidationError, ValueError, KeyError) as error:
        raise DamagedSegment(segment, f"a line of it is no entry ({type(error).__name__})") from error
    if [entry.seq for entry in entries] != list(range(segment.first_seq, segment.last_seq + 1)):
        raise DamagedSegment(segment, "its entries are not the ones that it should hold")
    return Whole(seam, entries)


def _entry(line: bytes) -> AnyEntry:
    try:
        return _ENTRY.validate_json(line)
    except ValidationError:
        return _ENTRY.validate_python(json.loads(line))  # half surrogate pairs, which pydantic's own reader refuses
