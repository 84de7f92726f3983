"""The small values that a ledger is made of: requests that came and ended, and what is known of messages and tokens."""

from dataclasses import dataclass
from typing import NamedTuple

from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, Usage


class Anchor(NamedTuple):
    """The longest context that some model call has seen whole."""

    digest: str
    length: int


@dataclass(frozen=True, slots=True)
class Handled:
    """A request id that was accepted."""

    reply_id: str
    body_digest: str


@dataclass(frozen=True, slots=True)
class Finished:
    """How a reply ended. Its text is in the context, under its id."""

    reply_id: str
    request_id: str
    reason: FinishedReason
    at: int
    error: ErrorInfo | None
    usage: Usage
    start: int
    end: int
    """Numbers of its messages and of its request's: from, up to."""
    started_at: int = 0
    """As its REPLY_START says it; its first messages may be gone from the record when it ends."""


NOWHERE = Anchor("", 0)


class Mark(NamedTuple):
    """What is known of one message of the context beside its text."""

    number: int
    """Counts all messages that the session ever had, from 0."""
    digest: str
    """As the activity gave it that made the message. Empty when none did: the message then travels inline."""
    tokens: int


class Forgotten(NamedTuple):
    """What is kept of call ids of long ago (`agent.fold.ledger.call_id_filter`)."""

    calls: int
    """How many are in it."""
    bits: str
    """In base 64."""


class CheckpointTry(NamedTuple):
    """A checkpoint that failed."""

    changed: int
    """What `Keeping.changed` was then: the same state is not tried again at once."""
    events: int
    """Length of the history then."""
    error: ErrorInfo


class Heard(NamedTuple):
    """The size of what the last model call was sent: as the worker counted it, and as the provider did."""

    estimated: int
    reported: int
    counted: int
    """What the ledger's own sum was then; -1 when the context has been rewritten since."""


UNHEARD = Heard(0, 0, -1)
