# ruff: noqa: E501  one row each
"""What providers publish that their Chat Completions refuse: OpenAI's own, and those of servers that speak alike."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.activities.models.published.published import (
    CHAT,
    DEEPSEEK,
    GEMINI,
    KIMI,
    NAME,
    OF_CHAT,
    OPEN,
    STARTS_WITH_A_LETTER,
    Body,
    Rule,
    Sent,
    effort_in,
    efforts_of,
    forces,
    functions,
    is_no_object,
    lacks_items,
    long_descriptions,
    names_no_tool,
    reasons,
    samples,
    schemas,
    too_many_tools,
    within,
)

API = "developers.openai.com/api/reference/resources/chat/subresources/completions/methods/create"
FUNCTIONS = "developers.openai.com/api/docs/guides/function-calling"
REASONING = "developers.openai.com/api/docs/guides/reasoning"
OF_DEEPSEEK = "api-docs.deepseek.com/guides/thinking_mode"
SIGNATURES = "ai.google.dev/gemini-api/docs/thought-signatures"

BODY: Body = {
    "model": "gpt-5.1",
    "max_completion_tokens": 4096,
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
        }
    ],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How is it?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": "{}"},
                    "extra_content": {"google": {"thought_signature": "signed-1"}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Rain."},
        {"role": "assistant", "content": "Rain."},
        {"role": "user", "content": "And now?"},
    ],
}
MODELS = {CHAT: "gpt-5.1", DEEPSEEK: "deepseek-v4-pro", KIMI: "kimi-k2.6", GEMINI: "gemini-3-pro", OPEN: "qwen3"}


def base_of(server: str) -> Body:
    """What all of this server's rules allow."""
    body: Body = json.loads(json.dumps({**BODY, "model": MODELS[server]}))
    call = body["messages"][2]
    if server != GEMINI:
        del call["tool_calls"][0]["extra_content"]
    if server in (DEEPSEEK, KIMI):
        call["reasoning_content"] = "signed-2"
    return body


def _spoken(sent: Sent, role: str) -> list[dict[str, Any]]:
    return [message for message in sent.body["messages"] if message["role"] == role]


def _calls(sent: Sent) -> list[dict[str, Any]]:
    return [call for message in _spoken(sent, "assistant") for call in message.get("tool_calls", ())]


def _parts(sent: Sent, kind: str) -> Iterator[Any]:
    for message in sent.body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == kind:
                yield part


def _is_out_of_turn(sent: Sent) -> bool:
    """A call without its result right after it, or a result without its call."""
    awaited: list[str] = []
    for message in sent.body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in awaited:
                return True
            awaited.remove(message["tool_call_id"])
        elif awaited:
            return True
        else:
            awaited = [call["id"] for call in message.get("tool_calls", ())]
    return bool(awaited)


def _calls_out_of_turn(sent: Sent) -> bool:
    roles = [message["role"] for message in sent.body["messages"] if message["role"] != "system"]
    called = ["tool_calls" in message for message in sent.body["messages"] if message["role"] != "system"]
    return any(
        calls and before not in ("user", "tool") for calls, before in zip(called, ["", *roles[:-1]], strict=True)
    )


def _lacks_a_signature(sent: Sent) -> bool:
    firsts = [message["tool_calls"][0] for message in _spoken(sent, "assistant") if message.get("tool_calls")]
    return any(not call.get("extra_content", {}).get("google", {}).get("thought_signature") for call in firsts)


def _is_no_json_object(sent: Sent) -> bool:
    for call in _calls(sent):
        try:
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return True
        except ValueError:
            return True
    return False


def _has_type_beside_choices(sent: Sent) -> bool:
    return any(
        isinstance(part.get("anyOf"), list) and "type" in part
        for schema in schemas(sent.body)
        for part in within(schema)
    )


def _refers_elsewhere(sent: Sent) -> bool:
    found = [part.get("$ref") for schema in schemas(sent.body) for part in within(schema)]
    return any(isinstance(to, str) and not to.startswith("#/$defs/") for to in found)


def _is_no_picture(part: dict[str, Any]) -> bool:
    return not re.match(r"https?://|data:image/(png|jpeg|gif|webp);base64,", part["image_url"]["url"])


def _set(**fields: Any) -> Any:
    return lambda body: body.update(fields)


def _message(at: int, **fields: Any) -> Any:
    return lambda body: body["messages"][at].update(fields)


def _function(**fields: Any) -> Any:
    return lambda body: body["tools"][0]["function"].update(fields)


def _both(first: Any, second: Any) -> Any:
    return lambda body: (first(body), second(body))


def _rule(name: str, servers: Sequence[str], source: str, words: str, breaks: Any, broken: Any, **more: Any) -> Rule:
    return Rule(name, servers, source, words, breaks, broken, **more)


