"""Models of many vendors through pydantic-ai, whose classes know each vendor's API, and what its models want.

The loop, the retries and the record are ours: the library makes one request, and reads one stream.

The clients of the vendors' SDKs, as pydantic-ai takes them: they retry nothing, and add nothing from the environment
but, where a cloud is signed in to by identity, what the worker runs as.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast

import httpx
import httpx2
import openai
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
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from longhaul.activities.models.apis.answer_bytes import bound
from longhaul.activities.models.apis.chat_thoughts import DETAILS, FIELDS, TaggedThought
from longhaul.activities.models.apis.openai_chat import ChatReply, said_in_content
from longhaul.activities.models.apis.sdk_calls import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    CUT,
    finish,
    heard,
    limit_silence,
    signing_in,
    silence_of,
    timeout_of,
)
from longhaul.activities.models.apis.vendor_messages import CALL, messages_of, put_together
from longhaul.activities.models.apis.vendors import OPENAI, VENDORS, Hosted, Sdk, Vendor, left_out, vendor_of
from longhaul.activities.models.failures.error_bodies import LONGEST_BODY_CHARACTERS, for_a_person
from longhaul.activities.models.failures.status_table import (
    IncompleteStreamError,
    NoReplyError,
    ProviderError,
    SetupError,
)
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest, is_known, scrub_json
from longhaul.activities.models.replies import Assembly, Draft, Kind, dict_of, id_of, list_of, text_of
from longhaul.activities.models.requests.answer_form import NOT_FORCED, forbidden_last, forced_or_in_words, in_words
from longhaul.activities.models.requests.model_parameters import effort_of, is_claude, limit_of_output, refuses_sampling
from longhaul.activities.models.requests.tool_definitions import wire_name, with_plain_parts
from longhaul.activities.models.requests.turns import answer_schema, wire_schema
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.tool_index import as_said


def http_client(vendor: Vendor, hooks: Mapping[str, Sequence[Any]]) -> Any:
    """Each SDK wants a client of its own kind, those of OpenAI and Groq with their own defaults."""
    events = {name: list(each) for name, each in hooks.items()}
    if vendor.sdk == "openai":
        return openai.DefaultAsyncHttpxClient(event_hooks=events)
    if vendor.sdk == "groq":
        import groq  # noqa: PLC0415

        return groq.DefaultAsyncHttpxClient(event_hooks=events)
    library: Any = httpx if vendor.sdk == "cohere" else httpx2
    limits = library.Limits(max_connections=1_000, max_keepalive_connections=100)
    timeout = library.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
    return library.AsyncClient(timeout=timeout, limits=limits, event_hooks=events)


def provider_of(name: str, vendor: Vendor, api_key: str | None, at: Hosted, http: Any) -> Provider[Any]:
    """`api_key`: None where the worker signs in as what it runs as."""
    kind: Callable[..., Provider[Any]] = infer_provider_class(vendor.library_name or name)
    if vendor.sdk == "bedrock":
        from longhaul.activities.models.apis.bedrock_client import bedrock_client  # noqa: PLC0415  boto3 is large

        return kind(bedrock_client=bedrock_client(api_key, at.base_url, at.region))
    if vendor.library_name == "google-cloud":
        from google.oauth2.credentials import Credentials  # noqa: PLC0415

        bearing: Any = None if api_key is None else Credentials(token=api_key)  # type: ignore[no-untyped-call]
        return kind(credentials=bearing, project=at.project, location=at.region, base_url=at.base_url, http_client=http)
    key, base_url = api_key or "", at.base_url
    if vendor.sdk == "openai":
        headers = left_out(openai.Omit(), key, *OPENAI)
        return kind(
            openai_client=openai.AsyncOpenAI(
                api_key=key, base_url=base_url, max_retries=0, default_headers=headers, http_client=http
            )
        )
    if vendor.sdk == "groq":
        import groq  # noqa: PLC0415  the library of one vendor

        headers = left_out(groq.Omit(), key, "GROQ_CUSTOM_HEADERS")
        return kind(
            groq_client=groq.AsyncGroq(
                api_key=key, base_url=base_url, max_retries=0, default_headers=headers, http_client=http
            )
        )
    if vendor.sdk == "cohere":
        import cohere  # noqa: PLC0415

        return kind(cohere_client=cohere.AsyncClientV2(key, base_url=base_url, max_retries=0, httpx_client=http))
    return kind(api_key=key, base_url=base_url, http_client=http)


_BEDROCK = "bedrock"
"""The library's word for Converse."""
_NAMES: Mapping[str, str] = {
    "temperature": "The temperature",
    "top_p": "The field top_p",
    "seed": "The seed",
    "stop_sequences": "The list of stop words",
    "extra_headers": "The profile's list of headers",
    "extra_body": "The profile's extra_body",
    "thinking": "The effort",
}


