"""Models of many vendors through pydantic-ai, whose classes know each vendor's API, and what its models want.

The loop, the retries and the record are ours: the library makes one request, and reads one stream."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import httpx
import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model as VendorsModel
from pydantic_ai.models import infer_model
from pydantic_ai.usage import RequestUsage

from longhaul.activities.models.apis.streams import ANSWER_SECONDS, CONNECT_SECONDS, finish, silence_of
from longhaul.activities.models.apis.vendor_clients import provider_of
from longhaul.activities.models.apis.vendor_messages import arguments_of_part, messages_of, put_together
from longhaul.activities.models.apis.vendor_settings import forces, settings_of, tools_of
from longhaul.activities.models.apis.vendors import VENDORS, Hosted, vendor_of
from longhaul.activities.models.failures.errors import IncompleteStreamError, ProviderError, SetupError
from longhaul.activities.models.failures.privacy import for_a_person
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.replies.assembly import Assembly
from longhaul.activities.models.replies.stop_reason_table import is_known
from longhaul.activities.models.requests.structured_output import NOT_FORCED, forced_or_in_words, in_words
from longhaul.activities.models.sign_in import signing_in
from longhaul.agent.values.conversation.messages import Usage

_STOPS: Mapping[str, str] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_call": "tool_calls",
    "error": "error",
}
"""Of the library, where it has no word of the vendor's own that is known here."""
_UNSUPPORTED = 400
_OPENED: ContextVar[list[httpx2.Response | httpx.Response] | None] = ContextVar("opened", default=None)
"""Answers of the call at hand, of clients that are ours."""
_REASONING = ("reasoning_tokens", "thoughts_tokens")


class VendorModel:
    """Raises the library's errors and `activities.models.failures.errors`; nothing is retried here."""

    def __init__(self, provider_name: str, api_key: str | None, at: Hosted) -> None:
        """`api_key`: None where the worker signs in to a cloud as what it runs as."""
        self._name = vendor_of(provider_name)
        self._vendor = VENDORS[self._name]
        hooks = {"response": [_note_opened]}
        library: Any = httpx if self._vendor.sdk == "cohere" else httpx2  # each SDK wants a client of its own kind
        limits = library.Limits(max_connections=1_000, max_keepalive_connections=100)
        timeout = library.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        self._http: Any = library.AsyncClient(timeout=timeout, limits=limits, event_hooks=hooks)
        self._provider = provider_of(self._name, self._vendor, api_key, at, self._http)

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        return await forced_or_in_words(request, lambda asked, notes: self._call(asked, notes, on_delta))

    async def _call(self, request: ModelRequest, notes: list[str], on_delta: Callable[[Delta], None]) -> ModelReply:
        profile = request.profile
        model = self._model_named(request.model if profile is None else profile.model)
        if request.answer is not None and not forces(model):
            request = in_words(request)
            notes.append(NOT_FORCED)
        if request.must_call and not forces(model):
            request = replace(request, must_call="")
        if self._vendor.sdk == "bedrock":
            from longhaul.activities.models.apis.bedrock_client import make_room  # noqa: PLC0415

            make_room()
        try:
            messages = messages_of(request, model, self._vendor, notes)
            with signing_in():
                response = await self._ask(model, request, messages, notes, on_delta)
        except (UserError, NotImplementedError) as error:
            # What the vendor's API has no form for; the library says so before it sends anything.
            raise ProviderError(_UNSUPPORTED, "unsupported", str(error)) from error
        return _reply(request, response, notes)

    async def _ask(
        self,
        model: VendorsModel,
        request: ModelRequest,
        messages: list[Any],
        notes: list[str],
        on_delta: Callable[[Delta], None],
    ) -> ModelResponse:
        settings = settings_of(model, request, notes)
        hears = _Pieces(on_delta)
        silence = silence_of(request.config, "", thinks_unseen=True)
        opened = list[httpx2.Response | httpx.Response]()
        _OPENED.set(opened)
        async with model.request_stream(messages, settings, tools_of(model, request)) as stream:
            events = aiter(stream)
            try:
                while (event := await _next(events, silence)) is not None:
                    hears.take(event)
            finally:
                # Not each of the library's streams hangs up when it is left in the midst.
                for response in opened:
                    await response.aclose()
            return stream.get()

    def _model_named(self, name: str) -> VendorsModel:
        try:
            library_name = self._vendor.library_name or self._name
            return infer_model(f"{library_name}:{name}", provider_factory=lambda _: self._provider)
        except UserError as error:
            raise SetupError(for_a_person(str(error))) from None

    async def close(self) -> None:
        await self._http.aclose()
        if self._vendor.sdk in ("openai", "groq"):
            await self._provider.client.close()
        elif self._vendor.sdk == "bedrock":
            self._provider.client.close()


