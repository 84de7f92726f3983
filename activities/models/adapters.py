"""Makes what calls a model, for each API that providers speak, with the SDK's client for it."""

from typing import TYPE_CHECKING, assert_never

from longhaul.activities.models.apis.ambient import ANTHROPIC, OPENAI, left_out
from longhaul.activities.models.apis.vendors import Hosted
from longhaul.activities.models.model import Model
from longhaul.agent.values.spec.profiles import Api

if TYPE_CHECKING:
    import anthropic
    import openai


def make_model(provider_name: str, api: Api, api_key: str, base_url: str, *, own: bool) -> Model:
    """Import what the provider needs, and nothing for the others: a worker has to start within a second."""
    match api:
        case "messages":
            from longhaul.activities.models.apis.anthropic import AnthropicModel  # noqa: PLC0415  see the docstring

            return AnthropicModel(_anthropic(api_key, base_url, own=own))
        case "responses":
            from longhaul.activities.models.apis.openai_responses import OpenAIResponsesModel  # noqa: PLC0415

            return OpenAIResponsesModel(_openai(api_key, base_url, own=own and provider_name == "openai"))
        case "chat":
            from longhaul.activities.models.apis.openai_chat import OpenAIChatModel  # noqa: PLC0415

            client = _openai(api_key, base_url, own=own and provider_name == "openai-chat")
            return OpenAIChatModel(client, dashscope=provider_name == "qwen")
        case "ai":
            from longhaul.activities.models.apis.vendor_model import VendorModel  # noqa: PLC0415

            return VendorModel(provider_name, api_key, Hosted(base_url))
        case "script":
            from longhaul.activities.models.script.scripted import ScriptedModel  # noqa: PLC0415

            return ScriptedModel()
        case _ as never:
            assert_never(never)


def _anthropic(api_key: str, base_url: str, *, own: bool) -> "anthropic.AsyncAnthropic":
    import anthropic  # noqa: PLC0415

    headers = None if own else left_out(anthropic.Omit(), api_key, *ANTHROPIC)
    return anthropic.AsyncAnthropic(api_key=api_key, base_url=base_url, max_retries=0, default_headers=headers)


def _openai(api_key: str, base_url: str, *, own: bool) -> "openai.AsyncOpenAI":
    import openai  # noqa: PLC0415

    headers = None if own else left_out(openai.Omit(), api_key, *OPENAI)
    return openai.AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0, default_headers=headers)
