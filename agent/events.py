"""Durable events: what a client is told, as a pure function of the recorded entries.

The types are the seed's (agentscope/event). `seq` counts from 1 without gaps; the same log gives the same
events with the same numbers, on any worker and after any roll-over.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agent import entries as e
from agent.custom_events import changes, custom
from agent.event import AgentEvent, EventsSoFar, EventType
from agent.messages import (
    FinishedReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolCallState,
    ToolResultBlock,
    ToolResultState,
)
from agent.results import denied_by_permission, denied_by_person, expired, not_a_call
from agent.seen import asked
from agent.times import iso


class EventFold:
    """Folds a growing log into events, each entry once."""

    def __init__(self, before: EventsSoFar | None = None) -> None:
        before = before or EventsSoFar()
        self.events: list[AgentEvent] = []
        """Those of the log; the first has the number `before.count + 1`."""
        self.before = before
        self._read = 0
        self._agent = before.agent
        self._reply_id = before.reply_id
        self._calls = dict(before.calls)
        self._started = dict.fromkeys(before.started)
        self._told = dict(before.told)

    def catch_up(self, log: Sequence[e.AnyEntry]) -> list[AgentEvent]:
        """All events of `log`, which begins with the entries that were folded before."""
        for entry in log[self._read :]:
            for event in self._of(entry):
                number = self.before.count + len(self.events) + 1
                numbered = {"seq": number, "created_at": iso(entry.at), "reply_id": event.reply_id or self._reply_id}
                self.events.append(event.model_copy(update=numbered))
        self._read = len(log)
        return self.events

    def pass_over(self, log: Sequence[e.AnyEntry]) -> EventsSoFar:
        """What another fold needs to go on behind `log`, of whose events nobody will ask this one."""
        count = sum(1 for entry in log for _ in self._of(entry))
        return EventsSoFar(
            count=self.before.count + count,
            agent=self._agent,
            reply_id=self._reply_id,
            calls=self._calls,
            started=tuple(self._started),
            told=self._told,
        )

    def _of(self, entry: e.AnyEntry) -> Iterator[AgentEvent]:  # noqa: C901, PLR0912  one arm per kind of entry
        match entry:
            case e.SessionOpened():
                self._agent = entry.spec.name
            case e.ReplyStarted():
                self._reply_id = entry.reply_id
                yield AgentEvent(type="REPLY_START", name=self._agent)
            case e.ModelSaid():
                yield from self._model_said(entry)
            case e.CallsJudged():
                yield from self._judged(entry)
            case e.HumanDecided():
                yield from self._decided(entry)
            case e.ToolReturned():
                yield from self._returned(entry)
            case e.CallAnswered():
                yield from self._ended(entry.result)
                yield from changes(entry)
            case e.DeadlineReached():
                yield from self._deadline_reached(entry)
            case e.PieceReceived():
                yield from self._piece(entry)
            case e.RequestDropped():
                yield AgentEvent(type="REPLY_END", reply_id=entry.reply_id, finished_reason=FinishedReason.INTERRUPTED)
            case e.InterruptAsked():
                yield AgentEvent(type="USER_INTERRUPT")
            case e.ReplyFinished():
                yield from self._finished(entry)
            case _:
                if told := custom(entry):
                    yield told

    def _model_said(self, entry: e.ModelSaid) -> Iterator[AgentEvent]:
        yield AgentEvent(type="MODEL_CALL_START", model_name=entry.model)
        for index, block in enumerate(entry.message.content):
            block_id = f"{entry.seq}.{index}"
            match block:
                case TextBlock():
                    yield from _text(block.text, block_id)
                case ThinkingBlock():
                    yield AgentEvent(type="THINKING_BLOCK_START", block_id=block_id)
                    yield AgentEvent(type="THINKING_BLOCK_DELTA", block_id=block_id, delta=block.thinking)
                    yield AgentEvent(type="THINKING_BLOCK_END", block_id=block_id, metadata=block.model_extra or {})
                case ToolCallBlock():
                    self._calls[block.id] = block
                    yield AgentEvent(type="TOOL_CALL_START", tool_call_id=block.id, tool_call_name=block.name)
                    yield AgentEvent(type="TOOL_CALL_DELTA", tool_call_id=block.id, delta=block.input)
                    yield AgentEvent(type="TOOL_CALL_END", tool_call_id=block.id)
                case _:
                    pass
        usage = entry.message.usage
        yield AgentEvent(
            type="MODEL_CALL_END",
            model_name=entry.model,
            input_tokens=usage.input_tokens if usage else 0,
            output_tokens=usage.output_tokens if usage else 0,
            cache_input_tokens=usage.cache_input_tokens if usage else 0,
            cache_creation_input_tokens=usage.cache_creation_input_tokens if usage else 0,
        )

    def _judged(self, entry: e.CallsJudged) -> Iterator[AgentEvent]:
        for verdict in entry.verdicts:
            if verdict.warning:
                value = {"reason": verdict.warning}
                yield AgentEvent(type="CUSTOM", name="risk_warning", tool_call_id=verdict.call_id, value=value)
            if verdict.behavior == "allow":
                yield from self._start(verdict.call_id)
            elif verdict.behavior in ("deny", "invalid"):
                closing = denied_by_permission if verdict.behavior == "deny" else not_a_call
                yield from self._closed(closing(self._calls[verdict.call_id], verdict.reason))
        for behavior, kind, state in _REQUIRES:
            waiting = [verdict for verdict in entry.verdicts if verdict.behavior == behavior]
            if waiting:
                shown = {verdict.call_id: _shown(verdict, entry.at) for verdict in waiting if verdict.preview}
                blocks = tuple(self._asked(verdict, state) for verdict in waiting)
                yield AgentEvent(type=kind, tool_calls=blocks, value={"previews": shown} if shown else None)

    def _asked(self, verdict: e.Verdict, state: ToolCallState) -> ToolCallBlock:
        update = {"state": state, "suggested_rules": verdict.suggested_rules}
        return self._calls[verdict.call_id].model_copy(update=update)

    def _decided(self, entry: e.HumanDecided) -> Iterator[AgentEvent]:
        for decision in entry.decisions:
            if decision.input is not None:
                block = self._calls[decision.call_id]
                self._calls[decision.call_id] = block.model_copy(update={"input": decision.input})
        told = [decision.model_dump(mode="json") for decision in entry.decisions]
        yield AgentEvent(type="USER_CONFIRM_RESULT", value={"decisions": told, "approver": entry.approver})
        for decision in entry.decisions:
            if not decision.allow:
                block = self._calls[decision.call_id]
                yield from self._closed(denied_by_person(block, decision.reason, entry.approver))

    def _deadline_reached(self, entry: e.DeadlineReached) -> Iterator[AgentEvent]:
        for due in entry.due:
            told = due.model_dump(mode="json", exclude={"call_id", "stage"})
            yield AgentEvent(type="CUSTOM", name=_STAGES[due.stage], tool_call_id=due.call_id, value=told)
            if due.closes:
                yield from self._closed(expired(self._calls[due.call_id], due))

    def _start(self, call_id: str) -> Iterator[AgentEvent]:
        """Once for each call: one that did not run for a changed world is allowed again."""
        if call_id in self._calls and call_id not in self._started:
            self._started[call_id] = None
            name = self._calls[call_id].name
            yield AgentEvent(type="TOOL_RESULT_START", tool_call_id=call_id, tool_call_name=name)

    def _returned(self, entry: e.ToolReturned) -> Iterator[AgentEvent]:
        if entry.outside:
            yield AgentEvent(type="EXTERNAL_EXECUTION_RESULT", tool_call_id=entry.result.id)
            yield from self._start(entry.result.id)
        yield from self._ended(entry.result, self._told.pop(entry.result.id, 0) if entry.outside else 0)

    def _piece(self, entry: e.PieceReceived) -> Iterator[AgentEvent]:
        yield from self._start(entry.call_id)
        yield AgentEvent(type="TOOL_RESULT_TEXT_DELTA", tool_call_id=entry.call_id, delta=entry.text)
        self._told[entry.call_id] = self._told.get(entry.call_id, 0) + len(entry.text)

    def _closed(self, result: ToolResultBlock) -> Iterator[AgentEvent]:
        """A result that no tool made, worded as the model reads it."""
        yield from self._start(result.id)
        yield from self._ended(result)

    def _ended(self, result: ToolResultBlock, told: int = 0) -> Iterator[AgentEvent]:
        """Forgets the call: in a reply of ten thousand steps they would be the most of what is carried along."""
        yield from _result(result, told)
        if result.state is not ToolResultState.UNKNOWN:
            self._calls.pop(result.id, None)
            self._started.pop(result.id, None)

    def _finished(self, entry: e.ReplyFinished) -> Iterator[AgentEvent]:
        for result in entry.closing:
            yield from self._closed(result)
        if entry.said:
            yield from _text(entry.said, f"{entry.seq}.0")
        if entry.reason is FinishedReason.EXCEED_MAX_ITERS:
            yield AgentEvent(type="EXCEED_MAX_ITERS", name=self._agent)
        if entry.reason is FinishedReason.STUCK:
            yield AgentEvent(type="CUSTOM", name="stuck", error=entry.error)
        yield AgentEvent(type="REPLY_END", finished_reason=entry.reason, error=entry.error)
        self._calls, self._started, self._told = {}, {}, {}


_STAGES = {"remind": "reminded", "escalate": "escalated", "expire": "expired"}

_REQUIRES: tuple[tuple[str, EventType, ToolCallState], ...] = (
    ("ask", "REQUIRE_USER_CONFIRM", ToolCallState.ASKING),
    ("external", "REQUIRE_EXTERNAL_EXECUTION", ToolCallState.SUBMITTED),
)


def _shown(verdict: e.Verdict, at: int) -> dict[str, Any]:
    """What a person is to look at, and the digest that their decision has to carry."""
    preview = verdict.preview.model_dump(mode="json") if verdict.preview else {}
    return {**preview, "reason": verdict.reason, "digest": asked(verdict.seen, at)}


def _text(text: str, block_id: str) -> Iterator[AgentEvent]:
    yield AgentEvent(type="TEXT_BLOCK_START", block_id=block_id)
    yield AgentEvent(type="TEXT_BLOCK_DELTA", block_id=block_id, delta=text)
    yield AgentEvent(type="TEXT_BLOCK_END", block_id=block_id)


def _result(result: ToolResultBlock, told: int = 0) -> Iterator[AgentEvent]:
    """`told`: characters of its text that came before in pieces."""
    yield AgentEvent(type="TOOL_RESULT_TEXT_DELTA", tool_call_id=result.id, delta=result.get_text()[told:])
    yield AgentEvent(
        type="TOOL_RESULT_END",
        tool_call_id=result.id,
        tool_call_name=result.name,
        state=result.state,
        metadata=result.metadata,
        output=None if isinstance(result.output, str) else result.output,
    )
