"""Spans of what a worker does: each attempt of an activity, each tool, and each reply when it has ended."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, use_span
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.attempt import measures
from longhaul.activities.telemetry.attempt_names import ask_of, header_in, is_tool, read_along
from longhaul.activities.telemetry.content import Content
from longhaul.activities.telemetry.failure_class import kind_of
from longhaul.activities.telemetry.places import inside
from longhaul.activities.telemetry.replies import Replies
from longhaul.agent.entries import AnyEntry, CallUnsettled, InputAsked, ToolReturned
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.plain.ids import TraceHeader, names_in, place_of_reply
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.conversation.tools import ran_in


class WatchedActivities(Interceptor):
    def __init__(self, tracer: Tracer, provider: TracerProvider, content: Content) -> None:
        self._spans = Spans(tracer, provider, content)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Watched(next, self._spans)


class Spans:
    """One per worker."""

    def __init__(self, tracer: Tracer, provider: TracerProvider, content: Content) -> None:
        self._tracer = tracer
        self._provider = provider
        self.content = content
        self.replies = Replies(tracer, provider)

    @contextmanager
    def attempt(self, header: TraceHeader) -> Iterator[Span]:
        """The span of the activity that is running, current within. It names an error by its type alone."""
        span = self.begun(header, activity.info().activity_type)
        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except (Exception, asyncio.CancelledError) as error:
                span.set_attribute("error.type", kind_of(error))
                span.set_status(Status(StatusCode.ERROR))
                raise

    def begun(self, header: TraceHeader, name: str, seconds_ago: float = 0) -> Span:
        """`name`: the activity's type, or the tool of a call that was made within it."""
        info = activity.info()
        names = names_in(info.workflow_id or "")
        attributes: dict[str, Any] = {
            "gen_ai.conversation.id": names.session,
            "gen_ai.agent.name": names.agent,
            "longhaul.attempt": info.attempt,
        }
        if header.reply:
            attributes["longhaul.reply_id"] = header.reply
        if is_tool(name):
            attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
            attributes["gen_ai.tool.type"] = "function"
            name = f"execute_tool {name}"
        context = inside(place_of_reply(header.reply, header.parent), self._provider) if header.reply else None
        start = time.time_ns() - round(seconds_ago * 1e9)
        return self._tracer.start_span(name, context, SpanKind.INTERNAL, attributes, start_time=start)


class _Watched(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, spans: Spans) -> None:  # noqa: A002  the SDK's name
        super().__init__(next)
        self._spans = spans

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        header = header_in(input.headers)
        heard = _Heard()
        measures.listen(heard)
        with self._spans.attempt(header) as span:
            if is_tool(activity.info().activity_type):
                self._called(span, input)
            result = await super().execute_activity(input)
            self._returned(span, result)
        self._read_along(header, result)
        # Behind it all: a checkpoint that failed is tried again, and would tell the same a second time.
        for entries, ledger in heard.told:
            self._spans.replies.tell(header, entries, ledger, names_in(activity.info().workflow_id or ""))
        return result

    def _called(self, span: Span, input: ExecuteActivityInput) -> None:  # noqa: A002  the SDK's name
        ask = ask_of(input)
        span.set_attribute("gen_ai.tool.call.id", str(ask.get("call_id", "")))
        arguments = ask.get("arguments")
        self._spans.content.called(span, arguments if isinstance(arguments, str) else None)

    def _read_along(self, header: TraceHeader, result: Any) -> None:
        """What an answer's calls have read at once, each in a span of its own beside that of its activity."""
        for call, read in read_along(result):
            ran = ran_in(read.result)
            span = self._spans.begun(header, call.name, ran.seconds or 0 if ran else 0)
            span.set_attribute("gen_ai.tool.call.id", call.id)
            self._spans.content.called(span, call.input)
            self._returned(span, read)
            span.end()

    def _returned(self, span: Span, result: Any) -> None:
        match result:
            case ToolReturned():
                state = result.result.state
                span.set_attribute("longhaul.tool.state", state.value)
                if state is not ToolResultState.SUCCESS:
                    span.set_attribute("error.type", state.value)
                    span.set_status(Status(StatusCode.ERROR))
                self._spans.content.returned(span, result.result)
            case CallUnsettled():
                span.set_attribute("longhaul.tool.state", "unsettled")
            case InputAsked():
                span.set_attribute("longhaul.tool.state", "asked")
            case _:
                pass


class _Heard:
    def __init__(self) -> None:
        self.told: list[tuple[Sequence[AnyEntry], Ledger]] = []

    def written(self, entries: Sequence[AnyEntry], ledger: Ledger) -> None:
        self.told.append((entries, ledger))
