"""Messages by number out of segments: only those segments are opened that hold what is wanted, one at a time."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from longhaul.agent.entries import Segment
from longhaul.agent.life.history import History
from longhaul.agent.values.conversation.messages import Msg
from longhaul.stores.segments.segments import Whole

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
    begun = [at for at, segment in enumerate(segments) if _first(segment) is not None]
    for at, after in reversed(list(pairwise([*begun, len(segments)]))):
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
        if history.seq == 0 and whole.seam is not None:
            history = await asyncio.to_thread(History.at, whole.seam)
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
