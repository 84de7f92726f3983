"""What is sent to a provider as bytes can always be written: no text and no number of a model stands in the way."""

import pytest

from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, TextBlock, ToolCallBlock, UserMsg
from tests.activities.models.replies.stopping import APIS, CLAUDE, RESPONSES, stopping
from tests.activities.models.sample_requests import Caller, returned
from tests.activities.models.wire import Answer, Wire

LONE = "a \ud800 b"
UNWRITABLE = '{"n": 1e999}'


@pytest.mark.parametrize("model", APIS)
async def test_neither_half_letters_nor_endless_numbers_stop_a_request(model: str, wire: Wire, by_wire: Caller) -> None:
    wire.answers = [Answer(stopping(model, {CLAUDE: "end_turn", RESPONSES: "completed"}.get(model, "stop")))]
    call = ToolCallBlock(id="call-1", name="look", input=UNWRITABLE)
    messages: list[Msg] = [
        UserMsg("user", "Begin"),
        AssistantMsg("crane", [TextBlock(text="I look."), call]),
        returned(call.id, "look", "A hill."),
    ]

    await by_wire.call(model, messages, system=LONE)

    (body,) = wire.bodies
    assert "\ufffd" in str(body)
    assert "1e999" in str(body)
