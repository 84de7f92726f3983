"""An attempt and its own session: it asks by query for what its worker does not have, sends the rules of its user, and
writes to its live stream.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from longhaul.activities.contract import (
    CALL_MODEL,
    CHECKPOINT,
    RECEIVED,
    SPEC,
    STREAM_ADDRESS,
    TRANSCRIPT,
    PrepareReply,
    RestoreInput,
    SpecTexts,
    TranscriptPage,
)
from longhaul.activities.masker import MaskedStream, Masker
from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.conversation.messages import ToolResultBlock
from longhaul.agent.values.permission import PermissionRule
from longhaul.stores.blobs.blobs import session_prefix
from longhaul.stores.state.store import DamagedRecord, StoreError, UserRules
from longhaul.stores.streams.publisher import Outlet, Publisher
from longhaul.stores.streams.streams import Streams, StreamsUnavailable, key_of, model_call, tool_call


def key() -> str:
    """The id of the session that this activity works for."""
    workflow_id = activity.info().workflow_id
    if workflow_id is None:
        raise RuntimeError("this activity was started without a session; ours are always started by one")
    return workflow_id


def cache_key() -> str:
    """For `ModelRequest.cache_key`: a provider learns nothing of the session's name."""
    return digest_of(key())[:32]


def blobs_prefix() -> str:
    """What the keys of its blobs begin with."""
    return session_prefix(activity.info().namespace, key())


def handle() -> WorkflowHandle[Any, Any]:
    """Pinned to the run: a query answered by another run could be about another epoch."""
    return activity.client().get_workflow_handle(key(), run_id=activity.info().workflow_run_id)


async def pull_page(epoch: int, start: int) -> TranscriptPage:
    page: TranscriptPage = await handle().query(TRANSCRIPT, args=[epoch, start], result_type=TranscriptPage)
    return page


async def pull_spec() -> SpecTexts:
    spec: SpecTexts = await handle().query(SPEC, result_type=SpecTexts)
    return spec


async def pull_received(call_id: str) -> ToolResultBlock:
    """What was handed in from outside for a call."""
    found: ToolResultBlock = await handle().query(RECEIVED, call_id, result_type=ToolResultBlock)
    return found


class FoundRules(NamedTuple):
    digest: str
    """Empty when there are none."""
    rules: tuple[PermissionRule, ...] | None
    """None: as the session has them."""


NONE = FoundRules("", None)


async def found(book: UserRules | None, user_id: str | None, known_digest: str) -> FoundRules:
    """For a session of this user; an anonymous one has none. Raises ApplicationError: without them nothing may be
    decided, for one of them may deny."""
    if user_id is None or book is None:
        return NONE
    try:
        rules = await book.of(user_id)
    except DamagedRecord as error:
        raise ApplicationError(str(error), type="DamagedRecord", non_retryable=True) from error
    except StoreError as error:
        raise ApplicationError(str(error), type=type(error).__name__) from error
    digest = digest_of([rule.model_dump(mode="json") for rule in rules]) if rules else ""
    return FoundRules("", None) if digest == known_digest else FoundRules(digest, rules)


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
            # The reply that is started with this activity; empty when it begins none.
            match input.args:
                case [PrepareReply() as ask] | [RestoreInput(ahead=PrepareReply() as ask)]:
                    started_with = ask.runtime.reply_id
                case _:
                    started_with = ""
            self._streaming.wake(settled=name == CHECKPOINT, begins=started_with)
        return await super().execute_activity(input)


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
    return key_of(activity.info().namespace, key())
