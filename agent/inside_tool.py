"""What a tool is that the session answers itself, and how one answers."""

from collections.abc import Callable
from typing import Any, NamedTuple

from agent.entries import CallAnswered
from agent.ledger import Ledger
from agent.messages import ToolResultBlock, ToolResultState
from agent.state import OpenCall


class InsideTool(NamedTuple):
    name: str
    description: str
    input_schema: dict[str, Any]
    answer: Callable[[OpenCall, Ledger], CallAnswered]
    """Reads the ledger and changes nothing."""


def told(call: OpenCall, text: str) -> ToolResultBlock:
    return ToolResultBlock(id=call.block.id, name=call.block.name, output=text)


def failed(call: OpenCall, text: str) -> CallAnswered:
    return CallAnswered(
        result=ToolResultBlock(id=call.block.id, name=call.block.name, output=text, state=ToolResultState.ERROR)
    )
