"""Whatever the record holds, the request keeps the rules that providers refuse requests for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from longhaul.activities.models.apis import anthropic, openai_chat, openai_responses
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    UserMsg,
)
from tests.activities.models.rules import (
    assert_taken_by_anthropic,
    assert_taken_by_chat_completions,
    assert_taken_by_responses,
    request_of,
)
from tests.activities.models.sample_requests import returned

IDS = st.sampled_from(["a1", "b2", "c/3", "d" * 70])
TEXTS = st.sampled_from(["", "  \n", "Hi", "\ud800", "\x00"])
KEPT = {"signature": "s", "encrypted_content": "e"}
BLOCKS = st.one_of(
    TEXTS.map(lambda text: TextBlock(text=text)),
    TEXTS.map(
        lambda text: ThinkingBlock.model_validate({"thinking": text, "signature": "s", "encrypted_content": "e"})
    ),
    st.builds(ToolCallBlock, id=IDS, name=st.sampled_from(["weather", "no such!", ""]), input=TEXTS),
    TEXTS.map(lambda text: HintBlock(hint=text)),
)
MESSAGES = st.one_of(
    st.lists(BLOCKS, max_size=4).map(lambda blocks: AssistantMsg("longhaul", blocks)),
    st.builds(UserMsg, st.sampled_from(["user", "ana", "Zoë K"]), TEXTS),
    st.builds(returned, IDS, st.just("weather"), TEXTS),
)
RECORDS = st.lists(MESSAGES, max_size=9)


@given(RECORDS)
def test_anthropics_rules_hold(record: list[Msg]) -> None:
    assert_taken_by_anthropic(record)


@given(RECORDS)
def test_the_rules_of_chat_completions_hold(record: list[Msg]) -> None:
    assert_taken_by_chat_completions(record)


@given(RECORDS)
def test_the_rules_of_the_responses_api_hold(record: list[Msg]) -> None:
    assert_taken_by_responses(record)


@given(RECORDS)
def test_every_request_can_be_sent_as_utf_8(record: list[Msg]) -> None:
    payloads: list[Any] = [
        anthropic.build_payload(request_of(record), []),
        openai_chat.build_payload(request_of(record), [], official=False, dashscope=False),
        openai_responses.build_payload(request_of(record), []),
    ]

    for payload in payloads:
        assert str(payload).encode("utf-8")
        assert not any(0xD800 <= ord(character) <= 0xDFFF for character in texts_of(payload))


def texts_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "".join(texts_of(child) for child in children)
