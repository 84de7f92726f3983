"""Code that the streamed calls of all SDKs share: time limits, unreadable answers, and the end of a reply."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, TypeVar

import httpx2

from longhaul.activities.models.failures.errors import IncompleteStreamError, ProviderError
from longhaul.activities.models.failures.status_table import STATUS_OF_TYPE
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.replies.assembly import Assembly, Block
from longhaul.activities.models.replies.stop_reason_table import has_failed, tells_nothing
from longhaul.activities.models.requests.arrangement import call_ids
from longhaul.activities.models.requests.text import scrub
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.agent_spec import ModelConfig

Event = TypeVar("Event")
Event_co = TypeVar("Event_co", covariant=True)

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
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ProviderError(502, "unreadable_answer", "a piece of the answer is no valid JSON") from error


@contextmanager
def _telling_silence(seconds: float) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, httpx2.ReadTimeout) or isinstance(error.__cause__, httpx2.ReadTimeout):
            raise IncompleteStreamError(
                f"The model's provider fell silent: nothing has come of its answer for {seconds:g} s."
            ) from None
        raise


class EventStream(Protocol[Event_co]):
    """What both SDKs' streams are."""

    response: httpx2.Response

    def __aiter__(self) -> AsyncIterator[Event_co]: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


async def read_all(stream: EventStream[Event], take: Callable[[Event], None], silence_seconds: float) -> None:
    """Hand each event to `take`, in order, until the stream ends. Raises IncompleteStreamError when nothing has come
    for so long: no event, and no sign of life that the SDK keeps to itself."""
    # The HTTP client looks here at the beginning of the body; a limit for it alone it has none.
    stream.response.request.extensions["timeout"]["read"] = silence_seconds
    # Leaving the block closes the connection, also when the call is cancelled in the middle.
    async with stream:
        with readable(), _telling_silence(silence_seconds):
            async for event in stream:
                take(event)


def finish(
    assembly: Assembly, request: ModelRequest, *, model: str, usage: Usage, stop_reason: str, notes: Sequence[str]
) -> ModelReply:
    """The reply, when the stream has told how it stopped; else IncompleteStreamError, since the rest is missing."""
    if has_failed(stop_reason):
        raise ProviderError(STATUS_OF_TYPE["server_error"], "server_error", f"the server stopped: {stop_reason}")
    if tells_nothing(stop_reason):
        raise IncompleteStreamError("The model's provider ended the stream before the reply was complete.")
    content: tuple[Block, ...] = assembly.blocks(
        call_ids(request.messages), lambda number: f"call_{request.call_number}_{number}"
    )
    return ModelReply(content, usage, scrub(model) or request.model, scrub(stop_reason), tuple(dict.fromkeys(notes)))
