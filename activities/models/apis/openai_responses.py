"""OpenAI through its Responses API, always streamed and stateless: the whole conversation goes with each call.

A request in the shape of OpenAI's Responses API. Source: platform.openai.com, "Conversation state", "Reasoning".
"""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Literal, assert_never
from urllib.parse import quote

import httpx2
import openai
from openai.types.responses import Response, ResponseStreamEvent

from longhaul.activities.models.apis.sdk_calls import (
    CUT,
    PostArguments,
    WireItem,
    cache_key_of,
    finish,
    read_all,
    sent,
    signing_in,
    silence_of,
    timeout_of,
    wire_item,
)
from longhaul.activities.models.failures.status_table import STATUS_OF_TYPE, IncompleteStreamError, ProviderError
from longhaul.activities.models.model import REFUSAL, Delta, KeptAnswer, ModelReply, ModelRequest, scrub_json
from longhaul.activities.models.profiles import profiled
from longhaul.activities.models.replies import Assembly, Draft, Kind, dict_of, id_of, list_of, openai_usage, text_of
from longhaul.activities.models.requests.answer_form import forced_or_in_words
from longhaul.activities.models.requests.model_parameters import (
    NONE,
    arguments_text,
    attachment_of,
    effort_of,
    is_grok,
    is_reasoning_model,
    limit_of_output,
    noted,
    refuses_sampling,
    state_mark,
    thinks_now,
)
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.activities.models.requests.refused_parameters import BACKGROUND, without_refused
from longhaul.activities.models.requests.tool_definitions import wire_name, with_plain_parts
from longhaul.activities.models.requests.turns import (
    AssistantTurn,
    Part,
    Turn,
    UserTurn,
    answer_schema,
    arrange,
    left_out,
    parts_of,
    tools_brought,
    turn_as_sent,
    wire_id,
    wire_schema,
    with_names,
)
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, Usage
from longhaul.agent.values.conversation.tools import ToolDescriptor

PHASE, PHASES = "phase", ("commentary", "final_answer")
"""Of a message: models from gpt-5.3-codex on do worse where it does not come back."""
_LEAST_OUTPUT = 16
"""The API refuses a lower limit."""
ENCRYPTED = "reasoning.encrypted_content"
"""What a request has to include, so that a reply's reasoning can be sent back."""


def build_payload(request: ModelRequest, notes: list[str], *, background: bool = False) -> dict[str, Any]:
    """The keyword arguments of `responses.create`; what had to be left out or changed goes into `notes`. The server is
    asked for reasoning that it takes back, unless its model is known to have none, and for summaries of it, which
    people are shown, where the model is known to reason. `background`: to make the answer whether or not anybody
    listens, and to keep it for whoever asks for it by its id."""
    payload: dict[str, Any] = {
        "model": request.model,
        "input": _items(request, notes),
        "max_output_tokens": max(_LEAST_OUTPUT, limit_of_output(request, thinks=_reasons(request), notes=notes)),
        # Nothing is kept at the provider: the record is ours, and a session may go on with another provider.
        "store": False,
    }
    if request.system.strip():
        payload["instructions"] = request.system
    if request.tools:
        payload["tools"] = _tools(request.tools)
        if request.no_calls:
            payload["tool_choice"] = "none"
        elif request.must_call:
            payload["tool_choice"] = {"type": "function", "name": request.must_call}
    if request.answer is not None:
        named = {"type": "function", "name": wire_name(request.answer.name)}
        # Not strict: a user's own schema may have what strict mode refuses.
        tool = {
            **named,
            "description": request.answer.description,
            "parameters": with_plain_parts(answer_schema(request.answer)),
            "strict": False,
        }
        payload["tools"] = [*payload.get("tools", ()), tool]
        payload["tool_choice"] = named
    _set_reasoning(payload, request, notes)
    if rules_of(request.model).may_think:
        payload["include"] = [ENCRYPTED]
    if background:
        payload |= {"background": True, "store": True}
    return {name: value if name == "input" else scrub_json(value) for name, value in payload.items()}


