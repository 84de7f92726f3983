"""Stored sessions of older versions become current ones. Pure: a dictionary goes in, another comes out.

A version is raised when a reader of the old one would misunderstand the new one; a field that may be left out needs
no new version. What names none is a bare AgentState, as people write one by hand.
"""

from collections.abc import Callable
from typing import Any, cast

from longhaul.agent.plain.errors import Damaged

CURRENT = 1

Stored = dict[str, Any]


class NewerRecord(Damaged, ValueError):
    """Written by a later Longhaul; reading it here would be a guess."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"version: {version} was written by a newer Longhaul; this one reads up to {CURRENT}. Run that one, or a "
            "later one, on every worker and client that uses this store"
        )
        self.version = version


class NoRecord(Damaged, ValueError):
    """Not a stored session at all; the sentence starts with the field."""


def upgraded(stored: object) -> Stored:
    """The same session as a current SessionRecord in JSON. Raises NewerRecord or NoRecord."""
    if not isinstance(stored, dict):
        raise NoRecord(f"a session is stored as a JSON object, not as {type(stored).__name__}")
    record = cast(Stored, stored)
    version = _version_of(record)
    while version < CURRENT:
        record = _STEPS[version](record)
        version += 1
    return record


def _version_of(record: Stored) -> int:
    version = record.get("version", 0)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise NoRecord(f"version: must be a whole number from 0 to {CURRENT}, not {str(version)[:50]!r}")
    if version > CURRENT:
        raise NewerRecord(version)
    return version


def _around_the_state(state: Stored) -> Stored:
    return {
        "version": 1,
        "session_id": state.get("session_id"),
        "user_id": state.get("user_id"),
        "agent_id": state.get("agent", "longhaul"),
        "state": state,
    }


_STEPS: tuple[Callable[[Stored], Stored], ...] = (_around_the_state,)
"""The step at place n makes version n + 1 of version n."""