def _learned(name: str, server: str, source: str, words: str, breaks: Any, broken: Any, **more: Any) -> Rule:
    """One that we read from a refusal."""
    return Rule(name, (server,), source, words, breaks, broken, asked_again=True, **more)


def _called(**fields: Any) -> Any:
    return lambda body: body["messages"][2]["tool_calls"][0]["function"].update(fields)


_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AAAA"}}
_FORCED = {"type": "function", "function": {"name": "weather"}}
_NAMED = "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'."

_THINKS = {"reasoning_effort": "low"}

RULES = (
    _rule("each call has its result right after it", OF_CHAT, API,
          "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
          _is_out_of_turn, lambda body: body["messages"].pop(3)),
    _rule("content, or calls", OF_CHAT, "github.com/MoonshotAI/kimi-code/issues/1985",
          "Invalid request: the message at position 4 with role 'assistant' must not be empty",
          lambda sent: any(not message.get("content") and not message.get("tool_calls") for message in sent.body["messages"]),
          _message(4, content=None)),
    _rule("call ids of 40 characters at most", (CHAT,), "github.com/microsoft/autogen/issues/6377",
          "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
          lambda sent: any(len(call["id"]) > 40 for call in _calls(sent)),
          lambda body: (body["messages"][2]["tool_calls"][0].update(id="c" * 41), body["messages"][3].update(tool_call_id="c" * 41))),
    _rule("tool names of 64 letters, digits, `_` and `-`", OF_CHAT, FUNCTIONS, _NAMED,
          lambda sent: any(not NAME.fullmatch(about["name"]) for about in (
              *functions(sent.body), *(call["function"] for call in _calls(sent)))),
          _function(name="files.read")),
    _rule("tool names begin with an operation", (KIMI,), "github.com/MoonshotAI/kimi-cli/issues/1773",
          "function name is invalid, must start with an operation and can contain operations, numbers, underscores, and dashes",
          lambda sent: any(not about["name"][:1].isalpha() for about in functions(sent.body)), _function(name="_own")),
    _rule("tool names begin with an operation or `_`", (GEMINI,), "github.com/kaitranntt/ccs/issues/25",
          "Invalid function name. Must start with an operation or an underscore.",
          lambda sent: any(not STARTS_WITH_A_LETTER.fullmatch(about["name"]) for about in functions(sent.body)),
          _function(name="7zip")),
    _rule("a schema is an object, without a choice at the top", OF_CHAT, FUNCTIONS,
          "Invalid schema for function 'weather': schema must have type 'object' and not have 'anyOf' at the top level.",
          lambda sent: is_no_object(sent.body), _function(parameters={"anyOf": [{"type": "object"}]})),
    _rule("an array says what is in it", (CHAT, GEMINI, OPEN), "github.com/NousResearch/hermes-agent/issues/77617",
          "GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[x].items: missing field.",
          lambda sent: lacks_items(sent.body),
          _function(parameters={"type": "object", "properties": {"x": {"type": "array"}}})),
    _rule("a type stands in the choices, not beside them", (KIMI,), "github.com/MoonshotAI/kimi-cli/issues/2531",
          "when using anyOf, type should be defined in anyOf items instead of the parent schema", _has_type_beside_choices,
          _function(parameters={"type": "object", "properties": {"x": {"type": "string", "anyOf": [{"minLength": 1}]}}})),
    _rule("references into `$defs`", (KIMI,), "github.com/CommandCodeAI/command-code/issues/594",
          "references must start with #/$defs/", _refers_elsewhere,
          _function(parameters={"type": "object", "properties": {"x": {"$ref": "#/definitions/X"}}})),
    _rule("the tool that is forced is offered", OF_CHAT, API, "'tool_choice' is only allowed when 'tools' are specified.",
          lambda sent: names_no_tool(sent.body), lambda body: (body.pop("tools"), body.update(tool_choice="none"))),
    _rule("no empty list of tools", OF_CHAT, API, "[] is too short - 'tools'", lambda sent: sent.body.get("tools") == [], _set(tools=[])),
    _rule("`max_completion_tokens` where the model reasons", (CHAT,), API,
          "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
          lambda sent: "max_tokens" in sent.body and reasons(sent.model), _set(max_tokens=4096)),
    _rule("no temperature where the model reasons", (CHAT,), REASONING,
          "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
          lambda sent: "temperature" in sent.body and not samples(sent.body), _set(temperature=0.5, **_THINKS)),
    _rule("no top_p where the model reasons", (CHAT,), "github.com/brainlid/langchain/pull/428",
          "Unsupported parameter: 'top_p' is not supported with this model.",
          lambda sent: "top_p" in sent.body and not samples(sent.body), _set(top_p=0.5, **_THINKS)),
    _rule("no stop words where the model reasons", (CHAT,), "github.com/huggingface/smolagents/issues/1671",
          "Unsupported parameter: 'stop' is not supported with this model.",
          lambda sent: "stop" in sent.body and not samples(sent.body), _set(stop=["END"], **_THINKS)),
    _rule("128 tools at most", (CHAT, DEEPSEEK), API, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.",
          lambda sent: too_many_tools(sent.body), lambda body: body.update(tools=body["tools"] * 129), date="2026-11-24"),
    _rule("512 tools at most", (GEMINI,), "github.com/google-gemini/gemini-cli/issues/19083", "At most 512 function declarations can be specified.",
          lambda sent: too_many_tools(sent.body, 512), lambda body: body.update(tools=body["tools"] * 513), date="2026-11-24"),
    _learned("descriptions of tools of 1,024 characters at most", CHAT, "github.com/modelcontextprotocol/servers/issues/799",
             "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 2780 instead.",
             lambda sent: long_descriptions(sent.body), lambda body: body["tools"][0]["function"].update(description="x" * 1025), date="2026-11-24"),
    _rule("cache keys of 64 characters at most", (CHAT,), "github.com/theopenco/llmgateway/pull/3110",
          "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
          lambda sent: len(sent.body.get("prompt_cache_key", "")) > 64, _set(prompt_cache_key="k" * 65), date="2026-11-30"),
    _rule("tool names are unique", (DEEPSEEK,), "github.com/liliMozi/openhanako/issues/789", "Tool names must be unique.",
          lambda sent: len(names := [about["name"] for about in functions(sent.body)]) > len(set(names)),
          lambda body: body.update(tools=body["tools"] * 2), date="2026-11-30"),
    _rule("four stop words at most", OF_CHAT, API, "Invalid 'stop': array too long.",
          lambda sent: len(sent.body.get("stop") or ()) > 4, _both(_set(model="gpt-4.1"), _set(stop=["a"] * 5))),
    _rule("an effort that the model has", (CHAT,), REASONING, "Unsupported value: 'reasoning_effort' does not support 'max' with this model.",
          lambda sent: reasons(sent.model) and effort_in(sent.body) not in (None, *efforts_of(sent.model)), _set(reasoning_effort="max")),
    _rule("tools without an effort (GPT-5.2 to 5.5)", (CHAT,), "github.com/openai/openai-openapi/issues/541",
          "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.",
          lambda sent: bool(sent.body.get("tools")) and re.match(r"gpt-5\.[2-5]", sent.model) is not None
          and effort_in(sent.body) not in (None, "none"), _set(model="gpt-5.4", reasoning_effort="low"), date="2026-11-29"),
    _rule("tools with effort `none` alone (from GPT-5.6 on)", (CHAT,), "github.com/BerriAI/litellm/pull/34569",
          "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use "
          "/v1/responses or set reasoning_effort to 'none'.",
          lambda sent: bool(sent.body.get("tools")) and re.match(r"gpt-(5\.6|[6-9])", sent.model) is not None
          and effort_in(sent.body) != "none", _set(model="gpt-5.6-terra"), date="2026-11-29"),
    _rule("an effort of `low`, `high` or `max` (Kimi K3)", (KIMI,), "platform.kimi.ai/docs/guide/use-thinking-effort",
          "invalid reasoning_effort", lambda sent: re.match(r"kimi-k[3-9]", sent.model) is not None
          and effort_in(sent.body) not in (None, "low", "high", "max"),
          _set(model="kimi-k3", reasoning_effort="medium"), date="2026-11-29"),
    _rule("no effort `none` (Kimi)", (KIMI,), "platform.kimi.ai/docs/guide/use-thinking-effort",
          "invalid reasoning_effort: none", lambda sent: effort_in(sent.body) == "none", _set(reasoning_effort="none"), date="2026-11-29"),
    _rule("an effort that Gemini's model has", (GEMINI,), "ai.google.dev/gemini-api/docs/thinking",
          "Thinking level is not supported for this model.", lambda sent: effort_in(sent.body) not in (None, "low", "high", "medium", "none", "minimal")
          or ("3-pro" in sent.model and effort_in(sent.body) not in (None, "low", "high")),
          _set(model="gemini-3-pro", reasoning_effort="minimal"), date="2026-11-29"),
    _rule("an effort of `none`, or from `minimal` to `high`", (GEMINI,), "ai.google.dev/gemini-api/docs/openai",
          "Invalid reasoning_effort: max", lambda sent: sent.body.get("reasoning_effort", "low") not in (
              "none", "minimal", "low", "medium", "high"), _set(reasoning_effort="max")),
    _rule("names of speakers without blanks", (CHAT,), API, "Invalid 'messages[1].name': string does not match pattern.",
          lambda sent: any(not re.fullmatch(r"[^\s<|\\/>]{1,64}", message.get("name", "x")) for message in sent.body["messages"]),
          _message(1, name="Ada L.")),
    _rule("results are text", OF_CHAT, API, "Invalid 'messages[3].content': only text is supported in tool messages.",
          lambda sent: any(not isinstance(message["content"], str) for message in _spoken(sent, "tool")),
          _message(3, content=[_PICTURE])),
    _rule("pictures of known types", (CHAT, KIMI, GEMINI, OPEN), "developers.openai.com/api/docs/guides/images-vision",
          "Invalid MIME type. Only image types are supported.",
          lambda sent: any(_is_no_picture(part) for part in _parts(sent, "image_url")), _message(5, content=[_PICTURE])),
    _rule("no pictures", (DEEPSEEK,), "api-docs.deepseek.com/api/create-chat-completion", "unknown variant `image_url`, expected `text`",
          lambda sent: any(_parts(sent, "image_url")), _message(5, content=[_PICTURE])),
    _rule("thoughts of calls come back", (DEEPSEEK,), OF_DEEPSEEK,
          "The `reasoning_content` in the thinking mode must be passed back to the API.",
          lambda sent: any(message.get("tool_calls") and not message.get("reasoning_content") for message in _spoken(sent, "assistant")),
          lambda body: body["messages"][2].pop("reasoning_content")),
    _rule("thoughts of calls come back (Kimi)", (KIMI,), "github.com/continuedev/continue/issues/11600",
          "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
          lambda sent: any(message.get("tool_calls") and not message.get("reasoning_content") for message in _spoken(sent, "assistant")),
          lambda body: body["messages"][2].pop("reasoning_content")),
    _learned("no forced call (DeepSeek)", DEEPSEEK, "github.com/deepseek-ai/DeepSeek-V3/issues/1376",
          "Thinking mode does not support this tool_choice", lambda sent: forces(sent.body), _set(tool_choice=_FORCED)),
    _learned("no forced call (Kimi)", KIMI, "github.com/can1357/oh-my-pi/issues/1077",
          "tool_choice specified is incompatible with thinking enabled", lambda sent: forces(sent.body), _set(tool_choice=_FORCED)),
    _rule("no temperature but 1", (KIMI,), "github.com/BerriAI/litellm/pull/29687",
          "invalid temperature: only 1 is allowed for this model",
          lambda sent: sent.body.get("temperature", 1) != 1, _set(temperature=0.5)),
    _rule("no top_p but 0.95", (KIMI,), "java.agentscope.io/v2/en/integration/model/kimi",
          "invalid top_p: only 0.95 is allowed for this model", lambda sent: sent.body.get("top_p", 0.95) != 0.95, _set(top_p=0.5)),
    _rule("the first call of a message is signed", (GEMINI,), SIGNATURES,
          "Function call is missing a thought_signature in functionCall parts.", _lacks_a_signature,
          lambda body: body["messages"][2]["tool_calls"][0].pop("extra_content")),
    _rule("signatures are its own", (GEMINI,), "docs.apiyi.com/en/faq/gemini-thought-signature-missing", "Corrupted thought signature.",
          lambda sent: any(call["extra_content"]["google"]["thought_signature"] not in (
              *sent.signed, "skip_thought_signature_validator") for call in _calls(sent) if "extra_content" in call),
          lambda body: body["messages"][2]["tool_calls"][0].update(extra_content={"google": {"thought_signature": "x"}})),
    _rule("calls come after a user or a result", (GEMINI,), "github.com/google-gemini/gemini-cli/issues/26486",
          "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
          _calls_out_of_turn, lambda body: body["messages"].pop(1)),
    _rule("a user speaks", (OPEN,), "github.com/vllm-project/vllm/issues/36432", "No user query found in messages.",
          lambda sent: not _spoken(sent, "user"), lambda body: (body["messages"].pop(5), body["messages"].pop(1))),
    _rule("the system prompt comes first", (OPEN,), "github.com/vllm-project/vllm/issues/41114", "System message must be at the beginning.",
          lambda sent: any(message["role"] == "system" for message in sent.body["messages"][1:]),
          lambda body: body["messages"].append({"role": "system", "content": "Be brief."})),
    _rule("arguments are a JSON object", (OPEN,), "github.com/vllm-project/vllm/pull/48922",
          "Expecting value: line 1 column 10 (char 9)", _is_no_json_object, _called(arguments='{"city": ')),
)  # fmt: skip
