"""Claude is asked to think in one way for a whole turn, however often it does, and nothing of its cache is lost."""

from typing import Any

import pytest

from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import AssistantMsg, HintBlock, Msg, ToolCallBlock, UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.loops import assert_each_goes_on_where_the_last_one_ended, step
from tests.activities.models.sample_requests import KEYS, Caller, called, returned
from tests.activities.models.wire import Answer, Wire, chat_calls, claude_says, claude_turn

MANUAL, ADAPTIVE = "anthropic:claude-haiku-4-5", "anthropic:claude-opus-4-8"
ON = {MANUAL: {"type": "enabled", "budget_tokens": 2000}, ADAPTIVE: {"type": "adaptive", "display": "summarized"}}

THINKS = {
    "at the first call alone": (True, False, False, False, False, False),
    "at each call": (True, True, True, True, True, True),
    "now and then": (True, False, True, False, False, True),
}
ADAPTIVELY = {
    "never": (False, False, False, False, False, False),
    "late": (False, False, True, False, True, False),
}


def call(number: int, *, thinks: bool) -> Answer:
    thought = (f"Hm, {number}.", f"c2ln{number}") if thinks else None
    return Answer(claude_turn(thought, "", (f"toolu_{number}", "weather", {"city": f"Oslo {number}"})))


async def loop(by_wire: Caller, wire: Wire, model: str, thoughts: tuple[bool, ...]) -> list[dict[str, Any]]:
    wire.answers = [
        *(call(number, thinks=thinks) for number, thinks in enumerate(thoughts)),
        Answer(claude_says("Rain.")),
    ]
    messages: list[Msg] = [UserMsg("user", "How is the weather?")]
    for number in range(len(wire.answers)):
        messages = await step(by_wire, model, messages, thinking_budget_tokens=2000)
        if number == 2:
            messages.append(UserMsg("user", [HintBlock(hint="It is Friday.")]))
    return wire.bodies


@pytest.mark.proves("F6")
@pytest.mark.parametrize(
    ("model", "when"),
    [(model, when) for model in ON for when in (THINKS if model == MANUAL else THINKS | ADAPTIVELY)],
)
async def test_a_turn_has_one_configuration_however_the_model_thinks(
    by_wire: Caller, wire: Wire, model: str, when: str
) -> None:
    bodies = await loop(by_wire, wire, model, (THINKS | ADAPTIVELY)[when])

    assert [body["thinking"] for body in bodies] == [ON[model]] * 7
    assert_each_goes_on_where_the_last_one_ended(bodies)


async def test_a_turn_that_was_started_without_thinking_ends_without(by_wire: Caller, wire: Wire) -> None:
    """As by another provider's model; the next turn has it again. With a budget, the first call must have a thought."""
    wire.answers = [Answer(chat_calls("c1", "weather", {})), call(1, thinks=True), call(2, thinks=False)]
    wire.answers += [Answer(claude_says("Rain.")), call(4, thinks=True), Answer(claude_says("Rain."))]
    messages: list[Msg] = await step(by_wire, "openai-chat:qwen3", [UserMsg("user", "How is the weather?")])
    for said in ("", "", "", "And now?", ""):
        messages += [UserMsg("user", said)] if said else []
        messages = await step(by_wire, MANUAL, messages, thinking_budget_tokens=2000)

    assert [body.get("thinking") for body in wire.bodies] == [None, None, None, None, ON[MANUAL], ON[MANUAL]]
    assert_each_goes_on_where_the_last_one_ended(wire.bodies[1:4])
    assert_each_goes_on_where_the_last_one_ended(wire.bodies[4:])


async def test_a_call_of_another_provider_within_a_turn_changes_nothing(by_wire: Caller, wire: Wire) -> None:
    wire.answers = [call(0, thinks=True), Answer(chat_calls("c1", "weather", {})), call(2, thinks=False)]
    wire.answers += [Answer(claude_says("Rain."))]
    messages: list[Msg] = [UserMsg("user", "How is the weather?")]
    for model in (MANUAL, "openai-chat:qwen3", MANUAL, MANUAL):
        messages = await step(by_wire, model, messages, thinking_budget_tokens=2000)

    own = [wire.bodies[0], *wire.bodies[2:]]
    assert [body["thinking"] for body in own] == [ON[MANUAL]] * 3
    assert_each_goes_on_where_the_last_one_ended(own)


