"""A session as spans of time, for a picture of its run: replies, model calls, tool calls, waits, sleeps, pauses and
sub-agents, and the moments between them: retries, shutdowns, restores, compressions.

A view for readers, made from the recorded entries alone, from any entry on.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from longhaul.agent import entries as e
from longhaul.agent.plain.text import gist
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.budget import UNKNOWN_TARIFF, Tariff
from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolResultBlock, ToolResultState
from longhaul.agent.values.conversation.tools import Effect, ran_in

SpanKind = Literal[
    "reply", "model", "tool", "person", "outside", "sleep", "pause", "sub-agent",
    "retry", "shutdown", "restore", "compression", "failure", "resolve",
]  # fmt: skip


_WAITING: dict[str, SpanKind] = {"ask": "person", "external": "outside"}
"""By what permission said of a call."""


class Span(OpenValue):
    """Something that took time, or a moment: then it begins where it ends. Times are milliseconds since 1970."""

    kind: SpanKind
    seq: int
    """Of the entry that ended it, or began it while it lasts."""
    start: int
    end: int | None
    """None: it lasts."""
    name: str = sparse("")
    """The tool, the model or the agent."""
    says: str = sparse("")
    """What a call is about, why something waits or failed, or who decided."""
    effect: Effect | None = sparse(None)
    """Of a tool call that a worker ran."""
    state: str = sparse("")
    """Of a tool call: success, error, denied, interrupted, unknown."""
    call_id: str = sparse("")
    session_id: str = sparse("")
    """Of a sub-agent: its own."""
    input_tokens: int = sparse(0)
    cached_tokens: int = sparse(0)
    """These are among the input's."""
    output_tokens: int = sparse(0)
    nanos: int = sparse(0)
    """Of a model call, in billionths of a dollar, where a budget of money makes workers know its price."""


def run_spans(entries: Iterable[e.AnyEntry]) -> list[Span]:
    """In the order in which they ended; what lasts is last. Of what began before the first entry nothing is known."""
    spans = RunSpans()
    for entry in entries:
        spans.take(entry)
    return spans.whole()


