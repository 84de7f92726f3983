"""A letter is one signal or update as it came; it is received as entries and an answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longhaul.agent.entries import all_entries as e


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
    fresh_id: str
    """For a request that brings none."""
    reply_id_of: Callable[[str], str]
    """The id of the reply to the request with this id."""