@pytest.mark.parametrize("model", ON)
async def test_tools_that_may_not_be_called_leave_thinking_as_it_is(by_wire: Caller, wire: Wire, model: str) -> None:
    """At the limit of iterations, where a model says what it has."""
    wire.answers = [call(0, thinks=True), Answer(claude_says("Rain."))]
    messages = await step(by_wire, model, [UserMsg("user", "Go")], thinking_budget_tokens=2000)
    config = ModelConfig(base_url=by_wire.base_url, thinking_budget_tokens=2000)
    request = ModelRequest("", "Be brief.", messages, (), config, no_calls=True)

    await by_wire.providers.call(model, request, lambda _: None)

    assert wire.bodies[0]["thinking"] == wire.bodies[1]["thinking"] == ON[model]


@pytest.mark.parametrize(
    ("model", "settings", "own", "betas"),
    [
        ("claude-haiku-4-5", {"thinking_budget_tokens": 2000}, "", "interleaved-thinking-2025-05-14"),
        ("claude-opus-4-1", {"thinking_budget_tokens": 2000}, "a-b", "a-b,interleaved-thinking-2025-05-14"),
        ("claude-haiku-4-5", {}, "a-b", "a-b"),
        ("claude-3-9-sonnet", {"thinking_budget_tokens": 2000}, "", ""),
        ("claude-opus-4-8", {"thinking_budget_tokens": 2000}, "", ""),
        ("claude-opus-5-5", {}, "", "thinking-binding-controls-2026-08-01"),
        ("claude-opus-5-5", {"thinking_budget_tokens": 2000}, "a-b", "a-b,thinking-binding-controls-2026-08-01"),
    ],
)
async def test_anthropic_itself_is_asked_for_thinking_between_calls(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, model: str, settings: dict[str, Any], own: str, betas: str
) -> None:
    """Its address is reached through a proxy, which is ours."""
    monkeypatch.setenv("HTTP_PROXY", wire.url)
    monkeypatch.setenv("NO_PROXY", "")
    if own:
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"anthropic-beta: {own}")
    there = "http://api.anthropic.com"
    providers = Providers(KEYS | {"ANTHROPIC_BASE_URL": there}, [KeyPlace("ANTHROPIC_API_KEY", there)])
    wire.answers = [Answer(claude_says("ok"))]
    request = ModelRequest("", "", [UserMsg("user", "Hi")], (), ModelConfig(**settings))

    await providers.call(f"anthropic:{model}", request, lambda _: None)
    await providers.close()

    sent = [
        line.partition(": ")[2] for line in wire.heads[0].split("\r\n") if line.lower().startswith("anthropic-beta:")
    ]
    assert wire.heads[0].startswith("POST http://api.anthropic.com/v1/messages")
    assert sent == ([betas] if betas else [])


async def test_another_server_is_not_told_of_betas(by_wire: Caller, wire: Wire) -> None:
    wire.answers = [Answer(claude_says("ok"))]

    await by_wire.call(MANUAL, "Hi", thinking_budget_tokens=2000)

    assert "anthropic-beta" not in wire.heads[0].lower()


async def test_a_turn_whose_first_call_is_unsigned_is_continued_without(by_wire: Caller, wire: Wire) -> None:
    wire.answers = [Answer(claude_says("ok"))]
    messages = [UserMsg("user", "Go"), called("a1", "weather", "{}"), returned("a1", "weather", "sun")]
    messages += [AssistantMsg("x", [ToolCallBlock(id="a2", name="weather", input="{}")]), returned("a2", "weather", "")]

    await by_wire.call(MANUAL, messages, thinking_budget_tokens=2000, temperature=0.3)

    assert "thinking" not in wire.bodies[0]
    assert wire.bodies[0]["temperature"] == 0.3
