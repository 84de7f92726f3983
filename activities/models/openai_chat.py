"""OpenAI's Chat Completions API and the many servers that speak it (DashScope, vLLM, llama.cpp, …), always streamed.

Compatible servers leave out what OpenAI always sends (usage, call ids, names in time), so every field is optional here.
"""

from collections.abc import Callable
from typing import Any

import openai

from activities.models.answers import forced_or_in_words
from activities.models.assembly import Assembly
from activities.models.failures import ProviderError
from activities.models.model import Delta, ModelReply, ModelRequest
from activities.models.openai_chat_prompt import build_payload
from activities.models.streams import finish, read_all, timeout_of
from activities.models.verdict_table import STATUS_OF_TYPE
from agent.messages import Usage


class OpenAIChatModel:
    """Raises the SDK's errors and `activities.models.failures`; nothing is retried here, Temporal does that."""

    def __init__(self, api_key: str, base_url: str | None, *, dashscope: bool = False) -> None:
        self._client = openai.AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0)
        self._dashscope = dashscope
        self._official = self._client.base_url.host == "api.openai.com"

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        payload = build_payload(request, notes, official=self._official, dashscope=self._dashscope)
        reply = _Reply(on_delta, notes)
        stream = await self._client.chat.completions.create(**payload, stream=True, timeout=timeout_of(request.config))
        await read_all(stream, reply.take)
        return reply.finish(request)

    async def close(self) -> None:
        await self._client.close()


class _Reply:
    def __init__(self, on_delta: Callable[[Delta], None], notes: list[str]) -> None:
        self._assembly = Assembly(on_delta)
        self._notes = notes
        self._model = ""
        self._stop_reason = ""
        self._usage = Usage()
        self._call_keys: list[object] = []

    def take(self, chunk: Any) -> None:
        """`chunk` is a ChatCompletionChunk, but nothing in it is certain with a compatible server."""
        self._model = getattr(chunk, "model", None) or self._model
        if (usage := getattr(chunk, "usage", None)) is not None:
            self._usage = _usage_of(usage)
        for choice in getattr(chunk, "choices", None) or ():
            if getattr(choice, "index", 0):
                continue
            self._stop_reason = getattr(choice, "finish_reason", None) or self._stop_reason
            if (delta := getattr(choice, "delta", None)) is not None:
                self._add(delta)

    def _add(self, delta: Any) -> None:
        thinking = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thinking, str):
            self._assembly.add("thinking", "thinking", thinking)
        for piece in (getattr(delta, "content", None), getattr(delta, "refusal", None)):
            if isinstance(piece, str) and piece:
                self._assembly.add("text", "text", piece)
        for call in getattr(delta, "tool_calls", None) or ():
            self._add_call(call)

    def _add_call(self, call: Any) -> None:
        call_id = getattr(call, "id", None) or ""
        function = getattr(call, "function", None)
        key = self._key_of(getattr(call, "index", None), call_id, named=bool(getattr(function, "name", None)))
        self._assembly.open(key, "tool_call", call_id=call_id, tool_name=getattr(function, "name", None) or "")
        self._assembly.add(key, "tool_call", getattr(function, "arguments", None) or "")

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
        if self._stop_reason == "error":
            raise ProviderError(STATUS_OF_TYPE["server_error"], "server_error", "the server stopped with an error")
        return finish(
            self._assembly,
            request,
            model=self._model,
            usage=self._usage,
            stop_reason=self._stop_reason,
            notes=self._notes,
        )


def _usage_of(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        input_tokens=getattr(usage, "prompt_tokens", None) or 0,
        output_tokens=getattr(usage, "completion_tokens", None) or 0,
        cache_input_tokens=getattr(details, "cached_tokens", None) or 0,
        cache_creation_input_tokens=getattr(details, "cache_write_tokens", None) or 0,
    )
