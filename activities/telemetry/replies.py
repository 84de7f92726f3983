"""The span of a reply, `invoke_agent NAME`: told by the checkpoint that writes down how the reply has ended."""

from collections.abc import Sequence

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from longhaul.activities.telemetry.places import inside, pinned
from longhaul.agent.entries import AnyEntry, ReplyFinished, ReplyStarted
from longhaul.agent.fold.ledger import Finished, Ledger
from longhaul.agent.plain.ids import Begun, Names, TraceHeader, place_of, place_of_reply

_NANOSECONDS = 1_000_000
"""In a millisecond."""


class Replies:
    def __init__(self, tracer: Tracer, provider: TracerProvider) -> None:
        self._tracer = tracer
        self._provider = provider

    def tell(self, header: TraceHeader, entries: Sequence[AnyEntry], ledger: Ledger, names: Names) -> None:
        """A span for each reply that has ended in these entries."""
        started = {entry.reply_id: entry.at for entry in entries if isinstance(entry, ReplyStarted)}
        for entry in entries:
            if (
                isinstance(entry, ReplyFinished)
                and (finished := ledger.requests.finished.get(entry.reply_id)) is not None
            ):
                begun = header.begun.get(entry.reply_id, Begun())
                self._tell(finished, started.get(entry.reply_id) or begun.at or entry.at, begun.parent, names)

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
