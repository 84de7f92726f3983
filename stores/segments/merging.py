"""Cuts entries into segments, and picks the older segments that are written again with them. Pure.

Small segments are merged as digits of a counter carry over: whatever is written again ends in a segment half as large
again or larger, so an entry is written a number of times that grows with the logarithm of the limit, and the
segments below the limit are few.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

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