async def _note_opened(response: httpx2.Response | httpx.Response) -> None:
    if (opened := _OPENED.get()) is not None:
        opened.append(response)


async def _next(events: AsyncIterator[ModelResponseStreamEvent], silence: float) -> ModelResponseStreamEvent | None:
    """None at the end. Raises IncompleteStreamError when nothing has come for `silence` seconds."""
    limit = asyncio.timeout(silence)
    try:
        async with limit:
            return await anext(events)
    except StopAsyncIteration:
        return None
    except TimeoutError:
        if not limit.expired():
            raise
        raise IncompleteStreamError(
            f"The model's provider fell silent: nothing has come of its answer for {silence:g} s."
        ) from None


class _Pieces:
    """Passes the pieces of a stream on."""

    def __init__(self, on_delta: Callable[[Delta], None]) -> None:
        self._assembly = Assembly(on_delta)

    def take(self, event: ModelResponseStreamEvent) -> None:
        match event:
            case PartStartEvent(index=index, part=TextPart(content=text)):
                self._assembly.add(index, "text", text)
            case PartStartEvent(index=index, part=ThinkingPart(content=text)):
                self._assembly.add(index, "thinking", text)
            case PartStartEvent(index=index, part=ToolCallPart() as call):
                self._assembly.open(index, "tool_call", call_id=call.tool_call_id, tool_name=call.tool_name)
                self._assembly.add(index, "tool_call", arguments_of_part(call.args))
            case PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=text)):
                self._assembly.add(index, "text", text)
            case PartDeltaEvent(index=index, delta=ThinkingPartDelta(content_delta=text)):
                self._assembly.add(index, "thinking", text or "")
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=args)):
                self._assembly.add(index, "tool_call", arguments_of_part(args))
            case _:
                pass  # the end of a part, and what a vendor runs itself


def _reply(request: ModelRequest, response: ModelResponse, notes: list[str]) -> ModelReply:
    return finish(
        put_together(response.parts, notes),
        request,
        model=response.model_name or "",
        usage=_usage(response.usage),
        # A stream that broke off may have told a reason before.
        stop_reason=_stop_of(response) if response.state == "complete" else "",
        notes=notes,
    )


def _stop_of(response: ModelResponse) -> str:
    """The vendor's own word where it is known; empty for a stream that has told none: the library takes such a one for
    whole."""
    own, read = str((response.provider_details or {}).get("finish_reason") or ""), response.finish_reason or ""
    if not own:
        return read if read in ("content_filter", "error") else ""
    return own if is_known(own) else _STOPS.get(read, own)


def _usage(told: RequestUsage) -> Usage:
    """The library counts cached tokens in, as we do."""
    reasoning = next((told.details[name] for name in _REASONING if name in told.details), 0)
    read = told.input_tokens
    return Usage(
        input_tokens=read,
        output_tokens=told.output_tokens,
        cache_input_tokens=min(told.cache_read_tokens, read),
        cache_creation_input_tokens=min(told.cache_write_tokens, read),
        reasoning_tokens=min(reasoning, told.output_tokens),
    )
