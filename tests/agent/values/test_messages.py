"""Messages: through JSON and back, and no larger than what they say."""

import json
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from longhaul.agent.values.conversation.messages import (
    CONTINUES,
    AssistantMsg,
    Base64Source,
    ContentBlock,
    DataBlock,
    ErrorInfo,
    FinishedReason,
    HintBlock,
    Msg,
    SystemMsg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    URLSource,
    Usage,
    UserMsg,
    parts_of,
    with_content,
)
from longhaul.agent.values.permission import PermissionRule

PICTURE = DataBlock(source=Base64Source(data="aGk=", media_type="image/png"), name="wall.png")
FULL = AssistantMsg(
    "mason",
    [
        TextBlock(text="I look: \x00 ü 🧱"),
        ThinkingBlock.model_validate({"thinking": "hm", "signature": "sig==", "redacted_thinking_data": [1]}),
        PICTURE,
        DataBlock(source=URLSource(url="https://example.org/a.pdf", media_type="application/pdf")),
        HintBlock(hint=(TextBlock(text="It is noon."), PICTURE), source="clock"),
        HintBlock(hint="plain"),
        ToolCallBlock(id="a", name="Look", input='{"at": ', suggested_rules=(PermissionRule(tool_name="Look"),)),
        ToolResultBlock(id="a", name="Look", output=(TextBlock(text="red"), PICTURE), metadata={"n": [1, None]}),
    ],
    id="r1",
    created_at="2025-11-25T12:00:00.000+00:00",
    finished_at="2025-11-25T12:00:01.000+00:00",
    finished_reason=FinishedReason.ERROR,
    usage=Usage(input_tokens=3, output_tokens=4, cache_input_tokens=1),
    structured_output={"bricks": 40},
    error=ErrorInfo(type="upstream", message="gone"),
    metadata={"mood": "good"},
)


def test_a_message_with_everything_in_it_comes_back_from_json_as_it_was() -> None:
    assert Msg.model_validate_json(FULL.model_dump_json()) == FULL


def test_extras_of_a_thinking_block_are_kept() -> None:
    again = Msg.model_validate_json(FULL.model_dump_json())

    assert again.content[1].model_dump() == {
        "type": "thinking",
        "thinking": "hm",
        "signature": "sig==",
        "redacted_thinking_data": [1],
    }


def test_what_says_nothing_costs_nothing() -> None:
    assert json.loads(UserMsg("ana", "Hi").model_dump_json()) == {
        "name": "ana",
        "role": "user",
        "content": [{"type": "text", "text": "Hi"}],
    }
    assert json.loads(ToolCallBlock(id="a", name="Look", input="{}").model_dump_json()) == {
        "type": "tool_call",
        "id": "a",
        "name": "Look",
        "input": "{}",
    }


@pytest.mark.parametrize(("make", "role"), [(UserMsg, "user"), (AssistantMsg, "assistant"), (SystemMsg, "system")])
def test_a_string_becomes_one_text_block(make: Any, role: str) -> None:
    message = make("ana", "Hi")

    assert (message.role, message.content) == (role, (TextBlock(text="Hi"),))


@pytest.mark.proves("A1")
def test_the_text_of_a_reply_with_tools_is_what_was_said_last() -> None:
    result = {"type": "tool_result", "id": "c", "name": "send", "output": "sent"}
    call = {"type": "tool_call", "id": "c", "name": "send", "input": "{}"}
    said = ({"type": "text", "text": word} for word in ("I will.", "Sent.", "Bye."))
    first, *last = said

    assert AssistantMsg("lamp", [first, call, result, *last]).get_text_content() == "Sent.\nBye."
    assert AssistantMsg("lamp", [first, call]).get_text_content() == "I will."
    assert AssistantMsg("lamp", [first, call, result]).get_text_content() == ""


def test_blocks_may_come_as_dicts_and_from_any_iterable() -> None:
    message = UserMsg("ana", ({"type": "text", "text": word} for word in ("one", "two")))

    assert message.get_text_content() == "one\ntwo"
    assert message.get_text_content(separator=" ") == "one two"


