"""OpenAI through its Responses API, always streamed and stateless: the whole conversation goes with each call."""

from collections.abc import Callable
from typing import Any

import openai
from openai.types.responses import ResponseStreamEvent

from activities.models.answers import forced_or_in_words
from activities.models.assembly import Assembly
from activities.models.failures import ProviderError
from activities.models.model import Delta, ModelReply, ModelRequest
from activities.models.openai_responses_prompt import build_payload
from activities.models.streams import finish, read_all, timeout_of
from activities.models.verdict_table import STATUS_OF_TYPE
from agent.messages import Usage


class OpenAIResponsesModel:
    """Raises the SDK's errors and `activities.models.failures`; nothing is retried here, Temporal does that."""

    def __init__(self, api_key: str, base_url: str | None) -> None:
        self._client = openai.AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0)

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        payload = build_payload(request, notes)
        reply = _Reply(on_delta, notes)
        stream = await self._client.responses.create(**payload, stream=True, timeout=timeout_of(request.config))
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

    def take(self, event: ResponseStreamEvent) -> None:
        match event.type:
            case "response.output_item.added":
                self._open(event.output_index, event.item)
            case "response.output_text.delta" | "response.refusal.delta":
                self._assembly.add(event.output_index, "text", event.delta)
            case "response.reasoning_summary_part.added" if self._assembly.text_of(event.output_index):
                self._assembly.add(event.output_index, "thinking", "\n\n")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._assembly.add(event.output_index, "thinking", event.delta)
            case "response.function_call_arguments.delta":
                self._assembly.add(event.output_index, "tool_call", event.delta)
            case "response.output_item.done":
                self._complete(event.output_index, event.item)
            case "response.completed" | "response.incomplete":
                self._end(event.response)
            case "response.failed":
                error = event.response.error
                raise _failure(getattr(error, "code", None), getattr(error, "message", None))
            case "error":
                raise _failure(event.code, event.message)
            case _:
                pass  # progress, annotations, and tools that the provider runs itself

    def _open(self, index: int, item: Any) -> None:
        match item.type:
            case "function_call":
                self._assembly.open(index, "tool_call", call_id=item.call_id or "", tool_name=item.name or "")
            case "reasoning":
                self._assembly.open(index, "thinking")
            case "message":
                self._assembly.open(index, "text")
            case other:
                self._notes.append(f"An item of type {other!r} in the reply was left out.")

    def _complete(self, index: int, item: Any) -> None:
        """The finished item repeats all of it: it fills in what a compatible server did not stream."""
        match item.type:
            case "function_call":
                self._assembly.open(index, "tool_call", call_id=item.call_id or "", tool_name=item.name or "")
                if not self._assembly.text_of(index):
                    self._assembly.add(index, "tool_call", item.arguments or "")
            case "reasoning":
                self._assembly.open(index, "thinking")
                if item.encrypted_content:
                    self._assembly.keep(index, item_id=item.id, encrypted_content=item.encrypted_content)
            case "message" if not self._assembly.text_of(index):
                for part in item.content or ():
                    self._assembly.add(
                        index, "text", getattr(part, "text", None) or getattr(part, "refusal", None) or ""
                    )

    def _end(self, response: Any) -> None:
        self._model = response.model or ""
        reason = getattr(response.incomplete_details, "reason", None)
        self._stop_reason = reason or response.status or "completed"
        if response.usage is not None:
            details = response.usage.input_tokens_details
            self._usage = Usage(
                input_tokens=response.usage.input_tokens or 0,
                output_tokens=response.usage.output_tokens or 0,
                cache_input_tokens=getattr(details, "cached_tokens", None) or 0,
                cache_creation_input_tokens=getattr(details, "cache_write_tokens", None) or 0,
            )

    def finish(self, request: ModelRequest) -> ModelReply:
        return finish(
            self._assembly,
            request,
            model=self._model,
            usage=self._usage,
            stop_reason=self._stop_reason,
            notes=self._notes,
        )


def _failure(code: str | None, message: str | None) -> ProviderError:
    # The codes that name the request (a bad image, a policy) have no status of their own: they are refusals.
    unknown = 400 if code else 500
    return ProviderError(STATUS_OF_TYPE.get(code or "", unknown), code or "", message or "")
