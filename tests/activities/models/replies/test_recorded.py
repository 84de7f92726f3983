"""What is recorded of a model's reply, whoever has made it."""

import pytest

from longhaul.activities.models.model import ModelReply
from longhaul.activities.models.replies import recorded_content
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock, ToolCallBlock, Usage

LONE = "high \ud83d water"
SOUND = "high \ufffd water"


@pytest.mark.parametrize(
    ("said", "recorded"),
    [
        (TextBlock(text=LONE), TextBlock(text=SOUND)),
        (TextBlock(text="\ud83d\udc4d"), TextBlock(text="\U0001f44d")),
        (ThinkingBlock(thinking=LONE), ThinkingBlock(thinking=SOUND)),
        (ToolCallBlock(id=LONE, name=LONE, input=LONE), ToolCallBlock(id=SOUND, name=SOUND, input=SOUND)),
        (TextBlock(text="six", extras={LONE: [LONE]}), TextBlock(text="six", extras={SOUND: [SOUND]})),
    ],
    ids=["text", "two halves", "thinking", "a call", "extras"],
)
@pytest.mark.parametrize("stop_reason", ["end_turn", "refusal"])
def test_what_can_not_be_written_down_is_replaced(
    said: TextBlock | ThinkingBlock | ToolCallBlock, recorded: object, stop_reason: str
) -> None:
    reply = ModelReply((said,), Usage(), "tide", stop_reason)
    kept = [recorded] if stop_reason == "end_turn" or not isinstance(said, ToolCallBlock) else []

    assert [*recorded_content(reply, 1, closing=False)] == kept
