"""The settings and tools of one request, in pydantic-ai's words."""

from collections.abc import Mapping
from typing import Any, cast

import openai
from pydantic_ai.models import Model as VendorsModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from longhaul.activities.models.apis.streams import timeout_of
from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.requests.efforts import effort_of
from longhaul.activities.models.requests.nested_schemas import with_plain_parts
from longhaul.activities.models.requests.openai_parts import is_claude, is_reasoning_model
from longhaul.activities.models.requests.output_limit import output_limit
from longhaul.activities.models.requests.sampling_parameters import is_fixed
from longhaul.activities.models.requests.text import scrub_json
from longhaul.activities.models.requests.tool_names import wire_name
from longhaul.activities.models.requests.turns import answer_schema, wire_schema

_BEDROCK = "bedrock"
"""The library's word for Converse."""
_NAMES: Mapping[str, str] = {
    "temperature": "The temperature",
    "top_p": "The field top_p",
    "seed": "The seed",
    "stop_sequences": "The list of stop words",
    "extra_headers": "The profile's list of headers",
    "extra_body": "The profile's extra_body",
    "thinking": "The effort",
}


def tools_of(model: VendorsModel, request: ModelRequest) -> ModelRequestParameters:
    tools = [_tool(tool.name, tool.description, with_plain_parts(wire_schema(tool))) for tool in request.tools]
    if (answer := request.answer) is not None:
        tools.append(_tool(wire_name(answer.name), answer.description, with_plain_parts(answer_schema(answer))))
    if not tools and model.system == _BEDROCK:
        tools = [_tool(name, "", {"type": "object"}) for name in _once_called(request)]
    return ModelRequestParameters(function_tools=tools)


def _once_called(request: ModelRequest) -> list[str]:
    """Converse refuses calls in a conversation to which no tool is offered."""
    named = (wire_name(call.name) for message in request.messages for call in message.get_tool_calls())
    return list(dict.fromkeys(named))


def _tool(name: str, description: str, schema: dict[str, Any]) -> ToolDefinition:
    """Not strict: then some vendors would want each argument of it to be required."""
    return ToolDefinition(name=name, parameters_json_schema=schema, description=description or None, strict=False)


def settings_of(model: VendorsModel, request: ModelRequest, notes: list[str]) -> ModelSettings:
    """What this model takes of what was wished for; `notes` say what it does not."""
    thinks = bool(model.profile.get("supports_thinking", False))
    wished = _wishes(model.model_name, request, notes)
    if model.system == _BEDROCK:
        _as_converse_has_it(wished, notes)
    refused = _refused(model) | (frozenset() if thinks else {"thinking"})
    if wished.get("thinking") and model.profile.get("bedrock_thinking_variant") == "anthropic":
        refused |= {"temperature", "top_p"}
    notes += [f"{_NAMES[name]} was left out: this model takes none." for name in wished if name in refused]
    timeout = timeout_of(request.config)
    takes_parts = model.provider is not None and isinstance(model.provider.client, openai.AsyncOpenAI)
    sent: dict[str, Any] = {name: value for name, value in wished.items() if name not in refused}
    sent["max_tokens"] = output_limit(request.config, thinks=thinks)
    if "max_retries" not in model.unsupported_settings:
        sent["max_retries"] = 0
    if "timeout" not in model.unsupported_settings:  # else the client has one
        sent["timeout"] = timeout if takes_parts else timeout.read
    if is_claude(model.model_name) or model.profile.get("bedrock_supports_prompt_caching", False):
        sent["cache"] = True  # the library sets marks, where its vendor passes them on
    if request.answer is not None:
        sent["tool_choice"] = [wire_name(request.answer.name)]
    elif (request.no_calls and request.tools) or (model.system == _BEDROCK and not request.tools):
        sent["tool_choice"] = "none"
    elif request.must_call:
        sent["tool_choice"] = [request.must_call]
    return cast("ModelSettings", sent)


def _refused(model: VendorsModel) -> frozenset[str]:
    """Settings that the library would leave out in silence, or with a warning that nobody reads."""
    of_profile = model.profile.get("openai_unsupported_model_settings", ())
    name = model.model_name
    named = [model.profile.get(f"{maker}_disallows_sampling_settings", False) for maker in ("anthropic", _BEDROCK)]
    fixed = {"temperature", "top_p"} if any(named) or is_fixed(name) or is_reasoning_model(name) else set[str]()
    return (
        frozenset(model.unsupported_settings)
        | fixed
        | frozenset(name for name in (of_profile if isinstance(of_profile, tuple | list | frozenset) else ()))
    )


def forces(model: VendorsModel) -> bool:
    """Whether it can be told which tool it has to call."""
    at_bedrock = model.system != _BEDROCK or model.profile.get("bedrock_supports_tool_choice", False)
    return bool(at_bedrock and model.profile.get("supports_forced_tool_choice", True))


def _as_converse_has_it(wished: dict[str, Any], notes: list[str]) -> None:
    """Bedrock's Converse API takes further fields in one of its own, and no temperature above 1
    (docs.aws.amazon.com, "InferenceConfiguration")."""
    if "extra_body" in wished:
        wished["bedrock_additional_model_requests_fields"] = wished.pop("extra_body")
    if wished.get("temperature", 0) > 1:
        notes.append("Bedrock takes no temperature above 1: it is asked for 1.")
        wished["temperature"] = 1.0


def _wishes(name: str, request: ModelRequest, notes: list[str]) -> dict[str, Any]:
    config, profile = request.config, request.profile
    thinking: bool | str | None = effort_of(name, config.reasoning_effort, notes)
    if thinking == "none":
        thinking = False
    if config.thinking_budget_tokens is not None:
        notes.append("The thinking budget was left out: here an effort says how much a model thinks.")
        thinking = True if thinking is None else thinking
    wished: dict[str, Any] = {"temperature": config.temperature, "thinking": thinking}
    if profile is not None:
        wished |= {
            "top_p": profile.top_p,
            "seed": profile.seed,
            "stop_sequences": list(profile.stop) or None,
            "extra_headers": dict(profile.headers) or None,
            "extra_body": scrub_json(profile.extra_body) or None,
        }
    return {name: value for name, value in wished.items() if value is not None}
