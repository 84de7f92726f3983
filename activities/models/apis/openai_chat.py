"""OpenAI's Chat Completions API and the many servers that speak it (DashScope, vLLM, llama.cpp, …), always streamed.

Compatible servers leave out what OpenAI always sends (usage, call ids, names in time), so every field is optional here.

A request in the shape of Chat Completions. Source: platform.openai.com, "Chat", and DashScope's compatible mode.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from longhaul.activities.models.apis.chat_thoughts import HeardReasoning, reasoning_fields, with_signatures, with_tags
from longhaul.activities.models.apis.sdk_calls import (
    WireItem,
    cache_key_of,
    finish,
    mapped,
    read_all,
    sent,
    signing_in,
    silence_of,
    timeout_of,
    wire_item,
)
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import (
    REFUSAL,
    Delta,
    ModelReply,
    ModelRequest,
    scrub,
    scrub_json,
    tells_nothing,
)
from longhaul.activities.models.profiles import is_told_to_reason, profiled
from longhaul.activities.models.replies import Assembly, dict_of, id_of, list_of, text_of, usage_of_chunk
from longhaul.activities.models.requests.answer_form import forbidden_last, forced_or_in_words
from longhaul.activities.models.requests.model_parameters import (
    NONE,
    arguments_text,
    attachment_of,
    effort_of,
    is_claude,
    is_reasoning_model,
    limit_of_output,
    noted,
    refuses_sampling,
    sound_of,
    state_mark,
    thinks_now,
)
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.activities.models.requests.refused_parameters import without_refused
from longhaul.activities.models.requests.tool_definitions import wire_name, with_plain_parts
from longhaul.activities.models.requests.turns import (
    OutsideWords,
    Part,
    Turn,
    UserTurn,
    answer_schema,
    arrange,
    left_out,
    parts_of,
    turn_as_sent,
    wire_id,
    wire_schema,
    with_names,
)
from longhaul.agent.values.conversation.messages import DataBlock, TextBlock, ToolCallBlock, ToolResultBlock, Usage

_CACHE_MARK = {"cache_control": {"type": "ephemeral"}}
"""For Claude behind a gateway: LiteLLM, OpenRouter, Portkey and others pass it on (docs.litellm.ai and openrouter.ai,
"Prompt caching", 2026-11-24)."""
_MARKED_ENDS = 2
"""As over Anthropic's own API: the end of the request, and that of the one before, which finds what this has cached."""
_LONGEST_ID = 40
"""Chat Completions takes no longer call ids."""


def build_payload(request: ModelRequest, notes: list[str], *, official: bool, dashscope: bool) -> dict[str, Any]:
    """The keyword arguments of `chat.completions.create`. `official`: OpenAI's own server, not a compatible one."""
    config = request.config
    # OpenAI's reasoning models refuse the old name, many compatible servers do not know the new one.
    limit = "max_completion_tokens" if official else "max_tokens"
    payload: dict[str, Any] = {
        "model": request.model,
        "messages": _messages(request, notes),
        limit: limit_of_output(request, thinks=is_reasoning_model(request.model), notes=notes),
        "stream_options": {"include_usage": True},
    }
    _set_tools(payload, request)
    effort = effort_of(request.model, config.reasoning_effort, notes)
    if official and "tools" in payload:
        effort = _effort_with_tools(request.model, effort, notes)
    if effort is not None:
        payload["reasoning_effort"] = effort
    if config.temperature is not None:
        if _refuses_sampling(request.model, effort, official=official):
            notes.append("The temperature was left out: this model takes none with these settings.")
        else:
            payload["temperature"] = config.temperature
    if config.thinking_budget_tokens is not None:
        if dashscope and request.answer is not None:
            notes.append("Thinking is off for this call: the server does not think when the answer's form is forced.")
            payload["extra_body"] = {"enable_thinking": False}
        elif dashscope:
            if request.must_call:
                del payload["tool_choice"]  # which the server does not take with thinking; the context says it in words
            payload["extra_body"] = {"enable_thinking": True, "thinking_budget": config.thinking_budget_tokens}
        else:
            notes.append("The thinking budget was left out: Chat Completions has no field for it.")
    return {name: value if name == "messages" else scrub_json(value) for name, value in payload.items()}


