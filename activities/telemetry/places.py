"""Spans at a given place: the ids of a reply's span are worked out, and OpenTelemetry is made to use them."""

from contextvars import ContextVar

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from longhaul.agent.plain.ids import SpanPlace

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