def tools_of(model: VendorsModel, request: ModelRequest) -> ModelRequestParameters:
    tools = [_tool(tool.name, tool.description, with_plain_parts(wire_schema(tool))) for tool in request.tools]
    if (answer := request.answer) is not None:
        tools.append(_tool(wire_name(answer.name), answer.description, with_plain_parts(answer_schema(answer))))
    if not tools and model.system == _BEDROCK:
        # Converse refuses calls in a conversation to which no tool is offered.
        called = (wire_name(as_said(call).name) for message in request.messages for call in message.get_tool_calls())
        tools = [_tool(name, "", {"type": "object"}) for name in dict.fromkeys(called)]
    return ModelRequestParameters(function_tools=tools)


def _tool(name: str, description: str, schema: dict[str, Any]) -> ToolDefinition:
    """Not strict: then some vendors would want each argument of it to be required."""
    return ToolDefinition(name=name, parameters_json_schema=schema, description=description or None, strict=False)


def settings_of(model: VendorsModel, request: ModelRequest, notes: list[str]) -> ModelSettings:
    """What this model takes of what was wished for; `notes` say what it does not."""
    thinks = bool(model.profile.get("supports_thinking", False))
    wished = _wishes(model.model_name, request, notes)
    if model.system == _BEDROCK:
        _as_converse_has_it(wished, notes)
    refused = _refused(model) | (frozenset() if thinks else {"thinking"})
    if wished.get("thinking") and model.profile.get("bedrock_thinking_variant") == "anthropic":
        refused |= {"temperature", "top_p"}
    notes += [f"{_NAMES[name]} was left out: this model takes none." for name in wished if name in refused]
    timeout = timeout_of(request.config)
    takes_parts = model.provider is not None and isinstance(model.provider.client, openai.AsyncOpenAI)
    sent: dict[str, Any] = {name: value for name, value in wished.items() if name not in refused}
    sent["max_tokens"] = limit_of_output(request, thinks=thinks, notes=notes)
    if "max_retries" not in model.unsupported_settings:
        sent["max_retries"] = 0
    if "timeout" not in model.unsupported_settings:  # else the client has one
        sent["timeout"] = timeout if takes_parts else timeout.read
    caches = is_claude(model.model_name) or model.profile.get("bedrock_supports_prompt_caching", False)
    if caches and request.reads_cache:
        sent["cache"] = True  # the library sets marks, where its vendor passes them on
    if request.answer is not None:
        sent["tool_choice"] = [wire_name(request.answer.name)]
    elif (request.no_calls and request.tools) or (model.system == _BEDROCK and not request.tools):
        sent["tool_choice"] = "none"
    elif request.must_call:
        sent["tool_choice"] = [request.must_call]
    return cast("ModelSettings", sent)


def _refused(model: VendorsModel) -> frozenset[str]:
    """Settings that the library would leave out in silence, or with a warning that nobody reads."""
    of_profile = model.profile.get("openai_unsupported_model_settings", ())
    name = model.model_name
    named = [model.profile.get(f"{maker}_disallows_sampling_settings", False) for maker in ("anthropic", _BEDROCK)]
    fixed = {"temperature", "top_p"} if any(named) or refuses_sampling(name, thinks=True) else set[str]()
    return (
        frozenset(model.unsupported_settings)
        | fixed
        | frozenset(name for name in (of_profile if isinstance(of_profile, tuple | list | frozenset) else ()))
    )


def forces(model: VendorsModel) -> bool:
    """Whether it can be told which tool it has to call."""
    at_bedrock = model.system != _BEDROCK or model.profile.get("bedrock_supports_tool_choice", False)
    return bool(at_bedrock and model.profile.get("supports_forced_tool_choice", True))


def _as_converse_has_it(wished: dict[str, Any], notes: list[str]) -> None:
    """Bedrock's Converse API takes further fields in one of its own, and no temperature above 1
    (docs.aws.amazon.com, "InferenceConfiguration")."""
    if "extra_body" in wished:
        wished["bedrock_additional_model_requests_fields"] = wished.pop("extra_body")
    if wished.get("temperature", 0) > 1:
        notes.append("Bedrock takes no temperature above 1: it is asked for 1.")
        wished["temperature"] = 1.0


def _wishes(name: str, request: ModelRequest, notes: list[str]) -> dict[str, Any]:
    config, profile = request.config, request.profile
    thinking: bool | str | None = effort_of(name, config.reasoning_effort, notes)
    if thinking == "none":
        thinking = False
    if config.thinking_budget_tokens is not None:
        notes.append("The thinking budget was left out: here an effort says how much a model thinks.")
        thinking = True if thinking is None else thinking
    wished: dict[str, Any] = {"temperature": config.temperature, "thinking": thinking}
    if profile is not None:
        wished |= {
            "top_p": profile.top_p,
            "seed": profile.seed,
            "stop_sequences": list(profile.stop) or None,
            "extra_headers": dict(profile.headers) or None,
            "extra_body": scrub_json(profile.extra_body) or None,
        }
    refused = {_OF_LIBRARY.get(each, each) for each in request.refused}
    return {name: value for name, value in wished.items() if value is not None and name not in refused}