def _refuses_sampling(model: str, effort: str | None, *, official: bool) -> bool:
    """Gateways leave out what OpenAI's models refuse; other makers' models refuse it everywhere."""
    if not official and rules_of(model).maker == "openai":
        return False
    return refuses_sampling(model, thinks=thinks_now(model, effort))


def _effort_with_tools(model: str, effort: str | None, notes: list[str]) -> str | None:
    """The effort with which OpenAI's own Chat Completions takes tools. Raises SetupError where there is none."""
    remedy = f"Over the Responses API it takes both: write openai:{model}."
    match rules_of(model).chat_tools:
        case "without effort" if effort not in (None, NONE):
            notes.append(f"The effort {effort!r} was left out: with tools Chat Completions takes none. {remedy}")
            return None
        case "effort none" if effort != NONE:
            notes.append(f"The model is asked for effort 'none': with tools Chat Completions takes no other. {remedy}")
            return NONE
        case "no":
            raise SetupError(f"{model} takes no tools over Chat Completions. {remedy}")
        case _:
            return effort


def _set_tools(payload: dict[str, Any], request: ModelRequest) -> None:
    if request.tools:
        functions = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": with_plain_parts(wire_schema(tool)),
            }
            for tool in request.tools
        ]
        payload["tools"] = [{"type": "function", "function": function} for function in functions]
        if request.no_calls:
            payload["tool_choice"] = "none"
        elif request.must_call:
            payload["tool_choice"] = {"type": "function", "function": {"name": request.must_call}}
    if request.answer is not None:
        name = wire_name(request.answer.name)
        forced = {
            "name": name,
            "description": request.answer.description,
            "parameters": with_plain_parts(answer_schema(request.answer)),
        }
        payload["tools"] = [*payload.get("tools", ()), {"type": "function", "function": forced}]
        payload["tool_choice"] = {"type": "function", "function": {"name": name}}


