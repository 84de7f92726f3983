"""What comes in, and what becomes of it."""

from dataclasses import dataclass
from typing import Any

from agent import entries as e


@dataclass(frozen=True, slots=True)
class Received:
    """Entries to record, and what to tell a caller who waits for an answer."""

    entries: tuple[e.AnyEntry, ...]
    answer: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Letter:
    """One signal or update as it came."""

    name: str
    arguments: list[Any]
    """Decoded JSON values."""
    weight: int
    """Bytes."""
    fresh_id: str
    """For a request that brings none."""
