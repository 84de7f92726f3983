"""Extras of blocks: how large, of what, and that those who do not have them cost nothing."""

import pytest
from pydantic import ValidationError

from longhaul.agent.entries import LeftOut
from longhaul.agent.reducer.context_state import suspects, without
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    ContentBlock,
    TextBlock,
    ToolCallBlock,
    message_digest,
)

SIGNED = ToolCallBlock(id="c1", name="fetch", input="{}", extras={"thought_signature": "c2ln"})
SAID = TextBlock(text="I look.", extras={"phase": "commentary"})


def test_a_block_without_extras_has_no_word_of_them_in_the_record() -> None:
    assert (
        "extras"
        not in AssistantMsg("x", [TextBlock(text="Hi."), SIGNED.model_copy(update={"extras": {}})]).model_dump_json()
    )


def test_extras_come_back_from_json_and_count_in_the_digest() -> None:
    message = AssistantMsg("x", [SAID, SIGNED])

    assert type(message).model_validate_json(message.model_dump_json()) == message
    assert message_digest(message) != message_digest(AssistantMsg("x", [TextBlock(text="I look."), SIGNED]))


@pytest.mark.parametrize(
    ("extras", "complaint"),
    [
        ({"signature": "s" * 400_000}, "extras of 400,017 bytes; a block may have 400,000: leave them out"),
        ({"signature": "€" * (400_000 // 3)}, "a block may have 400,000"),
        ({"signature": object()}, "extras have to be JSON"),
        ({"signature": float("nan")}, "extras have to be JSON"),
        ([1], "valid dictionary"),
        ("s", "valid dictionary"),
    ],
)
def test_what_is_too_large_or_no_json_is_refused(extras: object, complaint: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TextBlock.model_validate({"text": "Hi.", "extras": extras})

    assert complaint in str(refused.value)


def test_a_repair_takes_extras_out_and_leaves_the_block() -> None:
    message = AssistantMsg("x", [SAID, SIGNED, TextBlock(text="Bye.")])

    outs = suspects([message])

    assert outs == (LeftOut(message=0, block=0, extras=True), LeftOut(message=0, block=1, extras=True))
    bare: list[ContentBlock] = [
        TextBlock(text="I look."),
        ToolCallBlock(id="c1", name="fetch", input="{}"),
        TextBlock(text="Bye."),
    ]
    assert without(message, outs) == AssistantMsg("x", bare)
