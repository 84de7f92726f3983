"""Claude through Anthropic's Messages API and SDK, always streamed; it is asked to think in one way for a whole turn.

Sources: platform.claude.com, "Messages", "Extended thinking", "Thinking in tool and multi-turn workflows",
"Effort".
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

import anthropic
from anthropic._constants import ANTHROPIC_API_VERSION
from anthropic.types import Message, RawMessageStreamEvent

from longhaul.activities.models.apis.sdk_calls import (
    WireItem,
    finish,
    mapped,
    read_all,
    sent,
    signing_in,
    silence_of,
    timeout_of,
    wire_item,
)
from longhaul.activities.models.failures.status_table import ProviderError
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest, scrub, scrub_json
from longhaul.activities.models.profiles import BETA, profiled, with_betas
from longhaul.activities.models.replies import (
    Assembly,
    Draft,
    anthropic_counts,
    anthropic_usage,
    dict_of,
    id_of,
    text_of,
)
from longhaul.activities.models.requests.answer_form import forbidden_last, forced_or_in_words
from longhaul.activities.models.requests.model_parameters import (
    NONE,
    effort_of,
    limit_of_output,
    noted,
    refused_by_claude,
    refuses_sampling,
)
from longhaul.activities.models.requests.model_rules import api_rules, rules_of
from longhaul.activities.models.requests.refused_parameters import without_refused
from longhaul.activities.models.requests.tool_definitions import wire_name
from longhaul.activities.models.requests.turns import (
    AssistantTurn,
    Part,
    Turn,
    UserTurn,
    answer_schema,
    arguments_of,
    arrange,
    failed,
    left_out,
    parts_of,
    tools_brought,
    turn_as_sent,
    wire_id,
    wire_schema,
    with_names,
)
from longhaul.agent.values.conversation.messages import (
    IMAGES,
    Base64Source,
    DataBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta by which a Claude that is given a budget thinks between its calls too, and not at the first one alone."""
BINDING_CONTROLS = "thinking-binding-controls-2026-08-01"
"""The beta that a request names which says what becomes of thoughts behind a changed beginning."""

INLINE_TOOLS = "inline-tools-2026-09-15"
"""The beta by which a message brings tools."""

VERSION, BEDROCK_VERSION = "anthropic-version", "bedrock-2023-05-31"


def thinking_fields(request: ModelRequest, turns: Sequence[Turn], notes: list[str]) -> dict[str, Any]:
    """`thinking` and `output_config`, where they are to be set, and `max_tokens`."""
    rules, wanted = rules_of(request.model), request.config.reasoning_effort
    off = (rules.off or ("" if rules.is_known else "disabled")) if wanted == NONE else ""
    effort = None if off else effort_of(request.model, wanted, notes)
    thinking: dict[str, Any] = {"type": off} if off else _thinking(request, turns, notes)
    thinks = (rules.thinks_unasked and not off) or thinking.get("type") in ("adaptive", "enabled")
    budget = thinking.get("budget_tokens", 0)
    fields: dict[str, Any] = {"max_tokens": limit_of_output(request, thinks=thinks, notes=notes, beside=budget)}
    if thinking:
        fields["thinking"] = thinking
    if effort is not None:
        fields["output_config"] = {"effort": effort}
    return fields


def _thinking(request: ModelRequest, turns: Sequence[Turn], notes: list[str]) -> dict[str, Any]:
    config, kind = request.config, rules_of(request.model).thinking
    budget, adaptive = config.thinking_budget_tokens, kind == "adaptive"
    wanted = budget is not None or (adaptive and config.reasoning_effort is not None)
    if wanted and kind == "none":
        notes.append("The thinking budget was left out: this model does not think.")
    if not wanted or kind == "none":
        return {}
    if request.answer is not None:
        notes.append("Thinking is off for this call: Anthropic does not think when the answer's form is forced.")
        return {}
    if adaptive:
        if budget is not None:
            notes.append("The thinking budget was left out: this model sets its own.")
        return {"type": "adaptive", "display": "summarized"}
    if not _started_with_thinking(turns):
        notes.append("Thinking is off for the rest of this turn: its first calls were made without it.")
        return {}
    return {"type": "enabled", "budget_tokens": budget}


