"""Durable events: what a client is told, as a pure function of the recorded entries.

The types are the seed's (agentscope/event). `seq` counts from 1 without gaps; the same log gives the same
events with the same numbers, on any worker and after any roll-over.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.agent_state import AgentState
from longhaul.agent.fold.ledger.approval_digest import asked
from longhaul.agent.fold.parallel_calls import too_many
from longhaul.agent.fold.synthetic_results import denied_by_permission, denied_by_person, expired, not_a_call
from longhaul.agent.plain.times import iso
from longhaul.agent.values.conversation.hints import cut_short, hint_message
from longhaul.agent.values.conversation.messages import (
    FinishedReason,
    TextBlock,
    ToolCallBlock,
    ToolCallState,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.agent.values.conversation.server_questions import in_words
from longhaul.agent.values.conversation.stop_reasons import REFUSALS, ends_as
from longhaul.agent.views import block_events
from longhaul.agent.views.custom_events import adjusted, changes, custom, customs, prepared, repaired, stopped
from longhaul.agent.views.event_types import AgentEvent, EventsSoFar, EventType


class EventFold:
    """Folds a growing log into events, each entry once."""

    def __init__(self, before: EventsSoFar | None = None) -> None:
        self.before = before or EventsSoFar()
        self._begin()

    def _begin(self) -> None:
        before = self.before
        self.events: list[AgentEvent] = []
        """Those of the log; the first has the number `before.count + 1`."""
        self._read = 0
        self._session_id, self._agent = before.session_id, before.agent
        self._reply_id = before.reply_id
        self._calls = dict(before.calls)
        self._started = dict.fromkeys(before.started)
        self._told = dict(before.told)
        self._edits = dict(before.edits)

    def catch_up(self, log: Sequence[e.AnyEntry]) -> list[AgentEvent]:
        """All events of `log`, which begins with the entries that were folded before."""
        if any(isinstance(entry, e.ModelSaid) and entry.words for entry in log[self._read :]):
            self._begin()  # entries that were folded have other words now
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
            session_id=self._session_id,
            agent=self._agent,
            reply_id=self._reply_id,
            calls=self._calls,
            started=tuple(self._started),
            told=self._told,
            edits=self._edits,
        )

    def _of(self, entry: e.AnyEntry) -> Iterator[AgentEvent]:  # noqa: C901, PLR0912, PLR0915  one arm per kind of entry
        match entry:
            case e.SessionOpened():
                self._session_id, self._agent = entry.session_id, entry.spec.name
            case e.ReplyStarted():
                self._reply_id = entry.reply_id
                yield AgentEvent(type="REPLY_START", session_id=self._session_id, name=self._agent, role="assistant")
            case e.Prepared():
                yield from prepared(entry)
            case e.Reminded():
                yield from filter(None, (custom(entry),))
                yield from block_events.of_hints(entry.messages, entry.seq)
            case e.ModelSaid():
                yield from self._model_said(entry)
            case e.CallsExamined():
                yield from self._examined(entry)
            case e.CallsJudged():
                yield from self._judged(entry)
            case e.HumanDecided():
                yield from self._decided(entry)
            case e.ToolReturned():
                yield from self._returned(entry)
            case e.StateReplaced():
                yield from filter(None, (custom(entry),))
                self._take_calls(entry)
            case e.CallAnswered():
                yield from self._ended(entry.result)
                yield from changes(entry)
            case e.DeadlineReached():
                yield from self._deadline_reached(entry)
            case e.PieceReceived() | e.InputAsked() | e.InputAnswered():
                yield from self._while_it_waits(entry)
            case e.RequestDropped():
                yield self._end(FinishedReason.INTERRUPTED, reply_id=entry.reply_id)
            case e.InterruptAsked():
                yield AgentEvent(type="USER_INTERRUPT")
            case e.ReplyFinished():
                yield from self._finished(entry)
            case _:
                yield from customs(entry)

    def _model_said(self, entry: e.ModelSaid) -> Iterator[AgentEvent]:
        if entry.repair is not None:
            yield repaired(entry.repair)
        yield from adjusted(entry)
        yield AgentEvent(type="MODEL_CALL_START", model_name=entry.model)
        for index, block in enumerate(() if entry.stop in REFUSALS else entry.message.content):
            if isinstance(block, ToolCallBlock):
                self._calls[block.id] = block
            yield from block_events.of(block, f"{entry.seq}.{index}")
        usage = entry.message.usage
        ended = FinishedReason.INTERRUPTED if entry.cut_short else ends_as(entry.stop)
        yield AgentEvent(
            type="MODEL_CALL_END",
            model_name=entry.model,
            input_tokens=usage.input_tokens if usage else 0,
            output_tokens=usage.output_tokens if usage else 0,
            cache_input_tokens=usage.cache_input_tokens if usage else 0,
            cache_creation_input_tokens=usage.cache_creation_input_tokens if usage else 0,
            reasoning_tokens=usage.reasoning_tokens if usage else 0,
            estimated=usage.estimated if usage else False,
            finished_reason=entry.message.finished_reason or ended,
        )
        yield from stopped(entry)
        if entry.dropped_calls:
            yield from block_events.of_hints((hint_message(too_many(entry.dropped_calls), "calls"),), entry.seq)
        if entry.cut_short:
            yield AgentEvent(type="CUSTOM", name="cut_short", value={"begun_calls": list(entry.begun_calls)})
            yield from block_events.of_hints((hint_message(cut_short(entry.begun_calls), "interrupted"),), entry.seq)

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

    def _while_it_waits(self, entry: e.PieceReceived | e.InputAsked | e.InputAnswered) -> Iterator[AgentEvent]:
        match entry:
            case e.PieceReceived():
                yield from self._piece(entry)
            case e.InputAsked():
                call = self._calls[entry.call_id].model_copy(update={"state": ToolCallState.SUBMITTED})
                shown = {entry.call_id: {"reason": in_words(entry.asked)}}
                value = {"previews": shown, "asked_by": entry.asked.server}
                yield AgentEvent(type="REQUIRE_EXTERNAL_EXECUTION", tool_calls=(call,), value=value)
            case e.InputAnswered():
                yield AgentEvent(type="EXTERNAL_EXECUTION_RESULT", tool_call_id=entry.call_id)

    def _asked(self, verdict: e.Verdict, state: ToolCallState) -> ToolCallBlock:
        update = {"state": state, "suggested_rules": verdict.suggested_rules}
        return self._calls[verdict.call_id].model_copy(update=update)

    def _decided(self, entry: e.HumanDecided) -> Iterator[AgentEvent]:
        edits = {each.call_id: each.input for each in entry.decisions if each.input is not None}
        self._edits.update(edits)
        told = [
            {**each.model_dump(mode="json", exclude={"input"}), **({"edited": True} if each.call_id in edits else {})}
            for each in entry.decisions
        ]
        yield AgentEvent(type="USER_CONFIRM_RESULT", value={"decisions": told, "approver": entry.approver})
        for decision in entry.decisions:
            if not decision.allow:
                block = self._calls[decision.call_id]
                yield from self._closed(denied_by_person(block, decision.reason, entry.approver))

    def _examined(self, entry: e.CallsExamined) -> Iterator[AgentEvent]:
        """An approver's arguments are told when a worker has looked at them: they may hold a secret."""
        yield from adjusted(entry)
        for call_id in entry.facts:
            if call_id in self._calls and (edit := self._edits.pop(call_id, None)) is not None:
                shown = entry.marked.get(call_id, edit)
                self._calls[call_id] = self._calls[call_id].model_copy(update={"input": shown})
                value = {"input": shown}
                yield AgentEvent(type="CUSTOM", name="arguments_edited", tool_call_id=call_id, value=value)

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

    def _take_calls(self, entry: e.StateReplaced) -> None:
        """Of a reply that goes on: its calls may have other arguments in the new state."""
        for message in AgentState.model_validate(entry.state).context if entry.goes_on else ():
            self._calls.update({block.id: block for block in message.get_tool_calls() if block.id in self._calls})

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
        yield from block_events.of_result(result, told)
        if result.state is not ToolResultState.UNKNOWN:
            self._calls.pop(result.id, None)
            self._started.pop(result.id, None)
            self._edits.pop(result.id, None)

    def _finished(self, entry: e.ReplyFinished) -> Iterator[AgentEvent]:
        for result in entry.closing:
            yield from self._closed(result)
        if entry.said:
            yield from block_events.of(TextBlock(text=entry.said), f"{entry.seq}.0")
        if entry.reason is FinishedReason.EXCEED_MAX_ITERS:
            yield AgentEvent(type="EXCEED_MAX_ITERS", name=self._agent)
        if entry.reason is FinishedReason.STUCK:
            yield AgentEvent(type="CUSTOM", name="stuck", error=entry.error)
        yield self._end(entry.reason, error=entry.error)
        self._calls, self._started, self._told, self._edits = {}, {}, {}, {}

    def _end(self, reason: FinishedReason, **more: Any) -> AgentEvent:
        return AgentEvent(type="REPLY_END", session_id=self._session_id, finished_reason=reason, **more)


_STAGES = {"remind": "reminded", "escalate": "escalated", "expire": "expired"}

_REQUIRES: tuple[tuple[str, EventType, ToolCallState], ...] = (
    ("ask", "REQUIRE_USER_CONFIRM", ToolCallState.ASKING),
    ("external", "REQUIRE_EXTERNAL_EXECUTION", ToolCallState.SUBMITTED),
)


def _shown(verdict: e.Verdict, at: int) -> dict[str, Any]:
    """What a person is to look at, and the digest that their decision has to carry."""
    preview = verdict.preview.model_dump(mode="json") if verdict.preview else {}
    return {**preview, "reason": verdict.reason, "digest": asked(verdict.seen, at)}
