"""What of a profile a model would refuse is left out, and said."""

from typing import Any

import pytest

from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.profiles import read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.wire import Answer, Wire, says_of

TOP_P = "The field top_p was left out: this model takes none with these settings."
TEMPERATURE = "The temperature was left out: this model takes none with these settings."
STOP = "The list of stop words was left out: this model takes none with these settings."


@pytest.mark.parametrize(
    ("full_name", "said", "config", "sent", "notes"),
    [
        ("anthropic:claude-opus-4-8", {"top_p": 0.5}, {}, {}, {TOP_P}),
        ("anthropic:claude-haiku-4-5", {"top_p": 0.5}, {}, {"top_p": 0.5}, set()),
        ("anthropic:claude-haiku-4-5", {"top_p": 0.5}, {"temperature": 0.5}, {"temperature": 0.5}, {TOP_P}),
        ("anthropic:claude-haiku-4-5", {"top_p": 0.97}, {"thinking_budget_tokens": 2048}, {"top_p": 0.97}, set()),
        ("anthropic:claude-haiku-4-5", {}, {"temperature": 2}, {"temperature": 1}, {
            "The temperature is 1: Anthropic takes no more."}),
        ("openai:gpt-5.1", {"top_p": 0.5}, {"reasoning_effort": "low"}, {}, {TOP_P}),
        ("openai:gpt-5.1", {"top_p": 0.5}, {}, {"top_p": 0.5}, set()),
        ("openai:gpt-6.1-terra", {"top_p": 0.5}, {"temperature": 0.2}, {}, {TOP_P, TEMPERATURE}),
        ("openai:gpt-6.1-terra", {}, {"temperature": 0.2, "reasoning_effort": "none"}, {"temperature": 0.2}, set()),
        ("openai:gpt-6.2-sol", {}, {"temperature": 0.2, "reasoning_effort": "none"}, {}, {TEMPERATURE}),
        ("openai:gpt-4.1", {"top_p": 0.5}, {"max_output_tokens": 3}, {"top_p": 0.5, "max_output_tokens": 16}, set()),
        ("openai-chat:our-own", {"family": "gpt-5", "top_p": 0.5, "stop": ["END"]}, {}, {}, {TOP_P, STOP}),
        ("openai-chat:gpt-4.1", {"top_p": 0.5, "stop": ["END"]}, {}, {"top_p": 0.5, "stop": ["END"]}, set()),
        ("openai-chat:kimi-k2.6", {"top_p": 0.5}, {"temperature": 0.5}, {}, {
            TOP_P, TEMPERATURE}),
        ("openai-chat:moonshot-v1-8k", {}, {"temperature": 0.5}, {"temperature": 0.5}, set()),
    ],
)  # fmt: skip
async def test_a_setting_is_sent_or_its_absence_is_told(
    wire: Wire, full_name: str, said: dict[str, Any], config: dict[str, Any], sent: dict[str, Any], notes: set[str]
) -> None:
    provider, _, model = full_name.partition(":")
    table = {"provider": provider, "model": model, "base_url": wire.url, "api_key_env": "TEAM_KEY", **said}
    providers = Providers({"TEAM_KEY": "sk-team-moss"}, (), read_profiles({"it": table}))
    wire.answers = [Answer(says_of(provider, "Aye."))]
    request = ModelRequest("", "", [UserMsg("user", "Fair wind?")], (), ModelConfig(**config))

    reply = await providers.call("it", request, lambda _: None)
    await providers.close()

    fields = {"top_p", "stop", "temperature", "max_output_tokens"} & wire.bodies[0].keys()
    told = {name: wire.bodies[0][name] for name in fields if name != "max_output_tokens" or "max_output_tokens" in sent}
    assert told == sent
    assert notes <= set(reply.notes)
    assert (TOP_P in reply.notes) == (TOP_P in notes)