def _started_with_thinking(turns: Sequence[Turn]) -> bool:
    """Whether the calls that the request continues, if any, began with a thought that Anthropic has signed.

    A loop of calls is one turn to Anthropic. With a budget the model thinks at its first call, and need not at the
    others; one that was started without, as by a fallback of another provider, is refused with it. So the first call
    decides, however the turn goes on: a configuration that changes within a turn loses all that is cached of messages,
    each time.
    """
    first: AssistantTurn | None = None
    for turn in reversed(turns):
        if isinstance(turn, UserTurn):
            continue  # a hint, or what was said meanwhile
        if not turn.calls():
            break
        first = turn
    return first is None or is_signed(first.blocks[0])


def is_signed(block: TextBlock | ThinkingBlock | ToolCallBlock) -> bool:
    """Whether it is a thought that Anthropic takes back."""
    extras = (block.model_extra or {}) if isinstance(block, ThinkingBlock) else {}
    return bool(extras.get("signature") or extras.get("redacted_thinking_data"))


def let_thoughts_be_dropped(payload: dict[str, Any]) -> None:
    """Where a beginning has changed that nobody here knows of: the request would be refused. Models that bind thoughts
    to it think whether they are told so or not."""
    thinking = payload.get("thinking", {"type": "adaptive"})
    payload["thinking"] = {**thinking, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def betas_of(payload: dict[str, Any], model: str) -> list[str]:
    """Those that Anthropic's own server has to be named for this request."""
    thinking = payload.get("thinking", {})
    late = [INLINE_TOOLS] if any(message["role"] == "system" for message in payload["messages"]) else []
    betas = [INTERLEAVED] if thinking.get("type") == "enabled" and rules_of(model).thinking == "interleaved" else []
    return [*betas, *([BINDING_CONTROLS] if "block_binding" in thinking else []), *late]


ANSWERS_KEPT = 1_000
_CACHE_MARK = {"type": "ephemeral"}
_MOST_TEMPERATURE = 1
_MARKED_MESSAGES = 2
"""Anthropic allows four marks; system and tools take one each. The one before the last finds the previous call's
prefix even when a turn added more blocks than the 20 that a lookup goes back."""


def build_payload(
    request: ModelRequest, notes: list[str], *, official: bool = False, sampling: bool = True, previous: str = ""
) -> dict[str, Any]:
    """The keyword arguments of `messages.create`; what had to be left out or changed goes into `notes`.
    `official`: Anthropic's own server, not a compatible one. `sampling`: its API's version takes a temperature.
    `previous`: the id of the session's answer before, so that the server says what kept its cache from serving that
    request ("Cache diagnostics", platform.claude.com)."""
    rules, turns = rules_of(request.model), arrange(request.messages)
    messages = _messages(turns, notes, tools_brought(turns, request.late_tools))
    mark = {"cache_control": _CACHE_MARK} if request.reads_cache else {}
    users = [place for place, message in enumerate(messages) if message["role"] == "user"]
    # Behind a prefix nobody reads the last turn again; the one before ends what the conversation's call has cached.
    marked = users[-_MARKED_MESSAGES : -1 if request.behind_prefix else None]
    for place in marked if mark else ():
        *before, last = messages[place]["content"]
        messages[place] = {"role": "user", "content": [*before, {**last, **mark}]}
    payload: dict[str, Any] = {
        "model": request.model,
        "messages": messages,
        **thinking_fields(request, turns, notes),
    }
    if request.system.strip():
        payload["system"] = [{"type": "text", "text": request.system, **mark}]
    if request.tools:
        tools = [_tool(tool) for tool in request.tools]
        tools[-1] |= mark
        payload["tools"] = tools
        if request.no_calls:
            payload["tool_choice"] = {"type": "none"}
        elif request.must_call and "thinking" not in payload and rules.forced:
            # With thinking the API takes no such choice; the context says it in words.
            payload["tool_choice"] = {"type": "tool", "name": request.must_call}
    if request.answer is not None:
        forced = {
            "name": wire_name(request.answer.name),
            "description": request.answer.description,
            "input_schema": answer_schema(request.answer),
        }
        payload["tools"] = [*payload.get("tools", ()), forced]
        payload["tool_choice"] = {"type": "tool", "name": forced["name"], "disable_parallel_tool_use": True}
    if official and request.answer is None and rules.binds:
        let_thoughts_be_dropped(payload)
    if official and previous and request.is_of_conversation:
        payload["diagnostics"] = {"previous_message_id": previous}
    _set_temperature(payload, request, notes, sampling=sampling)
    return {name: value if name == "messages" else scrub_json(value) for name, value in payload.items()}


def _tool(tool: ToolDescriptor) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": wire_schema(tool)}


def _messages(
    turns: Sequence[Turn], notes: list[str], brought: Mapping[int, Sequence[ToolDescriptor]]
) -> list[dict[str, Any]]:
    """`brought`: by the place of a turn the tools that it brings. They come behind all that the user says there, since
    a `system` message stands between a user and the assistant, or last."""
    messages: list[dict[str, Any]] = []
    added: list[dict[str, Any]] = []
    for place, turn in enumerate(turns):
        for message in turn_as_sent(turn, ("messages",), _of_turn, notes):
            if message["role"] == "assistant" and added and messages:
                messages.append({"role": "system", "content": added})
                added = []
            _append(messages, message)
        added += [_addition(tool) for tool in brought.get(place, ())]
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": "(The conversation begins here.)"}]})
    if messages[-1]["role"] != "user":
        # A request that ends with the assistant asks it to continue its own words, which newer models refuse.
        _append(messages, {"role": "user", "content": [{"type": "text", "text": "(Continue.)"}]})
    return [*messages, {"role": "system", "content": added}] if added else messages


def _addition(tool: ToolDescriptor) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": _tool(tool)}}


def _of_turn(turn: Turn, notes: list[str]) -> list[WireItem]:
    if isinstance(turn, UserTurn):
        sides = {"user": [_part(part, notes) for part in with_names(turn.said)]}
    else:
        # First in the user turn, or Anthropic refuses the request; what was said meanwhile comes after.
        sides = {"assistant": _blocks(turn, notes), "user": [_result(result, notes) for result in turn.answers()]}
    return [wire_item({"role": role, "content": content}) for role, content in sides.items() if content]


def _append(messages: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Joined with one of the same side before it, which is another request's too and stays as it is."""
    if messages and messages[-1]["role"] == message["role"]:
        messages[-1] = {**message, "content": [*messages[-1]["content"], *message["content"]]}
    else:
        messages.append(message)


def _blocks(turn: AssistantTurn, notes: list[str]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for block in turn.blocks:
        match block:
            case TextBlock():
                content.append({"type": "text", "text": block.text})
            case ToolCallBlock():
                called = {"id": wire_id(block.id), "name": wire_name(block.name), "input": arguments_of(block)}
                content.append({"type": "tool_use", **called})
            case ThinkingBlock():
                content += _thought(block, notes)
            case _ as never:
                assert_never(never)
    return content


def _thought(block: ThinkingBlock, notes: list[str]) -> list[dict[str, Any]]:
    extras = block.model_extra or {}
    if data := extras.get("redacted_thinking_data"):
        return [{"type": "redacted_thinking", "data": data}]
    if signature := extras.get("signature"):
        return [{"type": "thinking", "thinking": block.thinking, "signature": signature}]
    notes.append("Thinking of another provider was left out: Anthropic takes back only what it has signed.")
    return []


def _result(result: ToolResultBlock, notes: list[str]) -> dict[str, Any]:
    content = [_part(part, notes) for part in parts_of(result.output) or [TextBlock(text="(no output)")]]
    sent = {"type": "tool_result", "tool_use_id": wire_id(result.id), "content": content}
    if not failed(result):
        return sent
    if all(part["type"] == "text" for part in content):
        return {**sent, "is_error": True}
    # "all content must be type text if is_error": a picture of what failed says more than the field.
    return {**sent, "content": [{"type": "text", "text": f"[{result.state.value}]"}, *content]}


def _part(part: Part, notes: list[str]) -> dict[str, Any]:
    if isinstance(part, TextBlock):
        return {"type": "text", "text": part.text}
    kind = _kind_of(part)
    if kind is None:
        return {"type": "text", "text": left_out(part, notes)}
    source = part.source
    if isinstance(source, Base64Source):
        return {"type": kind, "source": {"type": "base64", "media_type": source.media_type, "data": source.data}}
    return {"type": kind, "source": {"type": "url", "url": source.url}}


def _kind_of(part: DataBlock) -> str | None:
    source = part.source
    if not isinstance(source, Base64Source) and not source.url.startswith(("https://", "http://")):
        return None
    if source.media_type == "application/pdf":
        return "document"
    return "image" if source.media_type in IMAGES else None


def _set_temperature(payload: dict[str, Any], request: ModelRequest, notes: list[str], *, sampling: bool) -> None:
    if request.config.temperature is None:
        return
    thinks = payload.get("thinking", {"type": "disabled"})["type"] != "disabled"
    if thinks or refuses_sampling(request.model, thinks=False):
        notes.append("The temperature was left out: this model takes none with these settings.")
        return
    if not sampling:
        notes.append(
            "The temperature was left out: this version of Anthropic's API takes none. An older one does: write "
            'headers = { "anthropic-version" = "2023-06-01" } into the model\'s profile.'
        )
        return
    if request.config.temperature > _MOST_TEMPERATURE:
        notes.append(f"The temperature is {_MOST_TEMPERATURE}: Anthropic takes no more.")
    payload["extra_body"] = {"temperature": min(request.config.temperature, _MOST_TEMPERATURE)}


Client = (
    anthropic.AsyncAnthropic
    | anthropic.AsyncAnthropicBedrock
    | anthropic.AsyncAnthropicBedrockMantle
    | anthropic.AsyncAnthropicFoundry
    | anthropic.AsyncAnthropicVertex
)


class AnthropicModel:
    """Raises the SDK's errors and `activities.models.failures.status_table`; nothing is retried here, Temporal does
    that."""

    def __init__(self, client: Client, *, rewrites: bool = False) -> None:
        """`rewrites`: the client makes another address and body of what it is given, and signs that."""
        self._client = client
        self._sent = mapped if rewrites else sent
        self._host = self._client.base_url.host
        self._official = self._host == "api.anthropic.com"
        self._answers: OrderedDict[str, str] = OrderedDict()
        """Ids of the newest ones, by session."""
        self._at_bedrock = isinstance(client, anthropic.AsyncAnthropicBedrock)
        self._reads_version = self._official or not isinstance(client, anthropic.AsyncAnthropic)
        """A compatible server takes what its own model takes, whatever version of the API the SDK names."""

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forbidden_last(request, self._asked, on_delta)

    async def _asked(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        # An older version of the API, which a profile may name, does not know the field.
        is_newest = request.profile is None or VERSION not in map(str.lower, request.profile.headers)
        previous = self._answers.get(request.cache_key, "") if is_newest else ""
        sampling = self._takes_sampling(request)
        payload = build_payload(request, notes, official=self._official, sampling=sampling, previous=previous)
        if self._official and (betas := betas_of(payload, request.model)):
            payload["extra_headers"] = {BETA: with_betas(self._client.default_headers.get(BETA), betas)}
        if self._at_bedrock and rules_of(request.model).old_at_bedrock:
            payload["extra_body"] = {"anthropic_version": BEDROCK_VERSION, **payload.get("extra_body", {})}
        without = noted(request.profile, refused_by_claude(payload, request, sampling=sampling), notes)
        payload = without_refused(
            profiled(payload, request, self._client.default_headers, without=without), request.refused
        )
        reply = _Reply(on_delta, request, notes)
        with signing_in():
            stream = await self._client.post(
                "/v1/messages",
                cast_to=Message,
                stream=True,
                stream_cls=anthropic.AsyncStream[RawMessageStreamEvent],
                **self._sent(payload, "messages", timeout_of(request.config)),
            )
        await read_all(stream, reply, silence_of(request.config, self._host, thinks_unseen=True))
        if request.cache_key and reply.message_id:
            self._answers[request.cache_key] = reply.message_id
            self._answers.move_to_end(request.cache_key)
            if len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        return reply.finish(request)

    def _takes_sampling(self, request: ModelRequest) -> bool:
        """By the version of the API that this request names."""
        if not self._reads_version or (self._at_bedrock and rules_of(request.model).old_at_bedrock):
            return True
        headers = {**self._client.default_headers, **(request.profile.headers if request.profile else {})}
        named = {name.lower(): str(value) for name, value in headers.items()}
        return named.get(VERSION, ANTHROPIC_API_VERSION) < api_rules("anthropic")["samples_until"]

    async def close(self) -> None:
        await self._client.close()


class _Reply:
    """Puts an answer together from its events, which are plain JSON: nothing in it is certain with a compatible
    server."""

    def __init__(self, on_delta: Callable[[Delta], None], request: ModelRequest, notes: list[str]) -> None:
        self._assembly = Assembly(on_delta, request)
        self._notes = notes
        self._counts: dict[str, int] = {}
        self._model = ""
        self._stop_reason = ""
        self._refusal = ""
        self._cache_miss = ""
        self.message_id = ""
        self.is_over = False

    @property
    def is_whole(self) -> bool:
        """A server that forgets `message_stop` has still said why it stopped, behind the last block."""
        return self.is_over or (bool(self._stop_reason) and all(draft.is_closed for draft in self._assembly.drafts))

    def end(self) -> None:
        self.is_over = True

    def events_of(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        blocks = body.get("content")
        if not isinstance(blocks, list) or body.get("role", "assistant") != "assistant":
            return []
        told: list[dict[str, Any]] = [{"type": "message_start", "message": body}]
        for index, block in enumerate(map(dict_of, blocks)):
            told.append({"type": "content_block_start", "index": index, "content_block": block})
            told.append({"type": "content_block_stop", "index": index})
        return [*told, {"type": "message_delta", "delta": body}, {"type": "message_stop"}]

    def take(self, event: dict[str, Any]) -> None:
        index = event.get("index")
        match event.get("type"):
            case "message_start":
                message = dict_of(event.get("message"))
                self._model = text_of(message.get("model"))
                self.message_id = id_of(message.get("id"))
                self._diagnose(message)
                self._counts.update(anthropic_counts(message.get("usage")))
            case "content_block_start":
                self._start(index, dict_of(event.get("content_block")))
            case "content_block_delta":
                self._add(index, dict_of(event.get("delta")))
            case "content_block_stop":
                if (last := self._assembly.last(index)) is not None:
                    last.is_closed = True
            case "message_delta":
                delta = dict_of(event.get("delta"))
                self._stop_reason = text_of(delta.get("stop_reason")) or self._stop_reason
                details = dict_of(delta.get("stop_details"))
                self._refusal = text_of(details.get("explanation") or details.get("category")) or self._refusal
                # The counts are cumulative; a later event leaves out what has not changed.
                self._counts.update(anthropic_counts(event.get("usage")))
                self._diagnose(delta)
            case "message_stop":
                self.is_over = True
            case _:
                pass  # an event type that Anthropic adds later

    def _diagnose(self, told: dict[str, Any]) -> None:
        reason = dict_of(dict_of(told.get("diagnostics")).get("cache_miss_reason"))
        self._cache_miss = text_of(reason.get("type")) or self._cache_miss

    def _start(self, index: object, block: dict[str, Any]) -> None:
        """A start ends the block before it under the same index: some servers send all of them under one."""
        if (last := self._assembly.last(index)) is not None and last.kind != "tool_call":
            last.is_closed = True
        match block.get("type"):
            case "text":
                self._assembly.add(self._assembly.start("text", index), text_of(block.get("text")))
            case "thinking":
                draft = self._assembly.start("thinking", index)
                self._assembly.add(draft, text_of(block.get("thinking")))
                self._sign(draft, text_of(block.get("signature")))
            case "redacted_thinking":
                draft = self._assembly.start("thinking", index)
                self._assembly.keep(draft, redacted_thinking_data=text_of(block.get("data")))
            case "tool_use":
                call_id = id_of(block.get("id"))
                draft = self._assembly.start("tool_call", index, call_id)
                draft.call_id = draft.call_id or call_id
                if name := text_of(block.get("name")):
                    draft.names = draft.names or [name]
                    draft.final_name = name
                # Compatible servers send the arguments whole here, where Anthropic has an empty object.
                self._assembly.tell_whole(draft, block.get("input"), first=True)
            case other:
                self._assembly.start("other", index)
                self._notes.append(f"A block of type {other!r} in the reply was left out.")

    def _add(self, index: object, delta: dict[str, Any]) -> None:
        match delta.get("type"):
            case "text_delta":
                self._assembly.say("text", index, text_of(delta.get("text")))
            case "thinking_delta":
                self._assembly.say("thinking", index, text_of(delta.get("thinking")))
            case "input_json_delta":
                last = self._assembly.last(index)
                if last is None or last.kind != "other":  # else of a tool that the provider runs itself
                    call = self._assembly.find("tool_call", index)
                    self._assembly.add_arguments(call, delta.get("partial_json"), index)
            case "signature_delta":
                draft = self._assembly.last(index, "thinking") or self._assembly.start("thinking", index)
                self._sign(draft, text_of(delta.get("signature")))
            case _:
                pass  # citations

    def _sign(self, draft: Draft, piece: str) -> None:
        self._assembly.keep(draft, signature=draft.extras.get("signature", "") + piece)

    def finish(self, request: ModelRequest) -> ModelReply:
        stop_reason = self._stop_reason if self.is_whole else ""
        reply = finish(
            self._assembly,
            request,
            model=self._model,
            usage=anthropic_usage(self._counts),
            stop_reason=stop_reason,
            notes=self._notes,
            is_whole=self.is_whole,
        )
        if stop_reason == "model_context_window_exceeded" and not reply.content:
            raise ProviderError(400, stop_reason, "the conversation leaves no room for a reply")
        return replace(reply, refusal=scrub(self._refusal), cache_miss=self._cache_miss)
