"""Members of hubs as pipelines take them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.session import Session

if TYPE_CHECKING:
    from longhaul.starter.client.hubs import Hub


class HubAgent:
    """A member whose `reply` returns when the others have heard it: the next one to speak knows what was said."""

    def __init__(self, hub: "Hub", session: Session) -> None:
        self.hub = hub
        self.session = session
        self.id = session.id

    async def reply(self, inputs: str | Msg | Sequence[Msg] | None = None, **how: Any) -> Msg:
        """As `Session.reply`. What the hub has told it already is not told again."""
        given = None if self.hub.has_told(inputs) else inputs
        answer = await self.session.reply(given, **how)
        if answer.finished_reason is not None:
            await self.hub.heard(answer)
        return answer