def _messages(request: ModelRequest, notes: list[str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in arrange(request.messages):
        messages += turn_as_sent(turn, ("chat", request.model), partial(_of_turn, request.model), notes)
    if not messages or messages[0]["role"] != "user":
        # Gemini refuses a call that nobody has asked for, and templates of vLLM a conversation without a user.
        messages.insert(0, {"role": "user", "content": "(The conversation begins here.)"})
    system = [{"role": "system", "content": scrub(request.system)}] if request.system.strip() else []
    told = [*system, *(_answered(messages) if rules_of(request.model).wants_answer else messages)]
    if not is_claude(request.model) or not request.reads_cache:
        return told
    # Marks stand on the system prompt and on the last message before each of the newest answers.
    asks = [message["role"] in ("user", "tool") for message in told]
    ends = [at for at, asked in enumerate(asks) if asked and not any(asks[at + 1 : at + 2])]
    # Behind a prefix the last end is read by nobody again.
    marked = {*ends[-_MARKED_ENDS : -1 if request.behind_prefix else None]}
    marked |= {0} if told[0]["role"] == "system" else set()
    return [_marked(message) if at in marked else message for at, message in enumerate(told)]


def _marked(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    *before, last = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": [*before, {**last, **_CACHE_MARK}]}


def _of_turn(model: str, turn: Turn, notes: list[str]) -> list[WireItem]:
    if isinstance(turn, UserTurn):
        spoken = groupby(turn.said, key=lambda item: item.speaker)
        messages = [_user(model, speaker, list(said), notes) for speaker, said in spoken]
    else:
        text = "\n\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))
        said = with_tags(turn, text) or None
        message: dict[str, Any] = {"role": "assistant", "content": said, **reasoning_fields(turn, model, notes)}
        calls = turn.calls()
        sent = with_signatures(calls, [_call(call) for call in calls], model)
        assistant = {**message, "tool_calls": sent} if sent else message
        messages = [assistant, *_results(model, turn.answers(), notes)]
    return list(map(wire_item, messages))


def _answered(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """With a word of the assistant wherever a user would speak right after a result."""
    told: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "user" and told and told[-1]["role"] == "tool":
            told.append({"role": "assistant", "content": "(Seen.)"})
        told.append(message)
    return told


def _user(model: str, speaker: str, said: Sequence[OutsideWords], notes: list[str]) -> dict[str, Any]:
    """The API's own `name` takes few characters; another name stands in front of the text instead."""
    if speaker and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", speaker):
        return {"role": "user", "name": speaker, "content": _content(model, [item.part for item in said], notes)}
    return {"role": "user", "content": _content(model, with_names(said), notes)}


def _content(model: str, parts: Sequence[Part], notes: list[str]) -> str | list[dict[str, Any]]:
    """Plain text where it suffices: small servers know no lists."""
    shown = [_part_as_sent(model, part, notes) for part in parts]
    if all(part["type"] == "text" for part in shown):
        return "\n\n".join(part["text"] for part in shown)
    return shown


def _part_as_sent(model: str, part: Part, notes: list[str]) -> dict[str, Any]:
    if isinstance(part, TextBlock):
        return {"type": "text", "text": part.text}
    if (sound := sound_of(part, model)) is not None:
        return sound
    attachment = attachment_of(part)
    if attachment is None or attachment.kind == "file by address":
        return {"type": "text", "text": left_out(part, notes)}
    if attachment.kind == "image":
        return {"type": "image_url", "image_url": {"url": attachment.url}}
    return {"type": "file", "file": {"filename": attachment.name, "file_data": attachment.url}}


def _call(call: ToolCallBlock) -> dict[str, Any]:
    function = {"name": wire_name(call.name), "arguments": arguments_text(call)}
    return {"id": wire_id(call.id, _LONGEST_ID), "type": "function", "function": function}


def _results(model: str, results: Sequence[ToolResultBlock], notes: list[str]) -> list[dict[str, Any]]:
    """All results of the turn, then one user message with their attachments, which a result can't hold here."""
    messages: list[dict[str, Any]] = []
    attachments: list[Part] = []
    for result in results:
        texts = [part.text for part in parts_of(result.output) if isinstance(part, TextBlock)]
        shown = [part for part in parts_of(result.output) if isinstance(part, DataBlock)]
        if shown:
            notes.append("Attachments of a tool result were sent as a user message after it.")
            texts.append(f"({len(shown)} attachment(s) of this result follow in a user message.)")
            attachments += [TextBlock(text=f"(Attachments of the result of {result.name!r}:)"), *shown]
        content = state_mark(result) + ("\n".join(texts) or "(no output)")
        messages.append({"role": "tool", "tool_call_id": wire_id(result.id, _LONGEST_ID), "content": content})
    if attachments:
        messages.append({"role": "user", "content": _content(model, attachments, notes)})
    return messages


_OF_A_CALL = ("index", "id", "type", "function")


class OpenAIChatModel:
    """Raises the SDK's errors and `activities.models.failures.status_table`; nothing is retried here, Temporal does
    that."""

    def __init__(self, client: openai.AsyncOpenAI, *, dashscope: bool = False, rewrites: bool = False) -> None:
        """`rewrites`: the client makes another address of the model's name in what it is given."""
        self._client = client
        self._sent = mapped if rewrites else sent
        self._dashscope = dashscope
        self._host = self._client.base_url.host
        self._official = self._host == "api.openai.com"

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        if is_claude(request.model):
            return await forbidden_last(request, self._asked, on_delta)
        return await self._asked(request, on_delta)

    async def _asked(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        official = self._official or is_told_to_reason(request)
        payload = build_payload(request, notes, official=official, dashscope=self._dashscope)
        payload |= cache_key_of(request, self._host)
        refused = (
            {"top_p"} if _refuses_sampling(request.model, payload.get("reasoning_effort"), official=official) else set()
        )
        if official and is_reasoning_model(request.model):
            refused.add("stop")
        without = noted(request.profile, refused, notes)
        payload = without_refused(profiled(payload, request, without=without), request.refused)
        reply = ChatReply(on_delta, request, notes)
        with signing_in():
            stream = await self._client.post(
                "/chat/completions",
                cast_to=ChatCompletion,
                stream=True,
                stream_cls=openai.AsyncStream[ChatCompletionChunk],
                **self._sent(payload, "messages", timeout_of(request.config)),
            )
        thinks = is_reasoning_model(request.model)
        await read_all(stream, reply, silence_of(request.config, self._host, thinks_unseen=thinks))
        return reply.finish(request)

    async def close(self) -> None:
        await self._client.close()


class ChatReply:
    """Puts an answer together from its events, which are plain JSON: nothing in it is certain with a compatible
    server."""

    def __init__(self, on_delta: Callable[[Delta], None], request: ModelRequest, notes: list[str]) -> None:
        self.assembly = Assembly(on_delta, request)
        self.usage = Usage()
        self._reasoning = HeardReasoning(self.assembly)
        self._notes = notes
        self._model = ""
        self._stop_reason = ""
        self._has_stopped = False
        """Nothing of the answer has come since it said so."""
        self._refused = False
        """The API says "stop" of such an answer, and tells it by the field of its text alone."""
        self.is_over = False

    @property
    def is_whole(self) -> bool:
        return self.is_over or self._has_stopped

    def end(self) -> None:
        self.is_over = True

    @staticmethod
    def events_of(body: dict[str, Any]) -> list[dict[str, Any]]:
        told = [dict_of(choice) for choice in list_of(body.get("choices"))]
        is_answer = any(isinstance(choice.get("message"), dict) for choice in told)
        return [body] if is_answer else []

    def take(self, event: dict[str, Any]) -> None:
        self._model = text_of(event.get("model")) or self._model
        self.usage = usage_of_chunk(event) or self.usage
        for choice in map(dict_of, list_of(event.get("choices"))):
            if _index(choice.get("index")):
                continue  # of several answers
            stop_reason = text_of(choice.get("finish_reason"))
            # A server that does not stream sends a message.
            said = dict_of(choice.get("delta")) or dict_of(choice.get("message"))
            if said.get("content") or said.get("tool_calls"):
                self._has_stopped = False
            self._add(said, is_whole="message" in choice)
            self._stop_reason = stop_reason or self._stop_reason
            self._has_stopped = self._has_stopped or not tells_nothing(stop_reason)

    def _add(self, said: dict[str, Any], *, is_whole: bool) -> None:
        self._reasoning.take(said)
        self._say(said.get("content"))
        self._say(said.get("refusal"))
        self._refused = self._refused or bool(said.get("refusal"))
        for place, piece in enumerate(map(dict_of, list_of(said.get("tool_calls")))):
            function = dict_of(piece.get("function"))
            index = _index(piece.get("index"))
            draft = self.assembly.call_delta(
                ("place", place) if is_whole and index is None else index,
                id_of(piece.get("id")),
                text_of(function.get("name")),
                function.get("arguments"),
            )
            if draft is not None:
                draft.beside |= {name: value for name, value in piece.items() if name not in _OF_A_CALL}
                self._reasoning.take_call(draft, piece)

    def _say(self, content: object) -> None:
        text, thought = said_in_content(content)
        if thought:
            self._reasoning.think(thought)
        if text:
            self._reasoning.say(text)

    def finish(self, request: ModelRequest, assembly: Assembly | None = None) -> ModelReply:
        """`assembly`: with the same calls, where the other blocks were read by somebody else."""
        self._reasoning.end()
        for each in (self.assembly, *([assembly] if assembly else [])):
            each.close_all()
        return finish(
            assembly or self.assembly,
            request,
            model=self._model,
            usage=self.usage,
            stop_reason=REFUSAL if self._refused and self.is_whole else self._stop_reason if self.is_whole else "",
            notes=self._notes,
            is_whole=self.is_whole,
        )


def _index(value: object) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def said_in_content(content: object) -> tuple[str, str]:
    """Words and thoughts: text, or a list of parts as Mistral's models that think have it."""
    words, thoughts = list[str](), list[str]()
    for part in content if isinstance(content, list) else [content]:
        told = dict_of(part)
        words.append(text_of(part) or text_of(told.get("text")) or text_of(told.get("refusal")))
        inner = told.get("thinking")
        for each in inner if isinstance(inner, list) else [inner]:
            thoughts.append(text_of(each) or text_of(dict_of(each).get("text")))
    return "".join(words), "".join(thoughts)
