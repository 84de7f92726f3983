"""Each model is asked for the effort that was wanted, or for the nearest that it has, and whoever looks is told so."""

import logging
from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.activities.models.model import SESSIONS_KEPT, ModelReply, SaidOnce
from longhaul.activities.models.requests.model_parameters import effort_of, levels_of
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.known_names import EFFORTS
from tests.activities.models.sample_requests import Caller
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, response_says

LMH = ("low", "medium", "high")
LEVELS: dict[tuple[str, ...] | None, tuple[str, ...]] = {
    (*LMH, "xhigh", "max"): (
        "claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5", "claude-fable-5",
        "claude-fable-5-2", "claude-mythos-5-1", "anthropic/claude-opus-4.8", "us.anthropic.claude-sonnet-5-5-v1:0",
        "claude-opus-4-8[1m]", "claude-next", "claude-opus-7", "gpt-6-astra", "gpt-6.1-sol", "gpt-6.2-sol", "gpt-6",
        "openai/gpt-7-sol",
    ),
    (*LMH, "max"): ("claude-opus-4-6", "claude-sonnet-4-6", "claude-mythos-preview", "anthropic/claude-opus-4.6"),
    ("low", "high"): ("gemini-3-pro-preview", "google/gemini-3-pro"),
    ("none", "low", "high"): ("grok-3-mini",),
    ("low", "high", "max"): ("kimi-k3", "moonshotai/kimi-k3.1-pro", "kimi-k4", "glm-5.3", "zai-org/GLM-6"),
    LMH: (
        "gemini-3.1-pro-preview",
        "claude-opus-4-5", "claude-opus-4-5-20251101", "o1", "o3-mini", "openai/o4-mini", "gpt-5-codex",
        "gpt-5.1-codex", "gpt-oss-120b", "codex-mini-latest", "grok-4.5", "grok-4.6", "grok-build-latest",
    ),
    (): (
        "claude-sonnet-4-5", "claude-haiku-4-5-20251001", "claude-sonnet-4-20250514", "claude-opus-4-1",
        "claude-3-7-sonnet-latest", "claude-3-opus-20240229", "gpt-4.1", "gpt-4o-mini", "openai/gpt-4o",
        "gpt-3.5-turbo", "gpt-5-chat-latest", "gpt-5.2-chat", "chatgpt-4o-latest", "grok-4.20-0309-reasoning",
        "grok-build-0.1", "grok-code-fast-1", "kimi-k2-thinking",
    ),
    ("minimal", *LMH): ("gpt-5", "gpt-5-mini", "gpt-5-nano-2025-08-07", "openai/gpt-5"),
    ("none", *LMH): ("gpt-5.1", "ft:gpt-5.1:acme", "grok-4.3", "grok-latest", "grok-4", "grok-4-fast-reasoning"),
    ("none", *LMH, "xhigh"): ("gpt-5.2", "gpt-5.4-mini", "openai/gpt-5.5"),
    ("none", *LMH, "xhigh", "max"): ("gpt-5.6", "gpt-5.6-terra", "gpt-6-luna", "gpt-6.1-terra"),
    (*LMH, "xhigh"): ("gpt-5.1-codex-max", "gpt-5.3-codex", "grok-4.7", "x-ai/grok-4.7", "grok-4.20-multi-agent-0309",
                       "grok-5"),
    ("high",): ("gpt-5-pro",),
    ("medium", "high", "xhigh"): ("gpt-5.2-pro",),
    ("none", "minimal", *LMH): ("gemini-3.5-flash", "google/gemini-2.5-flash"),
    None: ("deepseek-v4-pro", "qwen3-max", "my-deployment", "m2"),
}  # fmt: skip


@pytest.mark.parametrize(("model", "levels"), [(model, levels) for levels, names in LEVELS.items() for model in names])
def test_the_efforts_of_a_model_are_known_from_its_name(model: str, levels: tuple[str, ...] | None) -> None:
    assert levels_of(model) == levels


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("wanted", EFFORTS)
def test_what_is_sent_is_what_was_wanted_or_something_that_the_model_has(
    levels: tuple[str, ...] | None, wanted: str
) -> None:
    notes: list[str] = []

    sent = effort_of(LEVELS[levels][0], wanted, notes)

    assert sent == wanted or sent is None or (levels is not None and sent in levels)
    assert sent is not None or levels == ()
    assert bool(notes) is (sent != wanted and not (levels == () and wanted == "none"))


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        ("claude-opus-4-6", "xhigh", "high"),
        ("claude-opus-4-5", "max", "high"),
        ("claude-opus-5-5", "minimal", "low"),
        ("claude-opus-5-5", "none", "low"),
        ("gpt-5.1", "minimal", "low"),
        ("gpt-5", "none", "minimal"),
        ("gpt-5.5", "max", "xhigh"),
        ("gpt-5-pro", "low", "high"),
        ("gemini-3-pro", "max", "high"),
    ],
)
def test_the_nearest_one_is_taken_and_none_only_when_it_was_wanted(model: str, wanted: str, sent: str) -> None:
    notes: list[str] = []

    assert effort_of(model, wanted, notes) == sent
    assert notes == [
        f"This model has no effort {wanted!r}: it is asked for {sent!r}. It has: {', '.join(levels_of(model) or ())}."
    ]


