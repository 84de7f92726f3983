"""OpenAI's Chat Completions API and the many servers that speak it (DashScope, vLLM, llama.cpp, …), always streamed.

Compatible servers leave out what OpenAI always sends (usage, call ids, names in time), so every field is optional here.
"""

from collections.abc import Callable
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from longhaul.activities.models.apis.chat_thoughts import HeardReasoning
from longhaul.activities.models.apis.openai_chat_prompt import build_payload
from longhaul.activities.models.apis.streams import finish, read_all, silence_of, timeout_of
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.profiles import is_told_to_reason, profiled
from longhaul.activities.models.replies.assembly import Assembly
from longhaul.activities.models.replies.stop_reason_table import REFUSAL
from longhaul.activities.models.replies.usage import usage_of_chunk
from longhaul.activities.models.requests.openai_parts import is_reasoning_model
from longhaul.activities.models.requests.sampling_parameters import noted, refused_by_chat
from longhaul.activities.models.requests.structured_output import forced_or_in_words
from longhaul.activities.models.requests.wire_items import mapped, sent
from longhaul.activities.models.sign_in import signing_in
from longhaul.agent.values.conversation.messages import Usage


class OpenAIChatModel:
    """Raises the SDK's errors and `activities.models.failures.errors`; nothing is retried here, Temporal does that."""

    def __init__(self, client: openai.AsyncOpenAI, *, dashscope: bool = False, rewrites: bool = False) -> None:
        """`rewrites`: the client makes another address of the model's name in what it is given."""
        self._client = client
        self._sent = mapped if rewrites else sent
        self._dashscope = dashscope
        self._host = self._client.base_url.host
        self._official = self._host == "api.openai.com"

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        official = self._official or is_told_to_reason(request)
        payload = build_payload(request, notes, official=official, dashscope=self._dashscope)
        without = noted(request.profile, refused_by_chat(request.model, official=official), notes)
        payload = profiled(payload, request, without=without)
        reply = _Reply(on_delta, notes)
        with signing_in():
            stream = await self._client.post(
                "/chat/completions",
                cast_to=ChatCompletion,
                stream=True,
                stream_cls=openai.AsyncStream[ChatCompletionChunk],
                **self._sent(payload, "messages", timeout_of(request.config)),
            )
        thinks = is_reasoning_model(request.model)
        await read_all(stream, reply.take, silence_of(request.config, self._host, thinks_unseen=thinks))
        return reply.finish(request)

    async def close(self) -> None:
        await self._client.close()


class _Reply:
    def __init__(self, on_delta: Callable[[Delta], None], notes: list[str]) -> None:
        self._assembly = Assembly(on_delta)
        self._reasoning = HeardReasoning(self._assembly)
        self._notes = notes
        self._model = ""
        self._stop_reason = ""
        self._refused = False
        """The API says "stop" of such an answer, and tells it by the field of its text alone."""
        self._usage = Usage()
        self._call_keys: list[object] = []

    def take(self, chunk: Any) -> None:
        """`chunk` is a ChatCompletionChunk, but nothing in it is certain with a compatible server."""
        self._model = getattr(chunk, "model", None) or self._model
        self._usage = usage_of_chunk(chunk) or self._usage
        for choice in getattr(chunk, "choices", None) or ():
            if getattr(choice, "index", 0):
                continue
            self._stop_reason = getattr(choice, "finish_reason", None) or self._stop_reason
            if (delta := getattr(choice, "delta", None)) is not None:
                self._add(delta)

    def _add(self, delta: Any) -> None:
        self._reasoning.take(delta)
        for piece in (getattr(delta, "content", None), getattr(delta, "refusal", None)):
            if isinstance(piece, str) and piece:
                self._assembly.add("text", "text", piece)
        self._refused = self._refused or bool(getattr(delta, "refusal", None))
        for call in getattr(delta, "tool_calls", None) or ():
            self._add_call(call)

    def _add_call(self, call: Any) -> None:
        call_id = getattr(call, "id", None) or ""
        function = getattr(call, "function", None)
        key = self._key_of(getattr(call, "index", None), call_id, named=bool(getattr(function, "name", None)))
        self._assembly.open(key, "tool_call", call_id=call_id, tool_name=getattr(function, "name", None) or "")
        self._assembly.add(key, "tool_call", getattr(function, "arguments", None) or "")
        self._reasoning.take_call(key, call)

    def _key_of(self, index: int | None, call_id: str, *, named: bool) -> object:
        """Which call a piece belongs to. Without an index a piece with a new id, or else with a name, begins a call."""
        if index is not None:
            return ("index", index)
        key: object = ("id", call_id) if call_id else ("number", len(self._call_keys))
        begins = key not in self._call_keys if call_id else named or not self._call_keys
        if begins:
            self._call_keys.append(key)
        return key if begins or call_id else self._call_keys[-1]

    def finish(self, request: ModelRequest) -> ModelReply:
        return finish(
            self._assembly,
            request,
            model=self._model,
            usage=self._usage,
            stop_reason=REFUSAL if self._refused and self._stop_reason else self._stop_reason,
            notes=self._notes,
        )
