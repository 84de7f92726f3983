"""Claude through Anthropic's Messages API and SDK, always streamed."""

import json
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
from longhaul.activities.models.replies.assembly import Assembly
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
        reply = _Reply(on_delta, notes)
        with signing_in():
            stream = await self._client.post(
                "/v1/messages",
                cast_to=Message,
                stream=True,
                stream_cls=anthropic.AsyncStream[RawMessageStreamEvent],
                **self._sent(payload, "messages", timeout_of(request.config)),
            )
        await read_all(stream, reply.take, silence_of(request.config, self._host, thinks_unseen=True))
        return reply.finish(request)

    async def close(self) -> None:
        await self._client.close()


class _Reply:
    def __init__(self, on_delta: Callable[[Delta], None], notes: list[str]) -> None:
        self._assembly = Assembly(on_delta)
        self._notes = notes
        self._signatures: dict[int, str] = {}
        self._whole_arguments: dict[int, object] = {}
        self._counts: dict[str, int] = {}
        self._model = ""
        self._stop_reason = ""
        self._refusal = ""
        self._ended = False

    def take(self, event: RawMessageStreamEvent) -> None:
        match event.type:
            case "message_start":
                self._model = event.message.model or ""
                self._count(event.message.usage)
            case "content_block_start":
                self._open(event.index, event.content_block)
            case "content_block_delta":
                self._add(event.index, event.delta)
            case "message_delta":
                self._stop_reason = event.delta.stop_reason or self._stop_reason
                if details := getattr(event.delta, "stop_details", None):
                    self._refusal = getattr(details, "explanation", None) or getattr(details, "category", None) or ""
                self._count(event.usage)
            case "message_stop":
                self._ended = True
            case _:
                pass  # an event type that Anthropic adds later, or the end of a block

    def _open(self, index: int, block: Any) -> None:
        match block.type:
            case "text":
                self._assembly.add(index, "text", block.text or "")
            case "thinking":
                self._assembly.add(index, "thinking", block.thinking or "")
                self._sign(index, block.signature or "")
            case "redacted_thinking":
                self._assembly.open(index, "thinking")
                self._assembly.keep(index, redacted_thinking_data=block.data)
            case "tool_use":
                self._assembly.open(index, "tool_call", call_id=block.id or "", tool_name=block.name or "")
                self._whole_arguments[index] = block.input
            case other:
                self._notes.append(f"A block of type {other!r} in the reply was left out.")

    def _add(self, index: int, delta: Any) -> None:
        match delta.type:
            case "text_delta":
                self._assembly.add(index, "text", delta.text)
            case "thinking_delta":
                self._assembly.add(index, "thinking", delta.thinking)
            case "input_json_delta" if index in self._whole_arguments:
                self._assembly.add(index, "tool_call", delta.partial_json)
            case "signature_delta":
                self._sign(index, delta.signature)
            case _:
                pass  # citations, and the arguments of tools that the provider runs itself

    def _sign(self, index: int, piece: str) -> None:
        self._signatures[index] = self._signatures.get(index, "") + piece
        self._assembly.open(index, "thinking")
        self._assembly.keep(index, signature=self._signatures[index])

    def _count(self, usage: Any) -> None:
        """The counts are cumulative; a later event leaves out what has not changed."""
        self._counts.update(anthropic_counts(usage))

    def finish(self, request: ModelRequest) -> ModelReply:
        for index, arguments in self._whole_arguments.items():
            # Compatible servers send the arguments whole in the first event, where Anthropic has an empty object.
            if arguments and not self._assembly.text_of(index):
                self._assembly.add(index, "tool_call", json.dumps(arguments))
        stop_reason = self._stop_reason if self._ended else ""
        reply = finish(
            self._assembly,
            request,
            model=self._model,
            usage=anthropic_usage(self._counts),
            stop_reason=stop_reason,
            notes=self._notes,
        )
        if stop_reason == "model_context_window_exceeded" and not reply.content:
            raise ProviderError(400, stop_reason, "the conversation leaves no room for a reply")
        return replace(reply, refusal=scrub(self._refusal))