def _set_reasoning(payload: dict[str, Any], request: ModelRequest, notes: list[str]) -> None:
    config = request.config
    if config.thinking_budget_tokens is not None:
        notes.append("The thinking budget was left out: OpenAI takes a reasoning effort instead.")
    effort = effort_of(request.model, config.reasoning_effort, notes)
    reasoning = {} if effort is None else {"effort": effort}
    if effort != NONE and request.is_of_conversation and is_reasoning_model(request.model):
        reasoning["summary"] = "auto"
    if reasoning:
        payload["reasoning"] = reasoning
    if config.temperature is not None:
        if _refuses_sampling(request, effort):
            notes.append("The temperature was left out: this model takes none with these settings.")
        else:
            payload["temperature"] = config.temperature


def _refuses_sampling(request: ModelRequest, effort: str | None) -> bool:
    return refuses_sampling(request.model, thinks=thinks_now(request.model, effort))


def _reasons(request: ModelRequest) -> bool:
    if is_reasoning_model(request.model) or is_grok(request.model):
        return True
    return request.config.reasoning_effort is not None and rules_of(request.model).may_think


def _tools(tools: Sequence[ToolDescriptor]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": with_plain_parts(wire_schema(tool)),
            # Strict mode refuses schemas with optional fields, which most tools have.
            "strict": False,
        }
        for tool in tools
    ]


def _items(request: ModelRequest, notes: list[str]) -> list[dict[str, Any]]:
    turns = arrange(request.messages)
    brought = tools_brought(turns, request.late_tools)
    items: list[dict[str, Any]] = []
    for place, turn in enumerate(turns):
        items += turn_as_sent(turn, ("responses",), _of_turn, notes)
        if place in brought:
            items.append({"type": "additional_tools", "role": "developer", "tools": _tools(brought[place])})
    return [*items] or [{"role": "user", "content": "(The conversation begins here.)"}]


def _of_turn(turn: Turn, notes: list[str]) -> list[WireItem]:
    if isinstance(turn, UserTurn):
        items = [{"role": "user", "content": _content(with_names(turn.said), notes)}]
    else:
        items = [*_assistant_items(turn, notes), *(_result(result, notes) for result in turn.answers())]
    return list(map(wire_item, items))


