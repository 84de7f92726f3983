"""A sleep is what a call waits for that nobody answers: a moment, or an event that somebody outside tells of."""

from typing import Literal

from longhaul.agent.plain.values import OpenValue, sparse

WAKE = "wake"
"""The event that ends a `sleep` before its time."""
LONGEST_SLEEP_SECONDS = 366 * 86_400.0
MOST_EVENT_CHARS = 200
MOST_PAYLOAD_CHARS = 10_000
KEPT_WAKE_UPS = 50
"""Notifications that came before anybody waited for them: each is carried along until somebody does."""

Over = Literal["", "time", "event", "message"]


class Sleep(OpenValue):
    """Part of the call that sleeps."""

    until: int
    """Milliseconds since 1970."""
    event: str
    """What ends it sooner."""
    over: Over = sparse("")
    """Why it has ended; the model is told when the session goes on."""
    payload: str = sparse("")
    """What came with the event, from outside."""
    came_at: int = sparse(0)
    """When the event was told of, in milliseconds since 1970."""
    by: str = sparse("")
