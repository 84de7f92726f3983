"""An inside tool is one that the session answers itself."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from longhaul.agent.entries import CallAnswered, SleepStarted
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState

Answer = Callable[[OpenCall, SessionState], CallAnswered | SleepStarted]
Wanted = TypeVar("Wanted", bound=OpenValue)


class InWorkflowTool(NamedTuple):
    name: str
    description: str
    input_schema: dict[str, Any]
    answer: Answer
    """Reads the session state and changes nothing."""


def reading(kind: type[Wanted], do: Callable[[OpenCall, SessionState, Wanted], CallAnswered | SleepStarted]) -> Answer:
    """Answers a call by what it says: the model reads what it has got wrong, and nothing has changed."""

    def answer(call: OpenCall, session: SessionState) -> CallAnswered | SleepStarted:
        try:
            return do(call, session, kind.model_validate_json(call.input))
        except ValidationError as error:
            return failed(call, what_is_wrong(error))

    return answer


def result_of(call: OpenCall, text: str) -> ToolResultBlock:
    return ToolResultBlock(id=call.block.id, name=call.block.name, output=text)


def failed(call: OpenCall, text: str) -> CallAnswered:
    return CallAnswered(
        result=ToolResultBlock(id=call.block.id, name=call.block.name, output=text, state=ToolResultState.ERROR)
    )
