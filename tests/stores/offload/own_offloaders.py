"""Offloaders of an operator's own, named by the tests in LONGHAUL_OFFLOADERS' form."""

from collections.abc import Sequence
from typing import Any

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock


class Shelf:
    """Keeps everything in memory, by owner."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.results: list[ToolResultBlock] = []

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        return f"shelf:{self.owner}/{session_id}/{len(msgs)}"

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        self.results.append(tool_result)
        return f"shelf:{self.owner}/{session_id}/{tool_result.id}"


SHARED = Shelf("everybody")
NUMBER = 7


def shelf_for(owner: str) -> Shelf:
    return Shelf(f"made for {owner}")


def nothing_for(owner: str) -> str:
    return owner


class Blocking:
    """Not asynchronous, and so no offloader."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        raise NotImplementedError

    def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        raise NotImplementedError
