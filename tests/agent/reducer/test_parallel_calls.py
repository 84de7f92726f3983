"""Which calls may be under way together."""

import pytest

from longhaul.agent.reducer.agent_state import OpenCall, ReplyContext
from longhaul.agent.reducer.all_changes import next_batch
from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolCallState
from longhaul.agent.values.conversation.tools import ToolDescriptor
from tests.agent.play import TOOLS

BY_NAME: dict[str, ToolDescriptor] = {tool.name: tool for tool in TOOLS}


def _reply(turn: str) -> ReplyContext:
    """`"a:Look b:Paint! c:Fly"`; an exclamation mark says that the call has its result."""
    made = {}
    for word in turn.split():
        call_id, name = word.rstrip("!").split(":")
        block = ToolCallBlock(id=call_id, name=name, input="{}")
        state = ToolCallState.FINISHED if word.endswith("!") else ToolCallState.PENDING
        made[call_id] = OpenCall(block=block, input="{}", state=state)
    return ReplyContext(reply_id="r", request_id="q", calls=made)


@pytest.mark.proves("C8")
@pytest.mark.parametrize(
    ("turn", "together", "one_by_one"),
    [
        ("", "", ""),
        ("a:Look!", "", ""),
        ("a:Look", "a", "a"),
        ("a:Look b:Measure", "a b", "a"),
        ("a:Look b:Paint c:Look", "a", "a"),
        ("a:Look! b:Paint c:Look", "b", "b"),
        ("a:Look! b:Paint! c:Look d:Look", "c d", "c"),
        ("a:Paint b:Paint", "a", "a"),
        ("a:Paint! b:Paint", "b", "b"),
        ("a:Look b:Look! c:Look", "a c", "a"),
        ("a:Look b:Fly c:Order d:Look e:Demolish", "a b c d", "a"),
        ("a:Fly b:Paint", "a", "a"),
    ],
)
def test_safe_neighbours_form_a_batch_and_others_stand_alone(turn: str, together: str, one_by_one: str) -> None:
    reply = _reply(turn)

    assert " ".join(call.block.id for call in next_batch(reply, BY_NAME, parallel=True)) == together
    assert " ".join(call.block.id for call in next_batch(reply, BY_NAME, parallel=False)) == one_by_one
