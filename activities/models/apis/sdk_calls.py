"""The parts that the calls of all SDKs share: requests as bytes, failures while signing in, time limits, unreadable
answers, and the end of a reply.

Requests to a provider as bytes, of which each message is written once: what a step sends grows with what is new.

An SDK would copy the whole conversation and write it down again for each call: of a thousand messages that took three
quarters of a step's processor time.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Protocol, TypedDict

import httpx2

from longhaul.activities.models.failures.error_bodies import LONGEST_BODY_CHARACTERS
from longhaul.activities.models.failures.status_table import (
    STATUS_OF_TYPE,
    IncompleteStreamError,
    NoReplyError,
    ProviderError,
    SetupError,
    ToldError,
)
from longhaul.activities.models.model import ModelReply, ModelRequest, has_failed, scrub, scrub_json, tells_nothing
from longhaul.activities.models.replies import Assembly, Block, is_json
from longhaul.activities.models.requests.turns import call_ids
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.agent_spec import ModelConfig

_LIBRARIES = ("azure.", "botocore.", "google.auth.", "google.oauth2.", "msal.")
_NO_SIGNING_IN = "ParamValidationError"
"""Of botocore: a request that it does not send."""
_NO_SESSION = "Could not resolve"
"""How the SDKs begin the RuntimeErrors that they raise where a library has found no credentials."""
_PASSING = (
    *("TransportError", "ServiceRequestError", "ServiceResponseError", "HTTPClientError", "ConnectionError"),
    "MetadataRetrievalError",
)
"""Of their classes those that say that somebody could not be reached."""
_UNREACHED = 503


@contextmanager
def signing_in() -> Iterator[None]:
    """Around a call: what those libraries raise is told in a sentence; what may pass is tried again."""
    try:
        yield
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        of_libraries = f"{type(error).__module__}.".startswith(_LIBRARIES) and _NO_SIGNING_IN not in names
        if not of_libraries and not (isinstance(error, RuntimeError) and str(error).startswith(_NO_SESSION)):
            raise
        told = f"The worker could not sign in to the model's provider ({names[0]})"
        if getattr(error, "retryable", False) is True or any(name in _PASSING for name in names):
            raise ProviderError(_UNREACHED, "sign_in", f"{told}.") from error
        raise SetupError(
            f"{told}: what it runs as has no credentials there, or they are refused. Give it a role, or name a "
            "variable with a key in the profile's api_key_env."
        ) from error


LONGEST_KEPT = 100_000
"""Bytes of a written item that are kept: a longer one is a picture or the like, which would be in memory twice."""
_OF_THE_SDK = frozenset({"extra_headers", "extra_body"})


class WireItem(dict[str, Any]):
    """A message in a provider's shape. Nothing may change in it: it may be written already."""

    __slots__ = ("text",)

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.text: bytes | None = None
        """As it is written, once it is; None for a long one."""

    def written(self) -> bytes:
        if self.text is not None:
            return self.text
        text = _written(self)
        if len(text) <= LONGEST_KEPT:
            self.text = text
        return text


class PostArguments(TypedDict, total=False):
    """Arguments of an SDK client's `post`."""

    content: bytes
    body: Any
    options: Any


def wire_item(given: dict[str, Any]) -> WireItem:
    """Without lone surrogates, which can't be sent. To write it down is quicker than to look at each string."""
    item = WireItem(given)
    try:
        item.written()
    except UnicodeEncodeError:
        return WireItem(scrub_json(given))
    return item


def sent(arguments: Mapping[str, Any], listed: str, timeout: httpx2.Timeout) -> PostArguments:
    """What an SDK's client posts for these arguments of its method, streamed. `listed`: the field of the messages."""
    written = _written({name: value for name, value in _body(arguments).items() if name != listed})
    # No call for what is written already: of each message of the context this is asked in each step.
    items = b",".join(
        [
            (isinstance(item, WireItem) and item.text)
            or (item.written() if isinstance(item, WireItem) else _written(item))
            for item in arguments[listed]
        ]
    )
    content = b'%b,"%b":[%b]}' % (written[:-1], listed.encode(), items)
    return {"content": content, "options": _options(arguments, timeout)}


