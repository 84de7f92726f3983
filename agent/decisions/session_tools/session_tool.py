"""An inside tool is one that the session answers itself."""

from collections.abc import Callable
from typing import Any, NamedTuple

from longhaul.agent.entries.every import CallAnswered, SleepBegun
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState


class InsideTool(NamedTuple):
    name: str
    description: str
    input_schema: dict[str, Any]
    answer: Callable[[OpenCall, Ledger], CallAnswered | SleepBegun]
    """Reads the ledger and changes nothing."""


def told(call: OpenCall, text: str) -> ToolResultBlock:
    return ToolResultBlock(id=call.block.id, name=call.block.name, output=text)


def failed(call: OpenCall, text: str) -> CallAnswered:
    return CallAnswered(
        result=ToolResultBlock(id=call.block.id, name=call.block.name, output=text, state=ToolResultState.ERROR)
    )