def _assistant_items(turn: AssistantTurn, notes: list[str]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for place, block in enumerate(turn.blocks):
        match block:
            case TextBlock():
                phase = {"phase": block.extras[PHASE]} if block.extras.get(PHASE) in PHASES else {}
                items.append({"role": "assistant", **phase, "content": [{"type": "output_text", "text": block.text}]})
            case ToolCallBlock():
                called = {"call_id": wire_id(block.id), "name": wire_name(block.name)}
                items.append({"type": "function_call", **called, "arguments": arguments_text(block)})
            case ThinkingBlock():
                led_to_something = any(not isinstance(later, ThinkingBlock) for later in turn.blocks[place + 1 :])
                items += _thought(block, notes) if led_to_something else []
            case _ as never:
                assert_never(never)
    return items


def _thought(block: ThinkingBlock, notes: list[str]) -> list[dict[str, Any]]:
    extras = block.model_extra or {}
    if not extras.get("encrypted_content"):
        notes.append("Thinking of another provider was left out: OpenAI takes back only its own.")
        return []
    summary = [{"type": "summary_text", "text": block.thinking}] if block.thinking else []
    kept = {"id": extras.get("item_id", ""), "encrypted_content": extras["encrypted_content"]}
    return [{"type": "reasoning", "summary": summary, **kept}]


def _result(result: ToolResultBlock, notes: list[str]) -> dict[str, Any]:
    parts = parts_of(result.output) or [TextBlock(text="(no output)")]
    mark = state_mark(result)
    if all(isinstance(part, TextBlock) for part in parts):
        output: Any = mark + "\n".join(part.text for part in parts if isinstance(part, TextBlock))
    else:
        output = _content([TextBlock(text=mark.strip()), *parts] if mark else parts, notes)
    return {"type": "function_call_output", "call_id": wire_id(result.id), "output": output}


def _content(parts: Sequence[Part], notes: list[str]) -> list[dict[str, Any]]:
    return [_part(part, notes) for part in parts]


def _part(part: Part, notes: list[str]) -> dict[str, Any]:
    if isinstance(part, TextBlock):
        return {"type": "input_text", "text": part.text}
    attachment = attachment_of(part)
    if attachment is None:
        return {"type": "input_text", "text": left_out(part, notes)}
    if attachment.kind == "image":
        return {"type": "input_image", "image_url": attachment.url, "detail": "auto"}
    if attachment.kind == "file by address":
        return {"type": "input_file", "file_url": attachment.url}
    return {"type": "input_file", "filename": attachment.name, "file_data": attachment.url}


RECONNECTIONS = 5
"""To one answer that the provider keeps."""


_Stream = openai.AsyncStream[ResponseStreamEvent]
DIGEST_CHARS = 20


class OpenAIResponsesModel:
    """Raises the SDK's errors and `activities.models.failures.status_table`; nothing is retried here, Temporal does
    that."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        is_kept = bool(request.profile and request.profile.background) and BACKGROUND not in request.refused
        kept = request.kept if is_kept else None
        host, thinks = self._client.base_url.host, is_reasoning_model(request.model)
        payload = build_payload(request, notes, background=kept is not None) | cache_key_of(request, host)
        effort = payload.get("reasoning", {}).get("effort")
        without = noted(request.profile, {"top_p"} if _refuses_sampling(request, effort) else (), notes)
        payload = without_refused(profiled(payload, request, without=without), request.refused)
        reply = _Reply(on_delta, request, notes, kept)
        with signing_in():
            stream = await self._started(sent(payload, "input", timeout_of(request.config)), kept)
        await self._read(stream, reply, silence_of(request.config, host, thinks_unseen=thinks), kept)
        return reply.finish(request)

    async def _started(self, arguments: PostArguments, kept: KeptAnswer | None) -> _Stream:
        """A new answer, or the one that an earlier attempt has started with the same request, from its start."""
        if kept is not None:
            digest = sha256(arguments["content"]).hexdigest()[:DIGEST_CHARS]
            if kept.response and kept.request == digest:
                try:
                    stream = await self._resumed(kept.response, arguments["options"], {})
                except openai.NotFoundError:
                    pass  # it was kept for some minutes alone
                else:
                    kept.picked_up, kept.stop = True, partial(self._stop, kept)
                    return stream
            kept.request, kept.response, kept.sequence = digest, "", -1
            kept.stop = partial(self._stop, kept)
        return await self._client.post(
            "/responses",
            cast_to=Response,
            stream=True,
            stream_cls=_Stream,
            **arguments,
        )

    async def _resumed(self, response: str, options: Any, cursor: dict[str, int]) -> _Stream:
        with_query: Any = {**options, "params": {"stream": "true", **cursor}}
        return await self._client.get(
            f"/responses/{quote(response, safe='')}",
            cast_to=Response,
            stream=True,
            stream_cls=_Stream,
            options=with_query,
        )

    async def _stop(self, kept: KeptAnswer) -> None:
        if kept.response:
            await self._client.post(f"/responses/{quote(kept.response, safe='')}/cancel", cast_to=Response)

    async def _read(self, stream: _Stream, reply: "_Reply", silence_seconds: float, kept: KeptAnswer | None) -> None:
        """To the end of the answer, over as many connections as that takes while the provider keeps it."""
        for left in reversed(range(RECONNECTIONS if kept is not None else 1)):
            try:
                await read_all(stream, reply, silence_seconds)
                if reply.is_over or kept is None or not kept.response or not left:
                    return
            except (IncompleteStreamError, httpx2.TransportError):
                if kept is None or not kept.response or not left:
                    raise
            except Exception:
                if kept is not None:
                    kept.response = ""  # the answer itself has failed: another attempt begins a new one
                raise
            try:
                stream = await self._resumed(kept.response, {}, {"starting_after": kept.sequence})
            except openai.NotFoundError:
                kept.response = ""
                raise IncompleteStreamError(CUT) from None

    async def close(self) -> None:
        await self._client.close()


class _Reply:
    """Puts an answer together from its events, which are plain JSON: nothing in it is certain with a compatible
    server."""

    def __init__(
        self,
        on_delta: Callable[[Delta], None],
        request: ModelRequest,
        notes: list[str],
        kept: KeptAnswer | None = None,
    ) -> None:
        self._assembly = Assembly(on_delta, request)
        self._notes = notes
        self._kept = kept
        self._model = ""
        self._stop_reason = ""
        self._refused = False
        """The API says "completed" of such an answer, and tells it by the type of its parts alone."""
        self._usage = Usage()
        self._done = False

    @property
    def is_over(self) -> bool:
        return bool(self._stop_reason)

    @property
    def is_whole(self) -> bool:
        return self.is_over

    def end(self) -> None:
        """`[DONE]` is no event of this API: servers that send it instead of the last one have left nothing out."""
        self._done = True

    @staticmethod
    def events_of(body: dict[str, Any]) -> list[dict[str, Any]]:
        if not isinstance(body.get("output"), list):
            return []
        failed = body.get("status") == "failed"
        return [{"type": "response.failed" if failed else "response.completed", "response": body}]

    def take(self, event: dict[str, Any]) -> None:
        index, response = event.get("output_index"), dict_of(event.get("response"))
        if self._kept is not None:
            self._kept.response = self._kept.response or id_of(response.get("id"))
            if isinstance(number := event.get("sequence_number"), int):
                self._kept.sequence = number
        match event.get("type"):
            case "response.created":
                self._model = text_of(response.get("model"))
            case "response.output_item.added":
                self._item(index, dict_of(event.get("item")), is_done=False)
            case "response.output_item.done":
                self._item(index, dict_of(event.get("item")), is_done=True)
            case "response.completed" | "response.incomplete":
                self._model = text_of(response.get("model")) or self._model
                reason = text_of(dict_of(response.get("incomplete_details")).get("reason"))
                self._stop_reason = reason or text_of(response.get("status")) or "completed"
                self._usage = openai_usage(response.get("usage"))
                self._complete([dict_of(item) for item in list_of(response.get("output"))])
            case "response.failed":
                error = dict_of(response.get("error"))
                raise _failure(id_of(error.get("code")), text_of(error.get("message")))
            case "response.function_call_arguments.delta" | "response.function_call_arguments.done":
                self._arguments(event, index, id_of(event.get("item_id")))
            case str(kind):
                self._words(kind, event, index, id_of(event.get("item_id")))
            case _:
                pass

    def _words(self, kind: str, event: dict[str, Any], index: object, item_id: str) -> None:
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._assembly.add(self._of("text", index, item_id), text_of(event.get("delta")))
            case "response.output_text.done" | "response.refusal.done":
                self._fill(self._of("text", index, item_id), event.get("text") or event.get("refusal"))
            case "response.reasoning_summary_part.added":
                if (draft := self._of("thinking", index, item_id)).pieces:
                    self._assembly.add(draft, "\n\n")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._assembly.add(self._of("thinking", index, item_id), text_of(event.get("delta")))
            case _:
                pass  # progress, annotations, and tools that the provider runs itself
        self._refused = self._refused or kind.startswith("response.refusal.")

    def _arguments(self, event: dict[str, Any], index: object, item_id: str) -> None:
        call = self._assembly.find("tool_call", index, item_id)
        if event["type"].endswith(".delta"):
            self._assembly.add_arguments(call, event.get("delta"), item_id or index)
        elif call is None:
            self._assembly.add_arguments(None, event.get("arguments"), (item_id or index, "done"))
        else:
            call.is_closed = True
            self._assembly.tell_whole(call, event.get("arguments"))

    def _of(self, kind: Literal["text", "thinking"], index: object, item_id: str) -> Draft:
        """Of text nothing runs: one with another id than its item is the item's all the same."""
        found = self._assembly.find(kind, index, item_id) or self._assembly.last(index, kind)
        return found or self._assembly.start(kind, index, item_id)

    def _fill(self, draft: Draft, text: object) -> None:
        """What a compatible server did not stream."""
        if not draft.pieces:
            self._assembly.add(draft, text_of(text))

    def _item(self, index: object, item: dict[str, Any], *, is_done: bool, draft: Draft | None = None) -> None:
        """An item that starts, or the finished one, which repeats all of it. `draft`: its block, where it is known."""
        item_id = id_of(item.get("id"))
        match item.get("type"):
            case "function_call":
                self._call(index, item, is_done=is_done, draft=draft)
                return
            case "reasoning" | "message" as told:
                kind: Literal["text", "thinking"] = "text" if told == "message" else "thinking"
                if draft is None:
                    draft = self._of(kind, index, item_id) if is_done else self._assembly.start(kind, index, item_id)
                draft.is_closed = draft.is_closed or is_done
                if item.get(PHASE) in PHASES:
                    self._assembly.keep(draft, **{PHASE: item[PHASE]})
                if is_done:
                    self._finished(draft, item)
            case other:
                self._assembly.start("other", index, item_id).is_closed = True
                self._notes.append(f"An item of type {other!r} in the reply was left out.")

    def _finished(self, draft: Draft, item: dict[str, Any]) -> None:
        if draft.kind == "thinking":
            summary = [text_of(dict_of(part).get("text")) for part in list_of(item.get("summary"))]
            self._fill(draft, "\n\n".join(summary))
            if encrypted := text_of(item.get("encrypted_content")):
                self._assembly.keep(draft, item_id=item.get("id"), encrypted_content=encrypted)
            return
        parts = [dict_of(part) for part in list_of(item.get("content"))]
        self._refused = self._refused or any(part.get("type") == "refusal" for part in parts)
        self._fill(draft, "".join(text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts))

    def _call(self, index: object, item: dict[str, Any], *, is_done: bool, draft: Draft | None) -> None:
        item_id, call_id = id_of(item.get("id")), id_of(item.get("call_id"))
        # A call's own id says more than its item's, which some servers give to all of them.
        draft = draft or self._assembly.find("tool_call", index, call_id or item_id)
        if draft is None and call_id and item_id:
            at_index = self._assembly.find("tool_call", index, item_id)
            draft = at_index if at_index is not None and not at_index.call_id else None
        if draft is None or (not is_done and not (call_id or item_id)):
            draft = self._assembly.start("tool_call", index, call_id or item_id)
        draft.ids.update(filter(None, (item_id, call_id)))
        draft.call_id = draft.call_id or call_id
        if name := text_of(item.get("name")):
            draft.names = draft.names or [name]
            draft.final_name = name
        draft.is_closed = draft.is_closed or is_done
        self._assembly.tell_whole(draft, item.get("arguments"), first=not is_done)

    def _complete(self, output: list[dict[str, Any]]) -> None:
        """All items once more: they fill in what was not streamed. Each is found by its ids, or, where a server makes
        those again, as the first, the second, … of its kind."""
        kinds: dict[object, Kind] = {"function_call": "tool_call", "message": "text", "reasoning": "thinking"}
        streamed = {kind: [each for each in self._assembly.drafts if each.kind == kind] for kind in kinds.values()}
        left_out = any(draft.kind == "other" for draft in self._assembly.drafts)
        seen = dict.fromkeys(kinds.values(), 0)
        for place, item in enumerate(output):
            kind = kinds.get(item.get("type"))
            if kind is None:
                if not left_out:
                    self._item(("completed", place), item, is_done=True)
                continue
            ids = {id_of(item.get("id")), id_of(item.get("call_id"))} - {""}
            by_order = streamed[kind][seen[kind] : seen[kind] + 1]
            seen[kind] += 1
            draft = next((each for each in streamed[kind] if each.ids & ids), next(iter(by_order), None))
            self._item(("completed", place), item, is_done=True, draft=draft)

    def finish(self, request: ModelRequest) -> ModelReply:
        drafts = self._assembly.drafts
        return finish(
            self._assembly,
            request,
            model=self._model,
            usage=self._usage,
            stop_reason=REFUSAL if self._refused and self._stop_reason else self._stop_reason,
            notes=self._notes,
            is_whole=self._done and bool(drafts) and all(draft.is_closed for draft in drafts),
        )


def _failure(code: str | None, message: str | None) -> ProviderError:
    # The codes that name the request (a bad image, a policy) have no status of their own: they are refusals.
    unknown = 400 if code else 500
    return ProviderError(STATUS_OF_TYPE.get(code or "", unknown), code or "", message or "")