_OF_LIBRARY: Mapping[str, str] = {"effort": "thinking", "stop": "stop_sequences"}
"""Of what a provider has refused, by its name in the library."""
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
    """Raises the library's errors and `activities.models.failures.status_table`; nothing is retried here."""

    def __init__(self, provider_name: str, api_key: str | None, at: Hosted) -> None:
        """`api_key`: None where the worker signs in to a cloud as what it runs as."""
        self._name = vendor_of(provider_name)
        self._vendor = VENDORS[self._name]
        self._http: Any = http_client(self._vendor, {"response": [bound, _on_answer]})
        self._provider = provider_of(self._name, self._vendor, api_key, at, self._http)

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        if self._vendor.sdk == "mistral" or is_claude(request.model):
            return await forbidden_last(request, self._asked, on_delta)
        return await self._asked(request, on_delta)

    async def _asked(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
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
        call = _Call(silence, thought_field=_thought_field(model, self._vendor))
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


def _thought_field(model: VendorsModel, vendor: Vendor) -> str:
    if vendor.sdk == "mistral":
        return ""
    named = model.profile.get("openai_chat_thinking_field")
    return named if isinstance(named, str) else FIELDS[vendor.sdk == "groq"]


@dataclass(slots=True)
class _Call:
    """What is known of one call beside the library."""

    silence: float
    opened: list[httpx2.Response | httpx.Response] = field(default_factory=list)
    chat: ChatReply | None = None
    failure: Exception | None = None
    thought_field: str = FIELDS[0]
    """Of a delta, where the library looks for a thought; empty: in parts of the content alone."""


async def _on_answer(response: httpx2.Response | httpx.Response) -> None:
    call = _CALL.get()
    if call is None:
        return
    call.opened.append(response)
    if not response.is_success:
        return
    if call.chat is not None:
        limit_silence(response, call.silence)
        response.stream = RewrittenChat(response, call, call.chat)
        response.headers["content-type"] = "text/event-stream"
        for name in ("content-encoding", "content-length"):
            response.headers.pop(name, None)
    elif "html" in response.headers.get("content-type", ""):
        await response.aread()
        call.failure = NoReplyError("text/html", response.text[:LONGEST_BODY_CHARACTERS])
        raise call.failure


class RewrittenChat(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    """The bytes of an answer as OpenAI itself would send them, whatever its server has sent: so that the library, which
    is strict, reads what it knows. The calls come last, each whole and with a number for its id: what they are is in
    `chat`, and the library finds what is signed."""

    def __init__(self, response: httpx2.Response | httpx.Response, call: _Call, chat: ChatReply) -> None:
        kind: Any = type(response)
        self._sent = kind(
            response.status_code, headers=response.headers, stream=response.stream, request=response.request
        )
        self._call, self._chat = call, chat
        self._tagged = TaggedThought()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in heard(self._sent, self._chat, self._call.silence):
                yield _chunk(event, self._without_tags(plain_delta(event)))
        except Exception as error:
            self._call.failure = error
            raise
        if not self._chat.is_whole:
            self._call.failure = IncompleteStreamError(CUT)
            raise self._call.failure
        if any(rest := self._tagged.rest()):
            yield _chunk({}, {self._call.thought_field: rest[0], "content": rest[1]})
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

    def _without_tags(self, delta: dict[str, Any]) -> dict[str, Any]:
        """With a thought in tags as a thought: the library would take it for words."""
        if not self._call.thought_field:
            return delta
        if any(name in delta for name in (*FIELDS, DETAILS)):
            self._tagged.is_over = self._tagged.is_over or not self._tagged.tag
        thought, words = self._tagged.split(delta["content"])
        return {**delta, "content": words, **({self._call.thought_field: thought} if thought else {})}

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
    # The library counts cached tokens in, as we do.
    reasoning = next((response.usage.details[name] for name in _REASONING if name in response.usage.details), 0)
    read = response.usage.input_tokens
    usage = Usage(
        input_tokens=read,
        output_tokens=response.usage.output_tokens,
        cache_input_tokens=min(response.usage.cache_read_tokens, read),
        cache_creation_input_tokens=min(response.usage.cache_write_tokens, read),
        cache_creation_1h_input_tokens=min(
            response.usage.cache_write_1h_tokens, response.usage.cache_write_tokens, read
        ),
        reasoning_tokens=min(reasoning, response.usage.output_tokens),
    )
    return finish(
        put_together(response.parts, request, notes),
        request,
        model=response.model_name or "",
        usage=usage,
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
