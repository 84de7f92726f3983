"""A thought is sent back where its provider takes it, and nowhere else."""

from dataclasses import replace

import pytest

from longhaul.activities.models.apis.anthropic import build_payload
from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.providers import PROVIDERS
from longhaul.activities.models.requests.thinking_origin import (
    OF_MANY_VENDORS,
    Beginnings,
    binds_thinking,
    chain_of,
    fitting,
    origin_of,
    with_origin,
)
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    ContentBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    UserMsg,
)
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import TIDES, WEATHER

BOUND = "anthropic:claude-opus-5-5"
SIGNED = ThinkingBlock.model_validate({"thinking": "Hm.", "signature": "s"})
HELLO = UserMsg("user", "Hello")
NEWEST = UserMsg("user", "And?")


def request(*messages: Msg, model: str = BOUND, **fields: object) -> ModelRequest:
    made = ModelRequest(model=model, system="Be kind.", messages=list(messages), tools=[WEATHER], config=ModelConfig())
    return replace(made, **fields)  # type: ignore[arg-type]


def beginnings(asked: ModelRequest) -> Beginnings:
    return Beginnings(asked, chain_of(asked.messages))


def thought(made_by: str = BOUND, behind: ModelRequest | None = None) -> Msg:
    """An answer with a thought of that model to that request."""
    asked = behind or request(HELLO)
    content: tuple[ContentBlock, ...] = (SIGNED, TextBlock(text="Hi."))
    return AssistantMsg("longhaul", with_origin(content, made_by, beginnings(asked).before(len(asked.messages))))


def thoughts_sent(asked: ModelRequest, origin: str = "") -> int:
    sent = fitting(asked, origin or asked.model, beginnings(asked))
    return len([block for message in sent.messages for block in message.content if isinstance(block, ThinkingBlock)])


def test_a_thought_behind_what_it_was_made_behind_is_sent() -> None:
    asked = request(HELLO, thought(), NEWEST)

    assert fitting(asked, BOUND, beginnings(asked)) is asked


