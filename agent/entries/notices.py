"""A notice is something that somebody is to be told of a call that waits: recorded when it happens, until a worker has
told it."""

from typing import Literal, NamedTuple

from longhaul.agent.permission.preview import argument_parts
from longhaul.agent.plain.values import OpenValue, sparse

KEPT_NOTICES = 200
SHOWN_CHARS = 4_000
SHOWN_OF_MORE_CHARS = 1_000
"""Of each further call of a list."""
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 3_600.0


class Notice(OpenValue):
    """One thing that happened to one call."""

    event: Literal["waits", "reminded", "escalated", "expired"]
    call_id: str
    tool: str
    waits_for: Literal["person", "outside"]
    seq: int
    """Of the entry that it comes from."""
    at: int
    """Milliseconds since 1970, as `asked_at`."""
    asked_at: int
    reason: str = sparse("")
    to: str = sparse("")
    """Whom it is escalated to."""
    expires_at: int = sparse(0)
    closed: bool = sparse(False)
    """The call has ended with it."""
    shown: str = sparse("")
    """Its arguments, of a call that has ended; those of one that waits stand in the call."""
    given: tuple[str, ...] = sparse(())
    """Channels that have taken it."""
    more: "tuple[Notice, ...]" = sparse(())
    """The same of other calls, that is told with it: who is asked about a list is told once. None of them has more."""

    def each(self) -> "tuple[Notice, ...]":
        """It alone, and those told with it."""
        return (self.model_copy(update={"more": ()}), *self.more)

    @property
    def key(self) -> str:
        """Names one event of one wait in its session."""
        return f"{self.call_id}/{self.asked_at}/{self.event}"


class Given(OpenValue):
    """What a worker has done about a notice."""

    key: str
    channels: tuple[str, ...] = sparse(())
    """All that have it by now."""
    done: bool = sparse(False)
    """It is told, or there is nobody to tell, or nothing to tell any more."""


class NotifyTry(NamedTuple):
    """A worker could not tell it."""

    at: int
    tries: int
    error: str
    again: bool = False
    """The pause is over."""

    @property
    def due_at(self) -> int:
        """Milliseconds since 1970 at which it is tried again."""
        doublings = max(min(self.tries - 1, 20), 0)
        return self.at + round(min(FIRST_PAUSE_SECONDS * float(1 << doublings), LONGEST_PAUSE_SECONDS) * 1000)


def shown_arguments(arguments: str, chars: int = SHOWN_CHARS) -> str:
    """As the inbox shows them, but shorter: the beginning and the end of what is long, and how much is left out."""
    text = "\n".join(f"{part.name}: {part.text}" for part in argument_parts(arguments))
    if len(text) <= chars:
        return text
    head, tail = text[: chars * 2 // 3], text[-chars // 3 :]
    return f"{head}\n⟨{len(text) - len(head) - len(tail)} characters are not shown here⟩\n{tail}"
