"""Models of many vendors through pydantic-ai, whose classes know each vendor's API, and what its models want.

The loop, the retries and the record are ours: the library makes one request, and reads one stream."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
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

from longhaul.activities.models.apis.chat_thoughts import DETAILS, FIELDS
from longhaul.activities.models.apis.openai_chat import ChatReply, said_in_content
from longhaul.activities.models.apis.streams import CUT, finish, heard, limit_silence, silence_of
from longhaul.activities.models.apis.vendor_clients import http_client, provider_of
from longhaul.activities.models.apis.vendor_messages import CALL, messages_of, put_together
from longhaul.activities.models.apis.vendor_settings import forces, settings_of, tools_of
from longhaul.activities.models.apis.vendors import VENDORS, Hosted, Sdk, vendor_of
from longhaul.activities.models.failures.error_bodies import LONGEST_CHARACTERS
from longhaul.activities.models.failures.errors import IncompleteStreamError, NoReplyError, ProviderError, SetupError
from longhaul.activities.models.failures.privacy import for_a_person
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.replies.assembly import Assembly, Draft, Kind, dict_of, id_of, list_of, text_of
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
_CHAT: frozenset[Sdk] = frozenset({"openai", "groq", "mistral"})
"""They speak Chat Completions, and their answers are read here before the library reads them."""
_CALL: ContextVar["_Call | None"] = ContextVar("call", default=None)
"""The one at hand."""
_REASONING = ("reasoning_tokens", "thoughts_tokens")


class VendorModel:
    """Raises the library's errors and `activities.models.failures.errors`; nothing is retried here."""

    def __init__(self, provider_name: str, api_key: str | None, at: Hosted) -> None:
        """`api_key`: None where the worker signs in to a cloud as what it runs as."""
        self._name = vendor_of(provider_name)
        self._vendor = VENDORS[self._name]
        self._http: Any = http_client(self._vendor, {"response": [_on_answer]})
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
        silence = silence_of(request.config, "", thinks_unseen=True)
        call = _Call(silence)
        pieces = _Pieces(on_delta, request, call)
        if self._vendor.sdk in _CHAT:
            call.chat = ChatReply(pieces.hear_call, request, notes)
        try:
            messages = messages_of(request, model, self._vendor, notes)
            with signing_in():
                response = await self._ask(model, request, messages, notes, pieces, call)
        except (UserError, NotImplementedError) as error:
            # What the vendor's API has no form for; the library says so before it sends anything.
            raise ProviderError(_UNSUPPORTED, "unsupported", str(error)) from error
        except Exception as error:
            # Of a failure that was read here the library makes one of its own.
            if call.failure is None or call.failure is error:
                raise
            raise call.failure from None
        if call.chat is not None:
            return call.chat.finish(request, put_together(response.parts, request, notes, call.chat.assembly))
        return _reply(request, response, notes)

    async def _ask(
        self,
        model: VendorsModel,
        request: ModelRequest,
        messages: list[Any],
        notes: list[str],
        pieces: "_Pieces",
        call: "_Call",
    ) -> ModelResponse:
        settings = settings_of(model, request, notes)
        _CALL.set(call)
        # Where the bytes are read here they are timed: a sign of life is no event of the library's.
        limit = call.silence if call.chat is None else None
        async with model.request_stream(messages, settings, tools_of(model, request)) as stream:
            events = aiter(stream)
            try:
                while (event := await _next(events, limit)) is not None:
                    pieces.take(event)
            finally:
                # Not each of the library's streams hangs up when it is left in the midst.
                for response in call.opened:
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


@dataclass(slots=True)
class _Call:
    """What is known of one call beside the library."""

    silence: float
    opened: list[httpx2.Response | httpx.Response] = field(default_factory=list)
    chat: ChatReply | None = None
    failure: Exception | None = None


async def _on_answer(response: httpx2.Response | httpx.Response) -> None:
    call = _CALL.get()
    if call is None:
        return
    call.opened.append(response)
    if not response.is_success:
        return
    if call.chat is not None:
        limit_silence(response, call.silence)
        response.stream = PlainChat(response, call, call.chat)
        response.headers["content-type"] = "text/event-stream"
        for name in ("content-encoding", "content-length"):
            response.headers.pop(name, None)
    elif "html" in response.headers.get("content-type", ""):
        await response.aread()
        call.failure = NoReplyError("text/html", response.text[:LONGEST_CHARACTERS])
        raise call.failure


