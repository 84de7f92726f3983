"""A channel tells people of a call that waits; this is what it gets to tell."""

from typing import Any, Protocol

from longhaul.agent.plain.values import Value, sparse


class NoticeMessage(Value):
    """One event of one wait. What stands in it is made visible and short already."""

    key: str
    """The same for each try, and for nothing else: who has seen it has been told."""
    event: str
    """waits, reminded, escalated or expired."""
    session: str
    user: str | None = None
    agent: str
    team: str = ""
    call_id: str
    tool: str
    waits_for: str
    """`person` or `outside`."""
    arguments: str
    """As the inbox shows them; of what is long the beginning and the end."""
    reason: str = ""
    asked_at: str
    at: str
    expires_at: str = ""
    escalated_to: str = ""
    closed: bool = False
    """It has expired and can't be answered any more."""
    answers: tuple[str, ...] = sparse(())
    """Commands that answer it."""
    more: "tuple[NoticeMessage, ...]" = sparse(())
    """The other calls of the same list, each as it would be told alone; none of them has more."""

    @property
    def headline(self) -> str:
        """One line for people."""
        what = {"waits": "waits", "reminded": "still waits", "escalated": "was escalated", "expired": "has expired"}
        others = f", with {len(self.more)} more call{'s' if len(self.more) > 1 else ''}" if self.more else ""
        return f"{self.tool} in {self.session} {what[self.event]}{others}"

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


class NotTold(Exception):
    """This try came to nothing; the sentence says why. It is tried again later."""


class Channel(Protocol):
    """One way. `name` tells it from the others and says nothing that is secret."""

    name: str

    async def tell(self, message: NoticeMessage) -> None:
        """Raises NotTold. The same message may come twice: its key says so."""
        ...
