"""Segments: entries of a session written down in the blob store, as JSON lines, once and for ever.

A segment lies under the digest of its text: a second attempt writes the same thing to the same place, and whoever reads
it knows that it is what was written.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from activities.blobs.blobs import BlobStore, NoBlob, key_of
from activities.segment_merging import SEGMENT_BYTES, cut, plan
from agent.entries import AnyEntry, Segment

_ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(AnyEntry)


class DamagedSegment(RuntimeError):
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


class Segments:
    def __init__(self, blobs: BlobStore, limit: int = SEGMENT_BYTES) -> None:
        self._blobs = blobs
        self._limit = limit

    async def extend(self, prefix: str, older: Sequence[Segment], entries: Sequence[AnyEntry]) -> Extended:
        """Write entries down, and with them again those of small older segments. One of those that can't be read stays
        as it is. Raises what the blob store raises when it does not answer."""
        lines = await asyncio.to_thread(lambda: [(entry, line_of(entry)) for entry in entries])
        keep, _ = plan([segment.size for segment in older], sum(len(line) for _, line in lines), self._limit)
        again: list[tuple[AnyEntry, bytes]] = []
        while keep < len(older):
            try:
                read = [entry for segment in older[keep:] for entry in await self.read(segment)]
            except DamagedSegment as damage:
                keep = older.index(damage.segment) + 1
            else:
                again = [(entry, line_of(entry)) for entry in read]
                break
        return Extended(keep, tuple(await self._write(prefix, [*again, *lines])))

    async def write(self, prefix: str, entries: Sequence[AnyEntry]) -> list[Segment]:
        """Write entries down as they come, in as few segments as hold them."""
        return await self._write(prefix, [(entry, line_of(entry)) for entry in entries])

    async def read(self, segment: Segment) -> list[AnyEntry]:
        """Exactly the entries that were written. Raises DamagedSegment, or what the blob store raises."""
        try:
            data = await self._blobs.get(segment.key)
        except (NoBlob, ValueError) as error:
            raise DamagedSegment(segment, str(error)) from error
        return await asyncio.to_thread(_read, segment, data)

    async def _write(self, prefix: str, lines: Sequence[tuple[AnyEntry, bytes]]) -> list[Segment]:
        groups = cut([(pair, len(pair[1])) for pair in lines], self._limit)
        return [await self._put(prefix, group) for group in groups]

    async def _put(self, prefix: str, group: Sequence[tuple[AnyEntry, bytes]]) -> Segment:
        data = b"".join(line for _, line in group)
        key = key_of(prefix, data)
        await self._blobs.put(key, data)
        # Read back and checked before anybody relies on it: the session forgets what it has written down.
        await self._blobs.get(key)
        return Segment(key=key, first_seq=group[0][0].seq, last_seq=group[-1][0].seq, size=len(data))


def line_of(entry: AnyEntry) -> bytes:
    """One line of a segment. Any text survives, half surrogate pairs too."""
    try:
        return entry.model_dump_json().encode() + b"\n"
    except PydanticSerializationError:
        # Such text has no UTF-8, so it is written in ASCII escapes.
        return json.dumps(entry.model_dump()).encode() + b"\n"


def _read(segment: Segment, data: bytes) -> list[AnyEntry]:
    try:
        entries = [_entry(line) for line in data.splitlines()]
    except (ValidationError, ValueError) as error:
        raise DamagedSegment(segment, f"a line of it is no entry ({type(error).__name__})") from error
    if [entry.seq for entry in entries] != list(range(segment.first_seq, segment.last_seq + 1)):
        raise DamagedSegment(segment, "its entries are not the ones that it should hold")
    return entries


def _entry(line: bytes) -> AnyEntry:
    try:
        return _ENTRY.validate_json(line)
    except ValidationError:
        return _ENTRY.validate_python(json.loads(line))  # half surrogate pairs, which pydantic's own reader refuses
