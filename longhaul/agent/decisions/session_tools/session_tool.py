"""An inside tool is one that the session answers itself."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from longhaul.agent.entries import CallAnswered, SleepBegun
from longhaul.agent.fold.agent_state import OpenCall
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState

Answer = Callable[[OpenCall, Ledger], CallAnswered | SleepBegun]
Wanted = TypeVar("Wanted", bound=OpenValue)


class InsideTool(NamedTuple):
    name: str
    description: str
    input_schema: dict[str, Any]
    answer: Answer
    """Reads the ledger and changes nothing."""


def reading(kind: type[Wanted], do: Callable[[OpenCall, Ledger, Wanted], CallAnswered | SleepBegun]) -> Answer:
    """Answers a call by what it says: the model reads what it has got wrong, and nothing has changed."""

    def answer(call: OpenCall, ledger: Ledger) -> CallAnswered | SleepBegun:
        try:
            return do(call, ledger, kind.model_validate_json(call.input))
        except ValidationError as error:
            return failed(call, what_is_wrong(error))

    return answer


def told(call: OpenCall, text: str) -> ToolResultBlock:
    return ToolResultBlock(id=call.block.id, name=call.block.name, output=text)


def failed(call: OpenCall, text: str) -> CallAnswered:
    return CallAnswered(
        result=ToolResultBlock(id=call.block.id, name=call.block.name, output=text, state=ToolResultState.ERROR)
    )
