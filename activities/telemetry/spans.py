"""Spans of what a worker does: each attempt of an activity, each tool, each model call, and each reply when it has
ended.

The ids of a reply's span are worked out, and OpenTelemetry is made to use them. Words of people, models and tools
are on none unless `LONGHAUL_OTEL_CONTENT=on`, and masked then.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
    use_span,
)
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.masker import Masker
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.telemetry import attempts
from longhaul.activities.telemetry.attempts import ask_of, header_in, is_tool, kind_of, read_along
from longhaul.activities.telemetry.metrics import CountedProviders, named
from longhaul.agent.entries import AnyEntry, CallUnsettled, InputAsked, ReplyFinished, ReplyStarted, ToolReturned
from longhaul.agent.plain.ids import Names, SpanPlace, Started, TraceHeader, names_in, place_of, place_of_reply
from longhaul.agent.reducer.session_state import Finished, SessionState
from longhaul.agent.values.conversation.messages import ContentBlock, ToolResultBlock, ToolResultState
from longhaul.agent.values.conversation.tools import ran_in
from longhaul.agent.values.spec.profiles import ModelProfile

_PINNED: ContextVar[SpanPlace | None] = ContextVar("longhaul_pinned_place", default=None)


class PinnedIds(IdGenerator):
    """Gives the ids of a place that was pinned, and those of another generator while none is."""

    def __init__(self, inner: IdGenerator) -> None:
        self._inner = inner

    def generate_span_id(self) -> int:
        place = _PINNED.get()
        return self._inner.generate_span_id() if place is None else int(place.span, 16)

    def generate_trace_id(self) -> int:
        place = _PINNED.get()
        return self._inner.generate_trace_id() if place is None else int(place.trace, 16)

    def is_trace_id_random(self) -> bool:
        return False


class pinned:  # noqa: N801  used like a function: `with pinned(place):`
    """The next spans that are started have the ids of this place."""

    def __init__(self, place: SpanPlace) -> None:
        self._place = place

    def __enter__(self) -> None:
        self._token = _PINNED.set(self._place)

    def __exit__(self, *_: object) -> None:
        _PINNED.reset(self._token)


def inside(place: SpanPlace, provider: TracerProvider) -> Context:
    """The context in which what is started is a child of this place, sampled or not as its trace is."""
    sampled = place.sampled
    if sampled is None:
        # Nobody has asked for this trace from outside: its root will be asked about by the same rule, with the same id.
        decided = provider.sampler.should_sample(Context(), int(place.trace, 16), "invoke_agent")
        sampled = decided.decision is Decision.RECORD_AND_SAMPLE
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    context = SpanContext(int(place.trace, 16), int(place.span, 16), is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(context), Context())


LONGEST_CHARS = 100_000
"""Of one attribute: an exporter keeps spans in memory until they are sent."""


class Content:
    def __init__(self, masker: Masker, *, wanted: bool) -> None:
        self._masker = masker
        self._wanted = wanted

    def asked(self, span: Span, request: ModelRequest) -> None:
        if self._wanted:
            self._put(span, "gen_ai.system_instructions", [{"type": "text", "content": request.system}])
            self._put(
                span,
                "gen_ai.input.messages",
                [{"role": each.role, "parts": _parts(each.content)} for each in request.messages],
            )

    def answered(self, span: Span, reply: ModelReply) -> None:
        if self._wanted:
            said = {"role": "assistant", "parts": _parts(reply.content), "finish_reason": reply.stop_reason}
            self._put(span, "gen_ai.output.messages", [said])

    def called(self, span: Span, arguments: str | None) -> None:
        if self._wanted and arguments is not None:
            self._put(span, "gen_ai.tool.call.arguments", arguments)

    def returned(self, span: Span, result: ToolResultBlock) -> None:
        if self._wanted:
            self._put(span, "gen_ai.tool.call.result", result.model_dump(mode="json")["output"])

    def _put(self, span: Span, name: str, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        span.set_attribute(name, self._masker.masked(text)[:LONGEST_CHARS].encode("utf-8", "replace").decode())


def _parts(blocks: Sequence[ContentBlock]) -> list[dict[str, Any]]:
    return [block.model_dump(mode="json") for block in blocks]


class WatchedProviders(CountedProviders):
    """Calls models as providers do, counts them where that is wanted, and makes a span of each call."""

    def __init__(
        self,
        tracer: Tracer,
        content: Content,
        environ: Mapping[str, str] = os.environ,
        places: Sequence[KeyPlace] = (),
        counted_to: str = "",
        profiles: Mapping[str, ModelProfile] | None = None,
    ) -> None:
        super().__init__(environ, places, counted_to, profiles)
        self._tracer = tracer
        self._content = content

    async def call(self, full_model_name: str, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        provider, model = named(self.true_name(full_model_name, request.config))
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "longhaul.purpose": request.purpose,
        }
        with self._tracer.start_as_current_span(
            f"chat {model}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            self._content.asked(span, request)
            try:
                reply = await super().call(full_model_name, request, _timed(span, on_delta))
            except Exception as error:
                span.set_attribute("error.type", judge(error).error_type)
                span.set_status(Status(StatusCode.ERROR))
                raise
            tokens = {
                "gen_ai.usage.input_tokens": reply.usage.input_tokens,
                "gen_ai.usage.output_tokens": reply.usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": reply.usage.cache_input_tokens,
                "gen_ai.usage.cache_creation.input_tokens": reply.usage.cache_creation_input_tokens,
            }
            span.set_attributes({"gen_ai.response.model": named(f"scripted:{reply.model}")[1], **tokens})
            if reply.stop_reason:
                span.set_attribute("gen_ai.response.finish_reasons", [reply.stop_reason])
            self._content.answered(span, reply)
            return reply


def _timed(span: Span, on_delta: Callable[[Delta], None]) -> Callable[[Delta], None]:
    began, first = time.perf_counter(), True

    def heard(delta: Delta) -> None:
        nonlocal first
        if first:
            first = False
            span.set_attribute("gen_ai.response.time_to_first_chunk", time.perf_counter() - began)
        on_delta(delta)

    return heard


_NANOSECONDS = 1_000_000
"""In a millisecond."""


class Replies:
    def __init__(self, tracer: Tracer, provider: TracerProvider) -> None:
        self._tracer = tracer
        self._provider = provider

    def tell(self, header: TraceHeader, entries: Sequence[AnyEntry], session: SessionState, names: Names) -> None:
        """A span for each reply that has ended in these entries."""
        times = {entry.reply_id: entry.at for entry in entries if isinstance(entry, ReplyStarted)}
        for entry in entries:
            if (
                isinstance(entry, ReplyFinished)
                and (finished := session.requests.finished.get(entry.reply_id)) is not None
            ):
                started = header.started.get(entry.reply_id, Started())
                self._tell(finished, times.get(entry.reply_id) or started.at or entry.at, started.parent, names)

    def _tell(self, finished: Finished, started: int, parent: str, names: Names) -> None:
        caller = place_of(parent)
        with pinned(place_of_reply(finished.reply_id, parent)):
            span = self._tracer.start_span(
                f"invoke_agent {names.agent}".strip(),
                inside(caller, self._provider) if caller else None,
                SpanKind.INTERNAL,
                {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": names.agent,
                    "gen_ai.conversation.id": names.session,
                    "gen_ai.usage.input_tokens": finished.usage.input_tokens,
                    "gen_ai.usage.output_tokens": finished.usage.output_tokens,
                    "longhaul.reply_id": finished.reply_id,
                    "longhaul.finish_reason": finished.reason.value,
                },
                start_time=started * _NANOSECONDS,
            )
        if finished.error is not None:
            span.set_attribute("error.type", finished.error.type)
            span.set_status(Status(StatusCode.ERROR))
        span.end(finished.at * _NANOSECONDS)


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
        span = self.started(header, activity.info().activity_type)
        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except (Exception, asyncio.CancelledError) as error:
                span.set_attribute("error.type", kind_of(error))
                span.set_status(Status(StatusCode.ERROR))
                raise

    def started(self, header: TraceHeader, name: str, seconds_ago: float = 0) -> Span:
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
        attempts.listen(heard)
        with self._spans.attempt(header) as span:
            if is_tool(activity.info().activity_type):
                ask = ask_of(input)
                span.set_attribute("gen_ai.tool.call.id", str(ask.get("call_id", "")))
                arguments = ask.get("arguments")
                self._spans.content.called(span, arguments if isinstance(arguments, str) else None)
            result = await super().execute_activity(input)
            self._returned(span, result)
        self._read_along(header, result)
        # Behind it all: a checkpoint that failed is tried again, and would tell the same a second time.
        for entries, session in heard.told:
            self._spans.replies.tell(header, entries, session, names_in(activity.info().workflow_id or ""))
        return result

    def _read_along(self, header: TraceHeader, result: Any) -> None:
        """What an answer's calls have read at once, each in a span of its own beside that of its activity."""
        for call, read in read_along(result):
            ran = ran_in(read.result)
            span = self._spans.started(header, call.name, ran.seconds or 0 if ran else 0)
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
        self.told: list[tuple[Sequence[AnyEntry], SessionState]] = []

    def written(self, entries: Sequence[AnyEntry], session: SessionState) -> None:
        self.told.append((entries, session))


SCOPE = "longhaul"


def providers(
    masker: Masker,
    places: Sequence[KeyPlace],
    counted_to: str,
    *,
    content: bool,
    profiles: Mapping[str, ModelProfile] | None = None,
) -> WatchedProviders:
    tracer, shown = _provider().get_tracer(SCOPE), Content(masker, wanted=content)
    return WatchedProviders(tracer, shown, places=places, counted_to=counted_to, profiles=profiles)


def activities(masker: Masker, *, content: bool) -> WatchedActivities:
    provider = _provider()
    return WatchedActivities(provider.get_tracer(SCOPE), provider, Content(masker, wanted=content))


def _provider() -> TracerProvider:
    """Whoever connects has set it up; its ids are to be ours where a reply's span is told."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        raise TypeError("traces are wanted, and this process has no tracer provider: connect first")
    given: IdGenerator = provider.id_generator
    if not isinstance(given, PinnedIds):
        # The SDK says that this is what was given to it, and types it as what it takes by default.
        provider.id_generator = PinnedIds(given)  # type: ignore[assignment]
    return provider