class PlainChat(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    """The bytes of an answer as OpenAI itself would send them, whatever its server has sent: so that the library, which
    is strict, reads what it knows. The calls come last, each whole and with a number for its id: what they are is in
    `chat`, and the library finds what is signed."""

    def __init__(self, response: httpx2.Response | httpx.Response, call: _Call, chat: ChatReply) -> None:
        kind: Any = type(response)
        self._sent = kind(
            response.status_code, headers=response.headers, stream=response.stream, request=response.request
        )
        self._call, self._chat = call, chat

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in heard(self._sent, self._chat, self._call.silence):
                yield _chunk(event, plain_delta(event))
        except Exception as error:
            self._call.failure = error
            raise
        if not self._chat.is_whole:
            self._call.failure = IncompleteStreamError(CUT)
            raise self._call.failure
        calls = [
            {
                **draft.beside,
                "index": place,
                "id": f"{CALL}{place}",
                "type": "function",
                "function": {"name": self._chat.assembly.name_of(draft) or "unnamed", "arguments": "{}"},
            }
            for place, draft in enumerate(self._chat.assembly.calls)
        ]
        if calls:
            yield _chunk({}, {"tool_calls": calls})
        yield _chunk({}, {}, "tool_calls" if calls else "stop") + b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        await self._sent.aclose()


def _chunk(event: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    known = {name: event[name] for name in ("model", "provider", "service_tier") if isinstance(event.get(name), str)}
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish_reason}
    about = {"id": id_of(event.get("id")) or "chat", "object": "chat.completion.chunk", "created": 0, "model": ""}
    return b"data: %b\n\n" % json.dumps({**about, **known, "choices": [choice]}).encode()


def plain_delta(event: dict[str, Any]) -> dict[str, Any]:
    """What a chunk says in words and thoughts, of the first answer."""
    choice = next((dict_of(each) for each in list_of(event.get("choices")) if not dict_of(each).get("index")), {})
    said = dict_of(choice.get("delta")) or dict_of(choice.get("message"))
    plain: dict[str, Any] = {name: said[name] for name in FIELDS if text_of(said.get(name))}
    if details := [each for each in list_of(said.get(DETAILS)) if isinstance(each, dict)]:
        plain[DETAILS] = details
    text, thought = said_in_content(said.get("content"))
    if thought and not plain:
        plain["reasoning_content"] = thought
    plain["content"] = text + text_of(said.get("refusal"))
    return plain


async def _next(
    events: AsyncIterator[ModelResponseStreamEvent], silence: float | None
) -> ModelResponseStreamEvent | None:
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
    """Passes the deltas of a stream on: words and thoughts as the library reads them, calls as they come."""

    def __init__(self, on_delta: Callable[[Delta], None], request: ModelRequest, call: _Call) -> None:
        self._assembly = Assembly(on_delta, request)
        self._call = call
        self._drafts: dict[object, Draft] = {}

    def _draft(self, kind: Kind, key: object) -> Draft:
        if key not in self._drafts:
            self._drafts[key] = self._assembly.start(kind, key)
        return self._drafts[key]

    def hear_call(self, delta: Delta) -> None:
        """Of a call that is put together here."""
        if delta.kind == "tool_call":
            draft = self._draft("tool_call", ("call", delta.index))
            draft.call_id, draft.names = delta.tool_call_id, [delta.tool_name]
            self._assembly.add(draft, delta.text)

    def take(self, event: ModelResponseStreamEvent) -> None:
        match event:
            case PartStartEvent(index=index, part=TextPart(content=text)):
                self._assembly.add(self._draft("text", index), text)
            case PartStartEvent(index=index, part=ThinkingPart(content=text)):
                self._assembly.add(self._draft("thinking", index), text)
            case PartStartEvent(index=index, part=ToolCallPart() as call) if self._call.chat is None:
                draft = self._draft("tool_call", index)
                draft.call_id, draft.names = call.tool_call_id, [call.tool_name]
                self._assembly.add_arguments(draft, call.args)
            case PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=text)):
                self._assembly.add(self._draft("text", index), text)
            case PartDeltaEvent(index=index, delta=ThinkingPartDelta(content_delta=text)):
                self._assembly.add(self._draft("thinking", index), text or "")
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=args)) if self._call.chat is None:
                self._assembly.add_arguments(self._draft("tool_call", index), args)
            case _:
                pass  # the end of a part, and what a vendor runs itself


def _reply(request: ModelRequest, response: ModelResponse, notes: list[str]) -> ModelReply:
    return finish(
        put_together(response.parts, request, notes),
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