def test_a_text_that_goes_on_with_a_broken_off_one_begins_no_line() -> None:
    started, on = {"type": "text", "text": "The har"}, {"type": "text", "text": "bour", "extras": {CONTINUES: True}}
    thought = {"type": "thinking", "thinking": "Where was I?"}

    assert AssistantMsg("lamp", [started, thought, on, started]).get_text_content() == "The harbour\nThe har"
    assert AssistantMsg("lamp", [on, started]).get_text_content(separator=" ") == "bour The har"


def test_a_message_tells_its_calls_and_its_results() -> None:
    assert [call.id for call in FULL.get_tool_calls()] == ["a"]
    assert [result.get_text() for result in FULL.get_tool_results()] == ["red"]
    assert ToolResultBlock(id="a", name="Look", output="plain").get_text() == "plain"


def test_fields_that_nobody_knows_are_dropped() -> None:
    message = Msg.model_validate({"name": "ana", "role": "user", "content": "Hi", "mood": "good"})

    assert "mood" not in message.model_dump()


@pytest.mark.parametrize(
    "content", [None, 7, [7], [{"type": "video"}], [{"text": "no type"}], {"type": "text", "text": "no list"}]
)
def test_content_that_is_no_content_is_refused(content: object) -> None:
    with pytest.raises(ValidationError):
        Msg.model_validate({"name": "ana", "role": "user", "content": content})


def test_usage_adds_up_field_by_field() -> None:
    one = Usage(input_tokens=1, output_tokens=20, cache_input_tokens=300, cache_creation_input_tokens=4000)

    assert one + one == Usage(
        input_tokens=2, output_tokens=40, cache_input_tokens=600, cache_creation_input_tokens=8000
    )


def test_an_unknown_outcome_has_a_state_of_its_own() -> None:
    block = ToolResultBlock(id="a", name="Look", output="?", state=ToolResultState.UNKNOWN)

    assert json.loads(block.model_dump_json())["state"] == "unknown"


def test_the_length_of_the_text_counts_what_the_model_reads() -> None:
    lengths = [Msg(name="m", role="assistant", content=(block,)).text_length for block in FULL.content]

    assert lengths == [len("I look: \x00 ü 🧱"), 2, 100, 100, len("It is noon.") + 100, 5, 7, 3 + 100]
    assert FULL.text_length == sum(lengths)


def test_the_parts_of_a_block_are_its_texts_and_attachments() -> None:
    assert [parts_of(block) for block in FULL.content] == [
        ("I look: \x00 ü 🧱",),
        ("hm",),
        (PICTURE,),
        (FULL.content[3],),
        ("It is noon.", PICTURE),
        ("plain",),
        ('{"at": ',),
        ("red", PICTURE),
    ]


PLAIN: dict[type, list[Any]] = {
    TextBlock: [TextBlock(text="Red.")],
    HintBlock: [HintBlock(hint="noon"), HintBlock(hint=(TextBlock(text="noon"),))],
    ToolCallBlock: [ToolCallBlock(id="a", name="Look", input="{}")],
    ToolResultBlock: [ToolResultBlock(id="a", name="Look", output=""), ToolResultBlock(id="a", name="Look", output=())],
}
PARTICULAR: dict[type, list[Any]] = {
    TextBlock: [TextBlock(text="Red.", extras={"phase": "final"})],
    ThinkingBlock: [ThinkingBlock(thinking="hm")],
    DataBlock: [PICTURE],
    HintBlock: [HintBlock(hint=(TextBlock(text="noon"), PICTURE))],
    ToolCallBlock: [ToolCallBlock(id="a", name="Look", input="{}", extras={"thought_signature": "sig=="})],
    ToolResultBlock: [ToolResultBlock(id="a", name="Look", output=(PICTURE,))],
}


def test_a_message_is_plain_where_no_block_has_what_a_provider_may_refuse() -> None:
    assert {*PLAIN, *PARTICULAR} == {*get_args(get_args(ContentBlock)[0])}
    assert all(AssistantMsg("mason", [block]).is_plain for blocks in PLAIN.values() for block in blocks)
    particular = [block for blocks in PARTICULAR.values() for block in blocks]
    assert not any(AssistantMsg("mason", [TextBlock(text="So:"), block]).is_plain for block in particular)


def test_a_message_with_other_content_is_looked_at_again() -> None:
    message = UserMsg("ana", [PICTURE])
    assert not message.is_plain

    assert with_content(message, [TextBlock(text="a picture")]).is_plain