def mapped(arguments: Mapping[str, Any], listed: str, timeout: httpx2.Timeout) -> PostArguments:
    """The same for a client that changes the body before it signs it: that copies and writes the whole of it."""
    return {"body": {**_body(arguments), listed: list(arguments[listed])}, "options": _options(arguments, timeout)}


def _body(arguments: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in arguments.items() if name not in _OF_THE_SDK}
    return {**fields, "stream": True, **arguments.get("extra_body", {})}


def _options(arguments: Mapping[str, Any], timeout: httpx2.Timeout) -> dict[str, Any]:
    return {"headers": arguments.get("extra_headers", {}), "timeout": timeout}


def _written(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 600.0
"""Until an answer begins: a long prompt may be read for minutes before."""
SILENCE_SECONDS = 60.0
"""Between two bytes of an answer, where a living server says something more often."""
THINKING_SECONDS = 600.0
"""The same, where a model may think for minutes and nothing is sent meanwhile."""
KEEPS_ALIVE = frozenset({"api.anthropic.com", "api.deepseek.com", "openrouter.ai"})
"""Hosts that send something while a model thinks: Anthropic `ping` events, the others comments. None is in what the
SDKs hand on, so the bytes are timed."""
OPENAI = "api.openai.com"
AFTER_END_SECONDS = 5.0
"""For the counts that follow the end of an answer: a server that forgets to hang up is not waited for longer."""
DRAIN_SECONDS = 0.5
LONGEST_BODY_BYTES = 30_000_000
"""Of an answer that is no stream."""
_STREAM, _OF_AWS = "text/event-stream", "application/vnd.amazon.eventstream"
_LOOKED_AT = 8
_FIELD = re.compile(rb"(?:data|event|id|retry)?:|(?:data|event|id|retry)[\r\n]")
_LINE_END = re.compile(rb"\r\n|\r|\n")
CUT = "The model's provider ended the stream before the reply was complete."


def cache_key_of(request: ModelRequest, host: str) -> dict[str, str]:
    """OpenAI sends requests with one key to the machines that have their beginning in a cache. Other servers may refuse
    the field ("Prompt caching", platform.openai.com)."""
    return {"prompt_cache_key": request.cache_key} if host == OPENAI and request.cache_key else {}


def timeout_of(config: ModelConfig) -> httpx2.Timeout:
    """Limits of single waits until the answer begins; the whole call is bounded by `Providers.call`."""
    whole = config.call_timeout_seconds
    return httpx2.Timeout(min(whole, ANSWER_SECONDS), connect=min(whole, CONNECT_SECONDS))


def silence_of(config: ModelConfig, host: str, *, thinks_unseen: bool) -> float:
    """Seconds without a byte after which a stream from there counts as dead. OpenAI sends nothing while a reasoning
    model thinks, and of servers that are not known it is taken to be so: a call that is cut off too early is cut off at
    each try."""
    if config.silence_seconds is not None:
        return config.silence_seconds
    is_heard_of = host in KEEPS_ALIVE or (host == OPENAI and not thinks_unseen)
    return SILENCE_SECONDS if is_heard_of else THINKING_SECONDS


@contextmanager
def readable() -> Iterator[None]:
    """Turn an event that is no JSON, or no text, into a failure of the provider, which is worth another attempt."""
    try:
        yield
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProviderError(502, "unreadable_answer", "a piece of the answer is no valid JSON") from error


@contextmanager
def _telling_silence(seconds: float) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__name__ == "ReadTimeout" or type(error.__cause__).__name__ == "ReadTimeout":
            raise IncompleteStreamError(
                f"The model's provider fell silent: nothing has come of its answer for {seconds:g} s."
            ) from None
        raise


class Reply(Protocol):
    """What is put together of one answer's events."""

    @property
    def is_over(self) -> bool:
        """Whether the provider's last event has come."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether it has said how the answer ended: what may follow are counts and the last event."""
        ...

    def take(self, event: dict[str, Any]) -> None: ...

    def end(self) -> None:
        """`[DONE]` has come."""

    def events_of(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The events that a whole answer stands for; none for a JSON that is no answer."""
        ...


class Response(Protocol):
    """What the HTTP clients of all SDKs give."""

    @property
    def headers(self) -> Any: ...
    @property
    def request(self) -> Any: ...
    def aiter_bytes(self) -> AsyncIterator[bytes]: ...


class EventStream(Protocol):
    """What both SDKs' streams are."""

    response: httpx2.Response

    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


async def read_all(stream: EventStream, reply: Reply, silence_seconds: float) -> None:
    """Hand each event to `reply`, in order, until its last one. Raises IncompleteStreamError when nothing has come for
    so long: no event, and no sign of life. What else is raised says what the server sent instead."""
    limit_silence(stream.response, silence_seconds)
    # Leaving the block closes the connection, also when the call is cancelled in the middle.
    async with stream:
        if _media_type(stream.response) == _OF_AWS:
            with readable(), _telling_silence(silence_seconds):
                async for event in stream:
                    reply.take(event.to_dict(warnings=False))
            return
        async for _ in heard(stream.response, reply, silence_seconds):
            pass


def limit_silence(response: Response, seconds: float) -> None:
    """The HTTP client looks here at the beginning of the body; a limit for it alone it has none."""
    response.request.extensions["timeout"]["read"] = seconds


async def heard(response: Response, reply: Reply, silence_seconds: float) -> AsyncIterator[dict[str, Any]]:
    """Each event, once `reply` has taken it. An answer that is whole is kept, whatever becomes of the connection."""
    chunks = aiter(response.aiter_bytes())
    with readable(), _telling_silence(silence_seconds):
        head, is_stream = await _beginning(chunks, _media_type(response))
        if not is_stream:
            for told in _events_of_body(await _rest(head, chunks), reply, _media_type(response)):
                reply.take(told)
                yield told
            reply.end()
            return
    event: dict[str, Any] | None
    events = _server_sent(head, chunks)
    with readable(), _telling_silence(silence_seconds):
        while not reply.is_over and (sent := await _next_sent(events, reply)) is not None:
            if sent[1].startswith("[DONE]"):
                reply.end()
                break
            try:
                event = _event_in(*sent)
            except (ToldError, ValueError, RecursionError):
                if reply.is_whole:
                    break
                raise
            if event is not None:
                reply.take(event)
                yield event
    await events.aclose()
    # What stands behind the last event, so that the connection can be used again.
    with suppress(Exception):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in chunks:
                pass


async def _next_sent(events: AsyncIterator[tuple[str, str]], reply: Reply) -> tuple[str, str] | None:
    """None at the end of the stream, and at a whole answer's also where nothing follows, or the connection breaks."""
    if not reply.is_whole:
        return await anext(events, None)
    try:
        async with asyncio.timeout(AFTER_END_SECONDS):
            return await anext(events, None)
    except Exception:  # noqa: BLE001  the answer is there, and would be paid for again
        return None


def _event_in(name: str, data: str) -> dict[str, Any] | None:
    """None for what is no event: one without data, keep-alives, and other JSON. Raises ToldError."""
    if not data.strip():
        return None
    if name == "error" and not is_json(data):
        raise ToldError(data, in_stream=True)
    event = json.loads(data)
    if isinstance(event, dict):
        if name and "type" not in event:
            event["type"] = name
        # The Responses API tells of an error at the top too, and in the response that has failed.
        if event.get("type") == "error" or (event.get("error") and not str(event.get("type")).startswith("response.")):
            raise ToldError(event, in_stream=True)
        return event
    return None


def _events_of_body(body: bytes, reply: Reply, media_type: str) -> list[dict[str, Any]]:
    """Of an answer that is no stream. Raises ToldError, NoReplyError, and IncompleteStreamError for half of one."""
    text = body.decode("utf-8", "replace").strip()
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and text[:1] == "{" and error.pos >= len(text) - 1:
            raise IncompleteStreamError(CUT) from None
        raise NoReplyError(media_type, text[:LONGEST_BODY_CHARACTERS]) from None
    if isinstance(told, dict) and not told.get("error") and (events := reply.events_of(told)):
        return events
    if told and (
        isinstance(told, list) or told.get("error") or told.get("type") == "error" or told.get("object") == "error"
    ):
        raise ToldError(told, in_stream=False)
    raise NoReplyError(media_type, text[:LONGEST_BODY_CHARACTERS])


async def _beginning(chunks: AsyncIterator[bytes], media_type: str) -> tuple[bytes, bool]:
    """The first bytes, and whether they begin a stream of events: a server that says something else of its answer may
    be wrong, and so may one that says that it streams."""
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head.lstrip(b"\xef\xbb\xbf \t\r\n")) >= _LOOKED_AT:
            break
    started = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not started:
        return head, True
    return head, bool(_FIELD.match(started)) or (media_type == _STREAM and started[:1] not in b"{[<")


async def _rest(head: bytes, chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray(head)
    async for chunk in chunks:
        body += chunk
        if len(body) > LONGEST_BODY_BYTES:
            raise ProviderError(502, "unreadable_answer", "the answer is too long to be read")
    return bytes(body)


async def _server_sent(head: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, str]]:
    """Name and data of each event that has data (the HTML standard, "Server-sent events")."""
    name, data = "", list[str]()
    async for line in _lines(head, chunks):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.removeprefix(" ")
    # Of an event without the empty line behind it only a whole one is told.
    if data and ((text := "\n".join(data)).startswith("[DONE]") or is_json(text)):
        yield name, text


async def _lines(head: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    pending: list[bytes] = []
    after_return, first = False, True
    chunk: bytes | None = head
    while chunk is not None:
        if after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            after_return = False
        *ended, rest = _LINE_END.split(chunk)
        for line in ended:
            text = b"".join((*pending, line)).decode()
            pending.clear()
            yield text.removeprefix("\ufeff") if first else text
            first = False
        if rest:
            pending.append(rest)
        after_return = after_return or chunk.endswith(b"\r")
        chunk = await anext(chunks, None)
    if pending:
        with suppress(UnicodeDecodeError):  # cut in the middle of a character
            yield b"".join(pending).decode()


def _media_type(response: Response) -> str:
    return str(response.headers.get("content-type") or "").partition(";")[0].strip().lower()


def finish(  # noqa: PLR0913  one for each thing that a reply is made of
    assembly: Assembly,
    request: ModelRequest,
    *,
    model: str,
    usage: Usage,
    stop_reason: str,
    notes: Sequence[str],
    is_whole: bool = False,
) -> ModelReply:
    """The reply, when the stream has told how it stopped, or by its last event that it did (`is_whole`); else
    IncompleteStreamError, since the rest is missing."""
    if has_failed(stop_reason):
        raise ProviderError(STATUS_OF_TYPE["server_error"], "server_error", f"the server stopped: {stop_reason}")
    if tells_nothing(stop_reason) and not is_whole:
        raise IncompleteStreamError(CUT)
    content: tuple[Block, ...] = assembly.blocks(
        call_ids(request.messages), lambda number: f"call_{request.call_number}_{number}"
    )
    return ModelReply(content, usage, scrub(model) or request.model, scrub(stop_reason), tuple(dict.fromkeys(notes)))