ADAPTIVE = {"type": "adaptive", "display": "summarized"}


@pytest.mark.proves("F6")
@pytest.mark.parametrize(
    ("model", "settings", "expected"),
    [
        (
            "claude-opus-5-5",
            {"reasoning_effort": "xhigh"},
            {"output_config": {"effort": "xhigh"}, "thinking": ADAPTIVE},
        ),
        ("claude-opus-4-8", {"reasoning_effort": "max"}, {"output_config": {"effort": "max"}, "thinking": ADAPTIVE}),
        ("claude-opus-4-8", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ("claude-opus-4-5", {"reasoning_effort": "low"}, {"output_config": {"effort": "low"}}),
        (
            "claude-opus-4-5",
            {"reasoning_effort": "low", "thinking_budget_tokens": 2000},
            {"output_config": {"effort": "low"}, "thinking": {"type": "enabled", "budget_tokens": 2000}},
        ),
        ("claude-haiku-4-5", {"reasoning_effort": "high"}, {}),
        (
            "claude-haiku-4-5",
            {"reasoning_effort": "none", "thinking_budget_tokens": 2000},
            {"thinking": {"type": "disabled"}},
        ),
        ("deepseek-v4-pro", {"reasoning_effort": "max"}, {"output_config": {"effort": "max"}}),
        ("claude-opus-5-5", {}, {}),
    ],
)
async def test_claude_is_asked_for_an_effort(
    by_wire: Caller, wire: Wire, model: str, settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    wire.answers = [Answer(claude_says("ok"))]

    reply = await by_wire.call(f"anthropic:{model}", "Hi", **settings)

    assert {name: wire.bodies[0][name] for name in ("output_config", "thinking") if name in wire.bodies[0]} == expected
    left_out = "The effort 'high' was left out: this model has none."
    assert (left_out in reply.notes) is (settings == {"reasoning_effort": "high"})


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        ("openai:gpt-5.2", "none", {"effort": "none"}),
        ("openai:gpt-5.6", "max", {"effort": "max", "summary": "auto"}),
        ("openai:gpt-5.1", "xhigh", {"effort": "high", "summary": "auto"}),
        ("openai:my-deployment", "xhigh", {"effort": "xhigh"}),
        ("openai:gpt-4.1", "high", None),
        ("openai-chat:gpt-5.2", "xhigh", "xhigh"),
        ("openai-chat:gpt-4.1", "high", None),
        ("openai-chat:deepseek-v4-pro", "max", "max"),
        ("qwen:qwen3-max", "minimal", "minimal"),
    ],
)
async def test_so_are_the_others(by_wire: Caller, wire: Wire, model: str, wanted: str, sent: object) -> None:
    responses = model.startswith("openai:")
    wire.answers = [Answer(response_says("ok") if responses else chat_says("ok"))]

    reply = await by_wire.call(model, "Hi", reasoning_effort=wanted)

    assert wire.bodies[0].get("reasoning" if responses else "reasoning_effort") == sent
    asked = sent["effort"] if isinstance(sent, dict) else sent
    assert any("effort" in note for note in reply.notes) is (asked != wanted)


@pytest.mark.parametrize("effort", EFFORTS)
def test_each_effort_may_be_set(effort: str) -> None:
    assert (
        AgentSpec.model_validate({"model_config": {"reasoning_effort": effort}}).llm_config.reasoning_effort == effort
    )


@pytest.mark.parametrize(
    ("effort", "hint"),
    [
        ("hihg", "did you mean 'high'?"),
        ("xmax", "did you mean 'max'?"),
        ("", "there are: high, low, max"),
        (3, "string"),
    ],
)
def test_another_one_is_refused_by_name_where_the_agent_is_made(effort: object, hint: str) -> None:
    with pytest.raises(ValidationError, match=r"model_config\.reasoning_effort") as refused:
        AgentSpec.model_validate({"model_config": {"reasoning_effort": effort}})

    assert hint in str(refused.value)


@pytest.mark.proves("F6")
def test_what_was_left_out_is_said_once_in_each_session(caplog: pytest.LogCaptureFixture) -> None:
    reply = ModelReply((), Usage(), "m", notes=("The effort 'high' was left out: this model has none.",))
    said = SaidOnce()

    with caplog.at_level(logging.WARNING):
        for session in ("quarry", "quarry", "harbour", "quarry"):
            said.tell(session, "gpt-4.1", reply)
        for number in range(SESSIONS_KEPT):
            said.tell(f"many-{number}", "gpt-4.1", reply)

    assert [record.getMessage() for record in caplog.records[:2]] == [
        f"gpt-4.1 in session {session}: The effort 'high' was left out: this model has none."
        for session in ("quarry", "harbour")
    ]
    assert len(caplog.records) == 2 + SESSIONS_KEPT
