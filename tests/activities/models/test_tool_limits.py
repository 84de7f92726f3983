"""More tools than a provider takes, and longer descriptions: told otherwise, and said in a note."""

import json

import pytest

from longhaul.activities.models.failures.status_table import ProviderError
from longhaul.activities.models.model import AnswerSchema, ModelReply, ModelRequest
from longhaul.activities.models.model_limits import ToolLimits, fitted, limits_in, published
from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import WEATHER
from tests.activities.models.test_providers import ignore
from tests.activities.models.wire import Answer, Wire, chat_says

NUMBERED = [WEATHER.model_copy(update={"name": f"tool_{number}"}) for number in range(30)]
LONG = WEATHER.model_copy(update={"name": "almanac", "description": "Tides and moons. " * 20 + "The end."})


def asking(*tools: ToolDescriptor, **more: object) -> ModelRequest:
    asked = ModelRequest("", "Be brief.", [UserMsg("user", "Hi")], tools, ModelConfig())
    for name, value in more.items():
        object.__setattr__(asked, name, value)
    return asked


ARRAY, STRING = "array too long. Expected an array with", "string too long. Expected a string with"


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        (f"Invalid 'tools': {ARRAY} maximum length 128, but got an array with length 150 instead.", ToolLimits(128)),
        ("'tools' : maximum number of items is 128", ToolLimits(128)),
        ("function_declarations: At most 512 function declarations can be specified.", ToolLimits(512)),
        ("Maximum tools limit reached. 219 tools have been provided but the maximum is 200.", ToolLimits(200)),
        ("You may not include more than 64 tools in your request.", ToolLimits(64)),
        (f"Invalid 'tools[2].function.description': {STRING} maximum length 1024, but", ToolLimits(longest=1024)),
        (f"Invalid 'messages[2].tool_calls': {ARRAY} maximum length 128, but got 200.", ToolLimits()),
        (f"Invalid 'input[2].call_id': {STRING} maximum length 64.", ToolLimits()),
        ("You may not include more than 0 tools in your request.", ToolLimits()),
    ],
)
def test_what_a_refusal_says_of_tools_is_read(words: str, limits: ToolLimits) -> None:
    assert limits_in(ProviderError(400, "invalid_request_error", words)) == limits
    assert limits_in(ProviderError(429, "", words)) == ToolLimits()


@pytest.mark.parametrize(
    ("provider", "base_url", "limits"),
    [
        ("openai", "https://api.openai.com/v1", ToolLimits(128)),
        ("openai", "https://ours.openai.azure.com/openai/v1", ToolLimits(128, 1024)),
        ("azure", "https://gateway.example", ToolLimits(128, 1024)),
        ("ai:google", "https://generativelanguage.googleapis.com", ToolLimits(512)),
        ("openai", "https://api.x.ai/v1", ToolLimits(200)),
        ("openai", "https://notapi.openai.com.example/v1", ToolLimits()),
        ("anthropic", "https://api.anthropic.com", ToolLimits()),
    ],
)
def test_what_is_published_holds_from_the_first_request_on(provider: str, base_url: str, limits: ToolLimits) -> None:
    assert published(provider, base_url) == limits


@pytest.mark.proves("F6")
def test_the_last_ones_are_left_out_but_not_the_one_that_has_to_be_called() -> None:
    fit, notes = fitted(asking(*NUMBERED, must_call="tool_29"), ToolLimits(12))

    assert [tool.name for tool in fit.tools] == [*(f"tool_{number}" for number in range(11)), "tool_29"]
    named = ", ".join(f"tool_{number}" for number in range(11, 21))
    assert notes == [
        (
            f"This model's provider takes 12 tools: {named}, 8 more were left out. Name fewer (`enable_tools` and "
            "`disable_tools` of MCP servers), or put them into tool groups."
        )
    ]


def test_a_form_is_one_of_them() -> None:
    form = AnswerSchema("summary", "All.", {"type": "object"})

    fit, _ = fitted(asking(*NUMBERED, answer=form), ToolLimits(12))

    assert len(fit.tools) == 11


@pytest.mark.proves("F6")
def test_a_long_description_stands_whole_in_the_system_prompt() -> None:
    fit, notes = fitted(asking(WEATHER, LONG), ToolLimits(longest=200))

    assert fit.tools[0] == WEATHER
    assert len(fit.tools[1].description) <= 200
    assert fit.tools[1].description.endswith("moons. (The rest of it stands in the system prompt.)")
    assert fit.system == f"Be brief.\n\n# More about tools\n\n## almanac\n\n{LONG.description}"
    assert notes == [
        "This model's provider takes descriptions of 200 characters: the rest of almanac stands in the system prompt."
    ]


def test_what_fits_is_sent_as_it_is() -> None:
    asked = asking(WEATHER, LONG)

    assert fitted(asked, ToolLimits(2, len(LONG.description))) == (asked, [])


async def ask(wire: Wire, providers: Providers, *tools: ToolDescriptor) -> ModelReply:
    config = ModelConfig(base_url=wire.url, api_key_env="none")
    return await providers.call(
        "openai-chat:reef-1", ModelRequest("", "", [UserMsg("user", "Hi")], tools, config), ignore
    )


async def test_a_server_that_says_how_many_it_takes_is_asked_once_more_and_never_again_with_all(wire: Wire) -> None:
    error = {"error": {"message": "'tools' : maximum number of items is 12", "type": "invalid_request_error"}}
    refusal = Answer(json.dumps(error).encode(), 400, {"content-type": "application/json"})
    wire.answers = [refusal, *(Answer(chat_says("Aye.")) for _ in range(2))]
    providers = Providers({}, [KeyPlace("none", wire.url)])

    replies = [await ask(wire, providers, *NUMBERED) for _ in range(2)]
    await providers.close()

    assert [len(body["tools"]) for body in wire.bodies] == [30, 12, 12]
    assert ["takes 12 tools" in " ".join(reply.notes) for reply in replies] == [True, True]


async def test_a_refusal_that_nothing_follows_from_is_told(wire: Wire) -> None:
    """The request has fewer already: asked again it would be refused again."""
    error = {"error": {"message": "'tools' : maximum number of items is 12", "type": "invalid_request_error"}}
    refusal = Answer(json.dumps(error).encode(), 400, {"content-type": "application/json"})
    wire.answers = [refusal, refusal]
    providers = Providers({}, [KeyPlace("none", wire.url)])

    with pytest.raises(Exception, match="maximum number of items is 12"):
        await ask(wire, providers, WEATHER)
    await providers.close()

    assert len(wire.bodies) == 1
