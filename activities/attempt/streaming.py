"""The live stream of the session that an activity works for: what it is told there, and who hears of the address."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from longhaul.activities.attempt import own_session
from longhaul.activities.contract import CALL_MODEL, CHECKPOINT, STREAM_ADDRESS, PrepareReply, RestoreInput
from longhaul.activities.masking.masker import Masker
from longhaul.activities.masking.stream import MaskedStream
from longhaul.stores.streams.publisher import Outlet, Publisher
from longhaul.stores.streams.streams import Streams, StreamsUnavailable, key_of, model_call, tool_call

log = logging.getLogger(__name__)


class Streaming:
    """Opens an outlet for the attempt that is running."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def model_call(self, number: int, model: str) -> Outlet:
        """`number` model calls of the session were answered before."""
        return self._open(model_call(number), model)

    def tool_call(self, call_id: str, tool: str) -> Outlet:
        return self._open(tool_call(call_id), tool)

    def wake(self, *, settled: bool, begins: str = "") -> None:
        self._publisher.wake(_key(), settled=settled, begins=begins)

    def _open(self, call: str, name: str) -> Outlet:
        info = activity.info()
        turn = int(info.scheduled_time.timestamp() * 1_000_000)
        return self._publisher.open(_key(), call, turn=turn, attempt=info.attempt, name=name)


class Waking(Interceptor):
    """Wakes readers when an activity begins that has no pieces to do so: what led to it is recorded by then. And lets
    sessions tell where their stream is, for queries alone: no decision may depend on the worker that makes it."""

    def __init__(self, streaming: Streaming, address: str) -> None:
        self.streaming = streaming
        self._address = address

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _WakingFirst(next, self.streaming)

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002  the SDK's name
    ) -> type[WorkflowInboundInterceptor] | None:
        functions = cast(dict[str, Any], input.unsafe_extern_functions)
        functions[STREAM_ADDRESS] = lambda: self._address
        return None


class _WakingFirst(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, streaming: Streaming) -> None:  # noqa: A002  the SDK's name
        super().__init__(next)
        self._streaming = streaming

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        name = activity.info().activity_type
        if name != CALL_MODEL and "." in name:
            self._streaming.wake(settled=name == CHECKPOINT, begins=_begun_with(input.args))
        return await super().execute_activity(input)


def _begun_with(inputs: Sequence[Any]) -> str:
    """The reply that is begun with this activity; empty when it begins none."""
    match inputs:
        case [PrepareReply() as ask] | [RestoreInput(ahead=PrepareReply() as ask)]:
            return ask.runtime.reply_id
        case _:
            return ""


def address_of(streams: Streams) -> str:
    """Where clients find the streams; empty where there is no place for them, and sessions do without."""
    try:
        return streams.address
    except StreamsUnavailable as error:
        log.warning("no live streams: %s", error)
        return ""


@asynccontextmanager
async def waking_through(streams: Streams, masker: Masker) -> AsyncIterator[Waking]:
    """A worker's end of the streams, which are closed with it. Each block of text is masked by itself."""
    publisher = Publisher(streams, lambda: MaskedStream(masker))
    try:
        yield Waking(Streaming(publisher), address_of(streams))
    finally:
        await publisher.close()
        await streams.close()


def _key() -> str:
    return key_of(activity.info().namespace, own_session.key())
