"""What the streamed calls of all SDKs have in common: time limits, unreadable answers, and the end of a reply."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, TypeVar

import httpx2

from activities.models.assembly import Assembly, Block
from activities.models.failures import IncompleteStreamError, ProviderError
from activities.models.model import ModelReply, ModelRequest
from activities.models.text import scrub
from agent.messages import Usage
from agent.settings import ModelConfig

Event = TypeVar("Event")
Event_co = TypeVar("Event_co", covariant=True)

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 600.0
"""Longest pause between two pieces: a reasoning model may think this long without sending anything."""


def timeout_of(config: ModelConfig) -> httpx2.Timeout:
    """Limits of single waits; the whole call is bounded by `Providers.call`."""
    whole = config.call_timeout_seconds
    return httpx2.Timeout(min(whole, SILENCE_SECONDS), connect=min(whole, CONNECT_SECONDS))


@contextmanager
def readable() -> Iterator[None]:
    """Turn an event that is no JSON, or no text, into a failure of the provider, which is worth another attempt."""
    try:
        yield
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ProviderError(502, "unreadable_answer", "a piece of the answer is no valid JSON") from error


class EventStream(Protocol[Event_co]):
    """What both SDKs' streams are."""

    def __aiter__(self) -> AsyncIterator[Event_co]: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


async def read_all(stream: EventStream[Event], take: Callable[[Event], None]) -> None:
    """Hand each event to `take`, in order, until the stream ends."""
    # Leaving the block closes the connection, also when the call is cancelled in the middle.
    async with stream:
        with readable():
            async for event in stream:
                take(event)


def finish(
    assembly: Assembly, request: ModelRequest, *, model: str, usage: Usage, stop_reason: str, notes: Sequence[str]
) -> ModelReply:
    """The reply, when the stream has told how it stopped; else IncompleteStreamError, since the rest is missing."""
    if not stop_reason:
        raise IncompleteStreamError("The model's provider ended the stream before the reply was complete.")
    taken = {call.id for message in request.messages for call in message.get_tool_calls()}
    content: tuple[Block, ...] = assembly.blocks(taken, lambda number: f"call_{request.call_number}_{number}")
    return ModelReply(content, usage, scrub(model) or request.model, scrub(stop_reason), tuple(dict.fromkeys(notes)))
