"""An offloader keeps the content that leaves the context (seed 001), for the agent to read back."""

from collections.abc import Sequence
from typing import Any, Protocol

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock


class Offloader(Protocol):
    """Any object with these two methods is one. Both return a reference that the model is shown: a path or an address.

    Both may be called again with the same arguments, at any time and also by two workers at once, because an activity
    is repeated after a crash: then nothing may be there twice, and the reference is the same. Both may raise anything;
    the session goes on without the reference. More keyword arguments may come: take `**kwargs`.
    """

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        """Add the messages to those of the session. `batch="epoch-2"` names the step that they belong to: a message
        of the same batch, with the same content, is the same one."""
        ...

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        """Keep the whole output. Two results with the same id and different output are both kept."""
        ...
