"""A long call notes how far it has come with its heartbeats, and the attempt that goes on after it gets the notes.

For tools that may run more than once. What is noted is not in the history; it lies on the server until the call has
ended, with the worker's secrets masked.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from temporalio import activity

from longhaul.activities.masking.masker import Masker

LONGEST_NOTE_CHARACTERS = 10_000


class Notes:
    """What one attempt has noted, as JSON text."""

    def __init__(self, masker: Masker, before: str) -> None:
        self._masker = masker
        self._text = before

    def note(self, value: Any) -> None:
        text = json.dumps(value)
        if len(text) > LONGEST_NOTE_CHARACTERS:
            raise ValueError(f"a note of {len(text)} characters is too long; {LONGEST_NOTE_CHARACTERS} is the most")
        self._text = self._masker.masked(text)

    def noted(self) -> Any:
        try:
            return json.loads(self._text) if self._text else None
        except ValueError:
            return None  # masked in a way that is no JSON any more

    def details(self) -> tuple[str, ...]:
        """What each heartbeat carries: the server keeps that of the newest one alone."""
        return (self._text,) if self._text else ()


_running: ContextVar[Notes] = ContextVar("notes of the running call")


def note(value: Any) -> None:
    """Remember how far this call has come: any JSON value, in place of the one before. It leaves the worker with the
    next heartbeat, within a second. ValueError for one that is too long, TypeError for what is no JSON."""
    if notes := _running.get(None):
        notes.note(value)


def noted() -> Any:
    """What was noted last, by this attempt or by the one before it that was cut short; None when there is nothing."""
    notes = _running.get(None)
    return notes.noted() if notes else None


@contextmanager
def attempt_noting(masker: Masker) -> Iterator[Notes]:
    """Within the block, `note` and `noted` are about the running activity."""
    details = activity.info().heartbeat_details
    notes = Notes(masker, details[0] if details and isinstance(details[0], str) else "")
    token = _running.set(notes)
    try:
        yield notes
    finally:
        _running.reset(token)