@dataclass
class RunSpans:
    """Takes entries one by one."""

    ended: list[Span] = field(default_factory=list[Span])
    _open: dict[str, Span] = field(default_factory=dict[str, Span])
    """By what ends it."""
    _calls: dict[str, ToolCallBlock] = field(default_factory=dict[str, ToolCallBlock])
    _tariffs: dict[str, Tariff] = field(default_factory=dict[str, Tariff])
    _before: int = 0
    """When the entry before was recorded: a model call began then."""

    def take(self, entry: e.AnyEntry) -> None:
        match entry:
            case e.Prepared():
                self._tariffs |= entry.tariffs
            case e.ReplyStarted():
                self._begin("reply", "reply", entry)
            case e.ReplyFinished():
                self._end("reply", entry, says=entry.error.message if entry.error else entry.reason.value)
                for result in entry.closing:
                    self._returned(entry, result)
            case e.ModelSaid():
                self._model_span(entry)
            case e.ToolReturned():
                self._returned(entry, entry.result)
            case e.ChildStarted(child=child):
                span = self._begin("sub-agent", f"child:{child.call_id}", entry, child.call_id, name=child.agent)
                self._open[f"child:{child.call_id}"] = span.model_copy(update={"session_id": child.session_id})
            case e.ChildEnded():
                self._end(f"child:{entry.call_id}", entry)
            case _:
                self._wait(entry)
                self._happened(entry)
        self._before = entry.at

    def _wait(self, entry: e.AnyEntry) -> None:
        match entry:
            case e.CallsJudged():
                for ruling in filter(lambda one: one.behavior in _WAITING, entry.rulings):
                    kind = _WAITING[ruling.behavior]
                    self._begin(kind, f"wait:{ruling.call_id}", entry, ruling.call_id, ruling.reason)
            case e.HumanDecided():
                for one in entry.decisions:
                    word = "allowed" if one.allow else "denied"
                    self._end(f"wait:{one.call_id}", entry, says=f"{word} by {entry.approver or 'somebody'}")
            case e.DeadlineReached():
                for due in filter(lambda one: one.closes, entry.due):
                    self._end(f"wait:{due.call_id}", entry, says="nobody answered in time")
            case e.SleepStarted():
                self._begin("sleep", f"sleep:{entry.call_id}", entry, entry.call_id, entry.event)
            case e.PauseStarted():
                self._begin("pause", "pause", entry, says=entry.why, name=entry.by)
            case e.PauseEnded():
                self._end("pause", entry)
            case _:
                pass

    def _happened(self, entry: e.AnyEntry) -> None:
        match entry:
            case e.ModelFailed():
                self._moment("failure", entry, entry.model, entry.error.message)
            case e.WorkerLeft():
                self._moment("shutdown", entry, entry.worker, entry.doing)
            case e.WorkerLacks():
                self._moment("retry", entry, entry.doing, entry.why)
            case e.CallUnsettled():
                self._moment("retry", entry, self._name(entry.call_id), entry.reason)
            case e.Restored() if entry.source != "nothing":
                self._moment("restore", entry, entry.source, entry.note or entry.quarantine)
            case e.ContextCompressed():
                self._moment("compression", entry, entry.condenser)
            case e.OutcomeResolved():
                word = "it happened" if entry.happened else "it did not happen"
                self._moment("resolve", entry, self._name(entry.call_id), f"{word}, says {entry.by or 'somebody'}")
            case _:
                pass

    def whole(self) -> list[Span]:
        return [*self.ended, *self._open.values()]

    def _model_span(self, entry: e.ModelSaid) -> None:
        usage = entry.message.usage
        tariff = self._tariffs.get(entry.asked or entry.model, UNKNOWN_TARIFF)
        if entry.lost_attempts:
            self._moment("retry", entry, entry.model, f"{entry.lost_attempts} earlier attempts were lost")
        span = Span(kind="model", seq=entry.seq, start=self._before or entry.at, end=entry.at, name=entry.model)
        if usage is not None:
            tokens = {
                "input_tokens": usage.input_tokens,
                "cached_tokens": usage.cache_input_tokens,
                "output_tokens": usage.output_tokens,
                "nanos": tariff.of(usage).nanos,
            }
            span = span.model_copy(update=tokens)
        self.ended.append(span)
        for block in entry.message.content:
            if isinstance(block, ToolCallBlock):
                self._calls[block.id] = block

    def _returned(self, entry: e.Entry, result: ToolResultBlock) -> None:
        self._end(f"wait:{result.id}", entry)
        self._end(f"sleep:{result.id}", entry)
        ran, call = ran_in(result), self._calls.pop(result.id, None)
        took = round((ran.seconds or 0) * 1000) if ran else 0
        self.ended.append(
            Span(
                kind="tool",
                seq=entry.seq,
                start=entry.at - took,
                end=entry.at,
                name=result.name,
                says=gist(call.input) if call else "",
                effect=ran.effect if ran else None,
                state=ToolResultState(result.state).value,
                call_id=result.id,
            )
        )

    def _name(self, call_id: str) -> str:
        return self._calls[call_id].name if call_id in self._calls else ""

    def _begin(
        self, kind: SpanKind, key: str, entry: e.Entry, call_id: str = "", says: str = "", name: str = ""
    ) -> Span:
        """What is asked again waits since the first time."""
        name = name or self._name(call_id)
        span = Span(kind=kind, seq=entry.seq, start=entry.at, end=None, name=name, says=says, call_id=call_id)
        return self._open.setdefault(key, span)

    def _end(self, key: str, entry: e.Entry, says: str = "") -> None:
        if (span := self._open.pop(key, None)) is not None:
            update = {"end": entry.at, "seq": entry.seq, "says": says or span.says}
            self.ended.append(span.model_copy(update=update))

    def _moment(self, kind: SpanKind, entry: e.Entry, name: str = "", says: str = "") -> None:
        self.ended.append(Span(kind=kind, seq=entry.seq, start=entry.at, end=entry.at, name=name, says=says))
