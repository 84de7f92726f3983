"""Carries trace context through a session: what a request came with, the activities of its reply get.

Nothing is traced here, and nothing is decided by it: headers are no part of what a replay compares, so workers with and
without it can take each other's sessions. A worker has it only where traces are on.
"""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from pydantic import ValidationError
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.worker import (
    ContinueAsNewInput,
    HandleUpdateInput,
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle

from longhaul.activities.contract import CHECKPOINT
from longhaul.agent.plain.ids import HEADER, LONGEST_HEADER_BYTES, Started, TraceHeader, is_traceparent

Given = TypeVar("Given", StartActivityInput, StartLocalActivityInput)

MOST_REPLIES = 600
"""More than a session's queue holds."""


class CarriedTraces(Interceptor):
    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002  the SDK's name
    ) -> type[WorkflowInboundInterceptor] | None:
        del input
        return _Inbound


class Traces:
    """The replies of one session that are not told yet."""

    def __init__(self, started: Mapping[str, Started]) -> None:
        self._started = dict(started)

    def take(self, reply: str, parent: str) -> None:
        """A request was accepted. One that was sent again keeps its first caller."""
        if is_traceparent(parent):
            self._started.setdefault(reply, Started(parent=parent))
        for oldest in list(self._started)[:-MOST_REPLIES]:
            del self._started[oldest]

    def working_for(self, reply: str, now: int) -> TraceHeader:
        """The header of an activity."""
        started = self._started.get(reply, Started())
        if reply and not started.at:
            self._started[reply] = started = started.model_copy(update={"at": now})
        return TraceHeader(reply=reply, parent=started.parent)

    def telling(self, reply: str) -> TraceHeader:
        """The header of a checkpoint, which tells of replies that have ended."""
        return TraceHeader(reply=reply, started={key: each for key, each in self._started.items() if each.at})

    def told(self, header: TraceHeader) -> None:
        """That checkpoint is written: what had ended before it is of no use any more."""
        for reply in header.started:
            if reply != header.reply:
                self._started.pop(reply, None)

    def carried(self) -> TraceHeader:
        return TraceHeader(started=self._started)


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        # The instance is not whole yet, so that `workflow.info` can not be asked.
        headers = outbound.info().headers
        try:
            started = TraceHeader.model_validate_json(_text(headers) or "{}").started
        except ValidationError:
            started = {}
        self._traces = Traces(started)
        super().init(_Outbound(outbound, self._traces))

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:  # noqa: A002  the SDK's name
        answer: Any = await super().handle_update_handler(input)
        if input.update == "submit" and HEADER in input.headers:
            receipt = cast(dict[str, Any], answer)
            self._traces.take(str(receipt.get("reply_id", "")), _text(input.headers))
        return answer


class _Outbound(WorkflowOutboundInterceptor):
    def __init__(self, next: WorkflowOutboundInterceptor, traces: Traces) -> None:  # noqa: A002  the SDK's name
        super().__init__(next)
        self._traces = traces

    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:  # noqa: A002  the SDK's name
        return self._started(input, super().start_activity)

    def start_local_activity(self, input: StartLocalActivityInput) -> ActivityHandle[Any]:  # noqa: A002  the SDK's name
        return self._started(input, super().start_local_activity)

    def _started(self, given: Given, start: Callable[[Given], ActivityHandle[Any]]) -> ActivityHandle[Any]:
        # The reply that is being made; empty in workflows that are no sessions, as a scheduled run of a schedule.
        reply = str(getattr(workflow.instance(), "replying", ""))
        header = self._traces.working_for(reply, workflow.time_ns() // 1_000_000)
        if given.activity != CHECKPOINT:
            given.headers = _with(given.headers, header) if reply else given.headers
            return start(given)
        telling = self._traces.telling(reply)
        given.headers = _with(given.headers, telling)
        handle = start(given)
        handle.add_done_callback(
            lambda done: self._traces.told(telling) if not done.cancelled() and done.exception() is None else None
        )
        return handle

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002  the SDK's name
        input.headers = _with(input.headers, self._traces.carried())
        super().continue_as_new(input)


def _with(headers: Mapping[str, Payload], header: TraceHeader) -> dict[str, Payload]:
    data = header.model_dump_json().encode()
    return {**headers, HEADER: Payload(metadata={"encoding": b"json/plain"}, data=data)}


def _text(headers: Mapping[str, Payload]) -> str:
    payload = headers.get(HEADER)
    data = b"" if payload is None else payload.data
    return data.decode("utf-8", "replace") if len(data) <= LONGEST_HEADER_BYTES else ""
