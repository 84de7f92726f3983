"""Claude through Anthropic's Messages API and SDK, always streamed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anthropic
from anthropic.types import Message, RawMessageStreamEvent

from longhaul.activities.models.apis.anthropic_prompt import build_payload, version_of
from longhaul.activities.models.apis.anthropic_thoughts import betas_of
from longhaul.activities.models.apis.streams import finish, read_all, silence_of, timeout_of
from longhaul.activities.models.failures.errors import ProviderError
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.profiles import BETA, profiled, with_betas
from longhaul.activities.models.replies.assembly import Assembly, Draft, dict_of, id_of, text_of
from longhaul.activities.models.replies.usage import anthropic_counts, anthropic_usage
from longhaul.activities.models.requests.sampling_parameters import noted, refused_by_claude
from longhaul.activities.models.requests.structured_output import forced_or_in_words
from longhaul.activities.models.requests.text import scrub
from longhaul.activities.models.requests.wire_items import mapped, sent
from longhaul.activities.models.sign_in import signing_in

Client = (
    anthropic.AsyncAnthropic
    | anthropic.AsyncAnthropicBedrock
    | anthropic.AsyncAnthropicBedrockMantle
    | anthropic.AsyncAnthropicFoundry
    | anthropic.AsyncAnthropicVertex
)


class AnthropicModel:
    """Raises the SDK's errors and `activities.models.failures.errors`; nothing is retried here, Temporal does that."""

    def __init__(self, client: Client, *, rewrites: bool = False) -> None:
        """`rewrites`: the client makes another address and body of what it is given, and signs that."""
        self._client = client
        self._sent = mapped if rewrites else sent
        self._host = self._client.base_url.host
        self._official = self._host == "api.anthropic.com"

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        payload = build_payload(request, notes, official=self._official)
        if self._official and (betas := betas_of(payload, version_of(request.model))):
            payload["extra_headers"] = {BETA: with_betas(self._client.default_headers.get(BETA), betas)}
        refused = refused_by_claude(payload, request.profile, version_of(request.model))
        without = noted(request.profile, refused, notes)
        payload = profiled(payload, request, self._client.default_headers, without=without)
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
        return reply.finish(request)

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
            case "message_stop":
                self.is_over = True
            case _:
                pass  # an event type that Anthropic adds later

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
        return replace(reply, refusal=scrub(self._refusal))