CHANGED = {
    "system prompt": request(HELLO, thought(), NEWEST, system="Be brief."),
    "tools": request(HELLO, thought(), NEWEST, tools=[WEATHER, TIDES]),
    "no tools": request(HELLO, thought(), NEWEST, tools=[]),
    "a message before it": request(UserMsg("user", "Hullo"), thought(), NEWEST),
    "a message more before it": request(HELLO, NEWEST, thought(), NEWEST),
    "a summary in front": request(UserMsg("summary", "They met."), thought(), NEWEST),
    "nothing before it": request(thought(), NEWEST),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_thought_behind_a_changed_beginning_is_left_out_where_models_bind_them(what: str) -> None:
    assert thoughts_sent(CHANGED[what]) == 0


@pytest.mark.parametrize("what", CHANGED)
@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-5", "openai:gpt-5.1"])
def test_where_models_do_not_bind_them_it_is_sent(what: str, model: str) -> None:
    messages = [thought(model, CHANGED[what]) if place else HELLO for place in range(2)]

    assert thoughts_sent(replace(CHANGED[what], messages=messages, model=model), model) == 1


@pytest.mark.parametrize(
    ("made_by", "asked", "sent"),
    [
        ("anthropic:claude-opus-4-5", "anthropic:claude-sonnet-4-5", 1),
        ("anthropic:claude-opus-5-5", "anthropic:claude-fable-5-1", 0),
        ("anthropic:claude-opus-5-5", "openai:gpt-5.1", 0),
        ("openai:gpt-5.1", "openai:gpt-6", 1),
        ("openai:gpt-5.1", "anthropic:claude-opus-4-5", 0),
        ("anthropic:m2 https://m.example", "anthropic:claude-opus-4-5", 0),
        ("anthropic:m2 https://m.example", "anthropic:m2.5 https://m.example", 1),
        ("openai-chat:deepseek-v4 https://g.example", "openai-chat:deepseek-v4 https://g.example", 1),
        ("openai-chat:deepseek-v4 https://g.example", "openai-chat:gemini-3 https://g.example", 0),
        ("qwen:qwen-plus", "qwen:deepseek-v4", 0),
    ],
)
def test_a_thought_of_another_provider_is_left_out(made_by: str, asked: str, sent: int) -> None:
    assert thoughts_sent(request(HELLO, thought(made_by), NEWEST), asked) == sent


@pytest.mark.proves("X17")
@pytest.mark.parametrize(
    ("made_by", "asked", "sent"),
    [
        ("openai:gpt-5.4", "openai:gpt-5.5", True),
        ("openai:gpt-5.4", "openai:gpt-5.4 https://o.example", False),
        ("openai:gpt-5.4", "anthropic:claude-opus-4-5", False),
        ("openai-chat:gemini-3", "openai-chat:gemini-3", True),
        ("openai-chat:gemini-3", "openai-chat:gemini-3-flash", False),
        ("openai-chat:gemini-3", "openai-chat:gemini-3 https://g.example", False),
        ("", "openai-chat:gemini-3", False),
    ],
)
def test_extras_go_to_whom_they_are_from_alone(made_by: str, asked: str, sent: bool) -> None:
    call = ToolCallBlock(id="c1", name="weather", input="{}", extras={"thought_signature": "s"})
    text = TextBlock(text="Hi.", extras={"phase": "commentary"})
    said: tuple[ContentBlock, ...] = (text, call)
    content = with_origin(said, made_by, "") if made_by else said
    recorded = request(HELLO, AssistantMsg("longhaul", content), NEWEST)

    went = fitting(recorded, asked, beginnings(recorded)).messages[1]

    assert went.content == (content if sent else (TextBlock(text="Hi."), call.model_copy(update={"extras": {}})))


def test_servers_of_chat_completions_have_models_of_many_vendors() -> None:
    assert {name for name, provider in PROVIDERS.items() if provider.api in ("chat", "ai")} == OF_MANY_VENDORS


def test_one_that_nobody_has_marked_is_left_to_the_provider() -> None:
    unmarked = AssistantMsg("longhaul", [SIGNED, TextBlock(text="Hi.")])

    assert thoughts_sent(request(HELLO, unmarked, NEWEST)) == 1


def test_a_thought_without_a_signature_gets_no_mark() -> None:
    content = (ThinkingBlock(thinking="Hm."), TextBlock(text="Hi."))

    assert with_origin(content, BOUND, "x") == content


def test_an_address_of_its_own_is_part_of_an_origin() -> None:
    assert origin_of("anthropic:m2", ModelConfig(base_url="https://m.example")) == "anthropic:m2 https://m.example"


@pytest.mark.parametrize(
    ("model", "binds"),
    [
        ("anthropic:claude-fable-5-1", True),
        ("anthropic:claude-fable-5-2", True),
        ("anthropic:claude-mythos-5-2", True),
        ("anthropic:claude-opus-5-5", True),
        ("anthropic:claude-sonnet-5-5-20260928", True),
        ("anthropic:claude-haiku-5-5", True),
        ("openai-chat:anthropic/claude-opus-5.5", True),
        ("openai-chat:us.anthropic.claude-opus-6-0-v1:0", True),
        ("anthropic:claude-opus-5", False),
        ("anthropic:claude-opus-5-20260601", False),
        ("anthropic:claude-opus-4-8", False),
        ("anthropic:claude-3-7-sonnet-latest", False),
        ("openai:gpt-5.1", False),
    ],
)
def test_which_models_bind_thoughts_is_read_from_their_names(model: str, binds: bool) -> None:
    assert binds_thinking(model) is binds


@pytest.mark.parametrize(
    ("model", "official", "budget", "thinking"),
    [
        ("claude-opus-5-5", True, None, {"type": "adaptive"}),
        ("claude-opus-5-5", True, 2_000, {"type": "adaptive", "display": "summarized"}),
        ("claude-opus-5-5", False, None, None),
        ("claude-opus-4-5", True, None, None),
    ],
)
def test_anthropic_itself_is_asked_to_drop_what_only_it_can_know(
    model: str, official: bool, budget: int | None, thinking: dict[str, object] | None
) -> None:
    config = ModelConfig(thinking_budget_tokens=budget)

    payload = build_payload(request(HELLO, model=model, config=config), [], official=official)

    bound = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert payload.get("thinking") == (thinking if thinking is None else {**thinking, **bound})
