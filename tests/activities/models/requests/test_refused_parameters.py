"""A parameter that a provider refuses is left out, said once, and remembered: a changed rule costs one request."""

import json
from typing import Any

import pytest

from longhaul.activities.models.failures.status_table import ProviderError
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.profiles import read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.requests.refused_parameters import refused_by
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import WEATHER
from tests.activities.models.wire import Answer, Wire, says_of

REFUSALS: list[tuple[str, str, dict[str, Any], str, tuple[str, ...]]] = [
    ("anthropic", "temperature: Extra inputs are not permitted", {"temperature": 0.2}, "temperature", ("temperature",)),
    ("anthropic", "`temperature` is deprecated for this model.", {"temperature": 0.2}, "temperature", ("temperature",)),
    ("anthropic", "top_p: Extra inputs are not permitted", {"top_p": 0.5}, "top_p", ("top_p",)),
    ("anthropic", "This model does not support the effort parameter.", {"effort": "low"}, "effort", ("output_config",)),
    ("openai", "Unsupported parameter: 'temperature' is not supported with this model.", {"temperature": 0.2},
     "temperature", ("temperature",)),
    ("openai", "Unsupported value: 'minimal' is not supported with the 'reasoning.effort' parameter.",
     {"effort": "minimal"}, "effort", ("reasoning",)),
    ("openai", "Unknown parameter: 'text.verbosity'.", {"verbosity": "low"}, "verbosity", ("text",)),
    ("openai-chat", "invalid temperature: only 1 is allowed for this model", {"temperature": 0.2}, "temperature",
     ("temperature",)),
    ("openai-chat", "Unrecognized request argument supplied: reasoning_effort", {"effort": "low"}, "effort",
     ("reasoning_effort",)),
    ("openai-chat", "Unknown field 'stream_options'", {}, "stream_options", ("stream_options",)),
    ("openai-chat", "Unsupported parameter: 'seed'", {"seed": 7}, "seed", ("seed",)),
    ("openai-chat", "'stop' is not supported with this model", {"stop": ["END"]}, "stop", ("stop",)),
    ("ai:deepseek", "Unexpected parameter: temperature", {"temperature": 0.2}, "temperature", ("temperature",)),
]  # fmt: skip


def refusing(words: str) -> Answer:
    body = json.dumps({"error": {"type": "invalid_request_error", "message": words}}).encode()
    return Answer(body, status=400, headers={"content-type": "application/json"})


async def twice(wire: Wire, provider: str, said: dict[str, Any]) -> tuple[ModelReply, ModelReply]:
    table = {"provider": provider, "model": "our-own", "base_url": wire.url, "api_key_env": "TEAM_KEY", **said}
    providers = Providers({"TEAM_KEY": "sk-team-moss"}, (), read_profiles({"it": table}))
    request = ModelRequest("", "", [UserMsg("user", "Fair wind?")], [WEATHER], ModelConfig())
    first = await providers.call("it", request, lambda _: None)
    second = await providers.call("it", request, lambda _: None)
    await providers.close()
    return first, second


@pytest.mark.parametrize(("provider", "words", "said", "name", "fields"), REFUSALS)
async def test_what_a_provider_refuses_is_left_out_from_then_on(
    wire: Wire, provider: str, words: str, said: dict[str, Any], name: str, fields: tuple[str, ...]
) -> None:
    wire.answers = [refusing(words), Answer(says_of(provider, "Aye.")), Answer(says_of(provider, "Aye, aye."))]

    first, second = await twice(wire, provider, said)

    asked, again, later = wire.bodies
    assert [field in asked for field in fields] == [True] * len(fields)
    assert [field in again or field in later for field in fields] == [False] * len(fields)
    for reply in (first, second) if said else (first,):
        assert f"The provider has refused {name!r} for this model, and the request goes without it: " in "".join(
            reply.notes
        )


async def test_a_provider_that_demands_no_effort_is_asked_so(wire: Wire) -> None:
    words = (
        "Function tools with reasoning_effort are not supported. Use /v1/responses or set reasoning_effort to 'none'."
    )
    wire.answers = [refusing(words), *[Answer(says_of("openai-chat", "Aye."))] * 2]

    await twice(wire, "openai-chat", {})

    assert [body.get("reasoning_effort") for body in wire.bodies] == [None, "none", "none"]


async def test_a_server_that_has_the_other_name_of_the_limit_is_sent_that(wire: Wire) -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    wire.answers = [refusing(words), *[Answer(says_of("openai-chat", "Aye."))] * 2]

    await twice(wire, "openai-chat", {})

    assert [("max_tokens" in body, "max_completion_tokens" in body) for body in wire.bodies] == [
        (True, False),
        (False, True),
        (False, True),
    ]


async def test_what_is_refused_once_more_ends_the_call(wire: Wire) -> None:
    wire.answers = [refusing("Unsupported parameter: 'temperature'")] * 2

    with pytest.raises(Exception, match="temperature"):
        await twice(wire, "openai-chat", {"temperature": 0.2})

    assert len(wire.bodies) == 2


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "messages.3.content.1: Invalid `signature` in `thinking` block"),
        (400, "prompt is too long: 240000 tokens > 200000 maximum"),
        (400, "Invalid value for 'messages[2].content': not allowed"),
        (429, "Unsupported parameter: 'temperature'"),
        (500, "Unsupported parameter: 'temperature'"),
        (400, "The model `gpt-9` does not exist or you do not have access to it."),
        (400, "Your organization must be verified to stream this model."),
    ],
)
def test_a_refusal_of_something_else_names_no_parameter(status: int, words: str) -> None:
    found = refused_by(ProviderError(status, "invalid_request_error", words))[0]

    assert found == ""
