"""Entries about calls that sleep, and what wakes them from outside."""

from typing import Literal

from longhaul.agent.entries.entry import Entry, Written
from longhaul.agent.plain.values import sparse


class SleepBegun(Entry):
    """A call waits for a moment or an event; no worker has a part in it."""

    kind: Literal["sleep_begun"] = "sleep_begun"
    call_id: str
    until: int
    """Milliseconds since 1970."""
    event: str


class WakeUpCame(Entry):
    """Somebody outside has told of an event. It ends the sleep that waits for it, or is kept for the next one."""

    kind: Literal["wake_up"] = "wake_up"
    event: str
    request_id: str
    body_digest: str
    """Tells the same notification sent twice from another one under the same id."""
    payload: Written = sparse("")
    by: str = sparse("")


SleepEntry = SleepBegun | WakeUpCame
