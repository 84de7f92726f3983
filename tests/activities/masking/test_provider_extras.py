"""What a provider sends along with a block holds no secret when it is recorded."""

import pytest

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    ContentBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)

KEY = "open-sesame-4711"
SECRETS = WorkerSecrets({"GATE_KEY": KEY})


def thought(thinking: str, **extras: object) -> ThinkingBlock:
    return ThinkingBlock.model_validate({"thinking": thinking, **extras})


def call(**extras: object) -> ToolCallBlock:
    return ToolCallBlock(id="c1", name="fetch", input="{}", extras=extras)


CASES: dict[str, tuple[ContentBlock, ContentBlock]] = {
    "a text's": (TextBlock(text="Hi.", extras={"phase": KEY}), TextBlock(text="Hi.")),
    "a call's": (call(thought_signature=KEY), call()),
    "a call's, within": (call(other={"deep": [KEY]}), call()),
    "a thought's": (thought("Hm.", reasoning_details=[{"text": KEY}]), TextBlock(text="Hm.")),
    "a text with one, beside them": (
        TextBlock(text=f"It is {KEY}.", extras={"phase": "commentary"}),
        TextBlock(text="It is [secret GATE_KEY].", extras={"phase": "commentary"}),
    ),
    "a thought that nobody has signed": (
        thought(f"It is {KEY}.", reasoning_field="reasoning_content", made_by="m", made_behind="d"),
        thought("It is [secret GATE_KEY].", reasoning_field="reasoning_content", made_by="m", made_behind="d"),
    ),
    "a signed one": (thought(f"It is {KEY}.", signature="s"), TextBlock(text="It is [secret GATE_KEY].")),
}


@pytest.mark.parametrize("what", CASES)
def test_a_secret_in_extras_is_not_recorded(what: str) -> None:
    block, recorded = CASES[what]

    assert SECRETS.out_of_content((block,)) == (recorded,)
    message: Msg = SECRETS.out_of_message(AssistantMsg("x", [block]))
    assert message.content == (recorded,)


@pytest.mark.parametrize(
    "block",
    [TextBlock(text="Hi.", extras={"phase": "commentary"}), call(thought_signature="s"), thought("Hm.", signature="s")],
)
def test_without_a_secret_nothing_is_changed(block: ContentBlock) -> None:
    assert SECRETS.out_of_content((block,)) == (block,)
