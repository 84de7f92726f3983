"""Blocks of recorded messages as the events that tell of them.

Events that the seed has no type for: they are CUSTOM, and their name says what happened.

Durable events: what a client is told, as a pure function of the recorded entries.

The types are the seed's (agentscope/event). `seq` counts from 1 without gaps; the same log gives the same
events with the same numbers, on any worker and after any continue-as-new.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import Repair
from longhaul.agent.plain.measures import iso
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.all_changes import too_many
from longhaul.agent.reducer.approval_digest import asked_digest
from longhaul.agent.reducer.context_state import refusal
from longhaul.agent.reducer.synthetic_results import denied_by_permission, denied_by_person, expired, not_a_call
from longhaul.agent.values.conversation.messages import (
    BROKEN_OFF,
    REFUSALS,
    Base64Source,
    ContentBlock,
    DataBlock,
    FinishedReason,
    HintBlock,
    Msg,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolCallState,
    ToolResultBlock,
    ToolResultState,
    ends_as,
    in_words,
)
from longhaul.agent.values.conversation.prompt import cut_short, hint_message
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.plans import PlanChange
from longhaul.agent.views.event_types import AgentEvent, EventsSoFar, EventType


def of(block: ContentBlock, block_id: str) -> Iterator[AgentEvent]:
    """Of what a model has said."""
    match block:
        case TextBlock():
            yield AgentEvent(type="TEXT_BLOCK_START", block_id=block_id)
            yield AgentEvent(type="TEXT_BLOCK_DELTA", block_id=block_id, delta=block.text)
            yield AgentEvent(type="TEXT_BLOCK_END", block_id=block_id, metadata=block.extras)
        case ThinkingBlock():
            yield AgentEvent(type="THINKING_BLOCK_START", block_id=block_id)
            yield AgentEvent(type="THINKING_BLOCK_DELTA", block_id=block_id, delta=block.thinking)
            yield AgentEvent(type="THINKING_BLOCK_END", block_id=block_id, metadata=block.model_extra or {})
        case DataBlock():
            yield AgentEvent(type="DATA_BLOCK_START", block_id=block_id, media_type=block.source.media_type)
            yield AgentEvent(type="DATA_BLOCK_DELTA", block_id=block_id, **_data(block))
            yield AgentEvent(type="DATA_BLOCK_END", block_id=block_id)
        case ToolCallBlock():
            yield AgentEvent(type="TOOL_CALL_START", tool_call_id=block.id, tool_call_name=block.name)
            yield AgentEvent(type="TOOL_CALL_DELTA", tool_call_id=block.id, delta=block.input)
            yield AgentEvent(type="TOOL_CALL_END", tool_call_id=block.id, metadata=block.extras)
        case HintBlock():
            yield _hint(block, block_id)
        case ToolResultBlock():
            yield from of_result(block)
        case _ as never:
            assert_never(never)


def of_result(result: ToolResultBlock, told: int = 0) -> Iterator[AgentEvent]:
    """`told`: characters of its text that came before in pieces. Parts of a result that is not one text have ids."""
    if isinstance(result.output, str):
        yield AgentEvent(type="TOOL_RESULT_TEXT_DELTA", tool_call_id=result.id, delta=result.output[told:])
    else:
        for index, part in enumerate(result.output):
            about: dict[str, Any] = {"tool_call_id": result.id, "block_id": f"{result.id}.{index}"}
            if isinstance(part, TextBlock):
                # The pieces are the beginning of the first part.
                yield AgentEvent(type="TOOL_RESULT_TEXT_DELTA", **about, delta=part.text[told:])
                told = 0
            else:
                yield AgentEvent(type="TOOL_RESULT_DATA_DELTA", **about, **_data(part))
    yield AgentEvent(
        type="TOOL_RESULT_END",
        tool_call_id=result.id,
        tool_call_name=result.name,
        state=result.state,
        metadata=result.metadata,
    )


def of_hints(messages: Iterable[Msg], seq: int) -> Iterator[AgentEvent]:
    """Of what the entry with this number tells the model, and nobody has said."""
    hints = (block for message in messages for block in message.content if isinstance(block, HintBlock))
    for index, block in enumerate(hints):
        yield _hint(block, f"{seq}.hint{index}")


def _hint(block: HintBlock, block_id: str) -> AgentEvent:
    return AgentEvent(type="HINT_BLOCK", block_id=block_id, hint=block.hint, source=block.source)


def _data(block: DataBlock) -> dict[str, Any]:
    source = block.source
    where = {"data": source.data} if isinstance(source, Base64Source) else {"url": source.url}
    return {"media_type": source.media_type, "name": block.name or "", **where}


def custom(entry: e.AnyEntry) -> AgentEvent | None:  # noqa: C901, PLR0911, PLR0912  one per kind of event
    """The event of an entry, or None for one that nobody outside is told of."""
    match entry:
        case e.ModelFailed():
            return AgentEvent(type="CUSTOM", name="model_failed", model_name=entry.model, error=entry.error)
        case e.CallUnsettled():
            value = {"reason": entry.reason} | ({} if entry.input is None else {"input": entry.input})
            return AgentEvent(type="CUSTOM", name="call_unsettled", tool_call_id=entry.call_id, value=value)
        case e.OutcomeProbed() | e.OutcomeResolved():
            return _of_unknown_outcome(entry)
        case e.ContextCompressed():
            return AgentEvent(type="CUSTOM", name="context_compressed", value=_compression_fields(entry))
        case e.NotCompressed():
            return AgentEvent(type="CUSTOM", name="compression_failed", error=entry.error)
        case e.StateReplaced():
            return AgentEvent(type="CUSTOM", name="state_replaced", value={"by": entry.by, "why": entry.why})
        case e.RulesChanged():
            return AgentEvent(type="CUSTOM", name="rules_changed", value=_ruled(entry))
        case e.Configured() if entry.mode is PermissionMode.PLAN:
            return AgentEvent(type="CUSTOM", name="plan_mode_changed", value={"active": True, "by": entry.by})
        case e.Restored() if entry.source != "nothing":
            return AgentEvent(
                type="CUSTOM", name="restored", value={"note": entry.note, "quarantine": entry.quarantine}
            )
        case e.Joined():
            ids = {"request_ids": list(entry.request_ids), "reply_ids": list(entry.reply_ids)}
            return AgentEvent(type="CUSTOM", name="joined", value=ids)
        case e.PauseStarted() | e.PauseEnded() | e.StepAsked() | e.StepStarted():
            return _of_pause(entry)
        case e.SleepStarted() | e.ExternalEventReceived():
            return _of_sleep(entry)
        case e.BudgetExhausted() | e.BudgetChanged():
            return _of_budget(entry)
        case e.WorkerLeft() | e.WorkerLacks() | e.HostBack():
            return _of_worker(entry)
        case e.ChildStarted() | e.ChildEnded():
            return _of_child(entry)
        case e.CommandStarted() | e.CommandEnded() | e.StopAsked():
            return _of_command(entry)
        case e.InterruptHandled() | e.MemoryRecorded():
            return _of_end(entry)
        case e.Reminded() if entry.stuck:
            return AgentEvent(type="CUSTOM", name="stuck_warning", value={"pattern": entry.stuck})
        case _:
            return None


def customs(entry: e.AnyEntry) -> Iterator[AgentEvent]:
    """All that an entry tells which has no events but these."""
    if isinstance(entry, e.Configured):
        yield from _unbound(entry)
    if isinstance(entry, e.ContextCompressed):
        yield from adjusted(entry)
    yield from filter(None, (custom(entry),))


def adjusted(entry: e.ModelSaid | e.ContextCompressed | e.CallsExamined) -> Iterator[AgentEvent]:
    """What the model's API could not express."""
    if entry.adjusted:
        value = {"adjusted": list(entry.adjusted)}
        yield AgentEvent(type="CUSTOM", name="request_adjusted", model_name=entry.model, value=value)


def prepared(entry: e.Prepared) -> Iterator[AgentEvent]:
    yield from _unbound(entry)
    yield from of_hints(entry.hints, entry.seq)


def _unbound(entry: e.Prepared | e.Configured) -> Iterator[AgentEvent]:
    """That rules are about tools of which nobody has heard."""
    if entry.no_tool:
        yield AgentEvent(type="CUSTOM", name="rules_without_tool", value={"tools": list(entry.no_tool)})


def changes(entry: e.CallAnswered) -> Iterator[AgentEvent]:
    """What a call that the session answered itself has changed, beside its result."""
    if entry.tasks is not None:
        told = [task.model_dump(mode="json", exclude={"created_at", "finished_at"}) for task in entry.tasks]
        yield AgentEvent(type="CUSTOM", name="tasks_changed", value={"tasks": told})
    if entry.plans is not None:
        yield AgentEvent(type="CUSTOM", name="plan_changed", value=_of_plans(entry.plans))
    if entry.groups is not None:
        yield AgentEvent(type="CUSTOM", name="tool_groups_changed", value={"activated_groups": list(entry.groups)})
    if entry.plan is not None:
        value = {"active": entry.plan.active, "file": entry.plan.place}
        yield AgentEvent(type="CUSTOM", name="plan_mode_changed", value=value)


def _of_plans(change: PlanChange) -> dict[str, object]:
    """The plan that there is now, and the one that is over; their subtasks are told as tasks."""
    shown = {"plan": change.current, "over": change.filed}
    times = {"created_at", "finished_at", "subtasks"}
    return {name: plan.model_dump(mode="json", exclude=times) if plan else None for name, plan in shown.items()}


SHOWN_PARTS = 20


def repaired(repair: Repair) -> AgentEvent:
    """What the context was sent without: the words in its place, how many thoughts, and what the provider said."""
    words = [out.words for out in repair.left_out if out.words]
    thoughts = sum(not (out.words or out.media_type) for out in repair.left_out)
    value: dict[str, object] = {"left_out": words[:SHOWN_PARTS], "thoughts": thoughts, "refused": repair.refused}
    return AgentEvent(type="CUSTOM", name="repaired", value={**value, "takes_no_images": repair.takes_no_images})


def stopped(entry: e.ModelSaid) -> Iterator[AgentEvent]:
    """How a model's message has ended, where that does not go without saying."""
    value = {"stop": entry.stop.value, "stop_reason": entry.stop_reason}
    if entry.stop in REFUSALS:
        error = refusal(entry)
        yield AgentEvent(type="CUSTOM", name="model_refused", model_name=entry.model, value=value, error=error)
    elif entry.stop in BROKEN_OFF:
        yield AgentEvent(type="CUSTOM", name="broken_off", model_name=entry.model, value=value)
    elif entry.stop is StopReason.UNKNOWN:
        yield AgentEvent(type="CUSTOM", name="unknown_stop", model_name=entry.model, value=value)


def _of_pause(entry: e.PauseEntry) -> AgentEvent | None:
    match entry:
        case e.PauseStarted():
            return AgentEvent(type="CUSTOM", name="paused", value={"by": entry.by, "why": entry.why})
        case e.PauseEnded():
            return AgentEvent(type="CUSTOM", name="resumed", value={"by": entry.by})
        case e.StepAsked():
            return AgentEvent(type="CUSTOM", name="step_asked", value={"by": entry.by})
        case e.StepStarted():
            return None
        case _ as never:
            assert_never(never)


def _of_sleep(entry: e.SleepEntry) -> AgentEvent:
    """What came with an event is told with the result of the call that waits for it."""
    if isinstance(entry, e.SleepStarted):
        value = {"until": iso(entry.until), "event": entry.event}
        return AgentEvent(type="CUSTOM", name="asleep", tool_call_id=entry.call_id, value=value)
    told = {"event": entry.event, "request_id": entry.request_id, "by": entry.by}
    return AgentEvent(type="CUSTOM", name="notified", value=told)


def _of_budget(entry: e.BudgetExhausted | e.BudgetChanged) -> AgentEvent:
    value: dict[str, object]
    if isinstance(entry, e.BudgetExhausted):
        value = {"lacks": [lack.model_dump(mode="json") for lack in entry.lacks], "then": entry.then}
    else:
        value = {"more": dict(entry.more.given()), "end": entry.end, "by": entry.by}
    return AgentEvent(type="CUSTOM", name=entry.kind, value=value)


def unavailable_words(away: e.ProviderOutage) -> dict[str, Any]:
    """Which attempt failed, when the next one is made and the last one may be, as ISO times."""
    return {"attempt": away.attempt, "next_try": iso(away.next_at), "until": iso(away.until)}


def _of_worker(entry: e.WorkerLeft | e.WorkerLacks | e.HostBack) -> AgentEvent:
    if isinstance(entry, e.HostBack):
        return AgentEvent(type="CUSTOM", name="host_back", value={"host": entry.host})
    value: dict[str, object] = {"worker": entry.worker, "doing": entry.doing}
    if isinstance(entry, e.WorkerLacks) and entry.away is not None:
        return AgentEvent(
            type="CUSTOM", name="provider_unavailable", value={"reason": entry.why, **unavailable_words(entry.away)}
        )
    if isinstance(entry, e.WorkerLacks) and entry.host:
        told = {"host": entry.host, "doing": entry.doing, "reason": entry.why}
        return AgentEvent(type="CUSTOM", name="host_unavailable", tool_call_id=entry.call_id, value=told)
    if isinstance(entry, e.WorkerLacks):
        value["reason"] = entry.why
    return AgentEvent(type="CUSTOM", name=entry.kind, tool_call_id=entry.call_id, value=value)


def _of_child(entry: e.ChildStarted | e.ChildEnded) -> AgentEvent:
    if isinstance(entry, e.ChildEnded):
        value = {"session_id": entry.session_id, "outcome": entry.outcome}
        return AgentEvent(type="CUSTOM", name="subagent_ended", tool_call_id=entry.call_id, value=value)
    child = entry.child
    value = {"agent": child.agent, "session_id": child.session_id}
    return AgentEvent(type="CUSTOM", name="subagent_started", tool_call_id=child.call_id, value=value)


def _of_command(entry: e.BackgroundEntry) -> AgentEvent:
    if isinstance(entry, e.StopAsked):
        value = {"call_ids": list(entry.call_ids), "by": entry.by}
        return AgentEvent(type="CUSTOM", name="stop_asked", value=value)
    if isinstance(entry, e.CommandEnded):
        value = {"outcome": entry.fate}
        return AgentEvent(type="CUSTOM", name="command_ended", tool_call_id=entry.call_id, value=value)
    value = {"command": entry.command.shown}
    return AgentEvent(type="CUSTOM", name="command_started", tool_call_id=entry.command.call_id, value=value)


def _of_end(entry: e.InterruptHandled | e.MemoryRecorded) -> AgentEvent | None:
    """What hooks said is told with the end of the reply."""
    if isinstance(entry, e.MemoryRecorded):
        value = {"memories": entry.memories, "reason": entry.error}
        return AgentEvent(type="CUSTOM", name="memory_recorded", value=value)
    if not entry.error:
        return None
    return AgentEvent(type="CUSTOM", name="handle_interrupt_failed", value={"reason": entry.error})


def _of_unknown_outcome(entry: e.OutcomeEntry) -> AgentEvent:
    value: dict[str, object]
    if isinstance(entry, e.OutcomeProbed):
        value = {"finding": entry.finding, "detail": entry.detail}
        return AgentEvent(type="CUSTOM", name="outcome_probed", tool_call_id=entry.call_id, value=value)
    value = {"happened": entry.happened, "output": entry.output, "by": entry.by, "reason": entry.reason}
    return AgentEvent(type="CUSTOM", name="outcome_resolved", tool_call_id=entry.call_id, value=value)


def _ruled(entry: e.RulesChanged) -> dict[str, object]:
    added = [rule.model_dump(mode="json") for rule in entry.add]
    missing = {"no_tool": list(entry.no_tool)} if entry.no_tool else {}
    return {"added": added, "revoked": list(entry.revoked), "by": entry.by, "why": entry.why, **missing}


def _compression_fields(entry: e.ContextCompressed) -> dict[str, object]:
    return {
        "epoch": entry.epoch,
        "condenser": entry.condenser,
        "model": entry.model,
        "summary_tokens": entry.summary_tokens,
        "offloaded": entry.offloaded,
    }


class EventReducer:
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
        self._compression_fields = dict(before.told)
        self._edits = dict(before.edits)

    def catch_up(self, log: Sequence[e.AnyEntry]) -> list[AgentEvent]:
        """All events of `log`, which begins with the entries that were reduced before."""
        if any(isinstance(entry, e.ModelSaid) and entry.words for entry in log[self._read :]):
            self._begin()  # entries that were reduced have other words now
        for entry in log[self._read :]:
            for event in self._of(entry):
                number = self.before.count + len(self.events) + 1
                numbered = {"seq": number, "created_at": iso(entry.at), "reply_id": event.reply_id or self._reply_id}
                self.events.append(event.model_copy(update=numbered))
        self._read = len(log)
        return self.events

    def pass_over(self, log: Sequence[e.AnyEntry]) -> EventsSoFar:
        """What another reducer needs to go on behind `log`, of whose events nobody will ask this one."""
        count = sum(1 for entry in log for _ in self._of(entry))
        return EventsSoFar(
            count=self.before.count + count,
            session_id=self._session_id,
            agent=self._agent,
            reply_id=self._reply_id,
            calls=self._calls,
            started=tuple(self._started),
            told=self._compression_fields,
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
                yield from of_hints(entry.messages, entry.seq)
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
            case e.DeltaReceived() | e.InputAsked() | e.InputAnswered():
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
            yield from of(block, f"{entry.seq}.{index}")
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
            yield from of_hints((hint_message(too_many(entry.dropped_calls), "calls"),), entry.seq)
        if entry.cut_short:
            yield AgentEvent(type="CUSTOM", name="cut_short", value={"started_calls": list(entry.started_calls)})
            yield from of_hints((hint_message(cut_short(entry.started_calls), "interrupted"),), entry.seq)

    def _judged(self, entry: e.CallsJudged) -> Iterator[AgentEvent]:
        for ruling in entry.rulings:
            if ruling.warning:
                value = {"reason": ruling.warning}
                yield AgentEvent(type="CUSTOM", name="risk_warning", tool_call_id=ruling.call_id, value=value)
            if ruling.behavior == "allow":
                yield from self._start(ruling.call_id)
            elif ruling.behavior in ("deny", "invalid"):
                closing = denied_by_permission if ruling.behavior == "deny" else not_a_call
                yield from self._closed(closing(self._calls[ruling.call_id], ruling.reason))
        for behavior, kind, state in _REQUIRES:
            waiting = [ruling for ruling in entry.rulings if ruling.behavior == behavior]
            if waiting:
                shown = {ruling.call_id: _approval_fields(ruling, entry.at) for ruling in waiting if ruling.preview}
                blocks = tuple(self._waiting_call(ruling, state) for ruling in waiting)
                yield AgentEvent(type=kind, tool_calls=blocks, value={"previews": shown} if shown else None)

    def _while_it_waits(self, entry: e.DeltaReceived | e.InputAsked | e.InputAnswered) -> Iterator[AgentEvent]:
        match entry:
            case e.DeltaReceived():
                yield from self._piece(entry)
            case e.InputAsked():
                call = self._calls[entry.call_id].model_copy(update={"state": ToolCallState.SUBMITTED})
                shown = {entry.call_id: {"reason": in_words(entry.asked)}}
                value = {"previews": shown, "asked_by": entry.asked.server}
                yield AgentEvent(type="REQUIRE_EXTERNAL_EXECUTION", tool_calls=(call,), value=value)
            case e.InputAnswered():
                yield AgentEvent(type="EXTERNAL_EXECUTION_RESULT", tool_call_id=entry.call_id)

    def _waiting_call(self, ruling: e.CallRuling, state: ToolCallState) -> ToolCallBlock:
        update = {"state": state, "suggested_rules": ruling.suggested_rules}
        return self._calls[ruling.call_id].model_copy(update=update)

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
        for call_id in entry.analysis:
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
        yield from self._ended(entry.result, self._compression_fields.pop(entry.result.id, 0) if entry.outside else 0)

    def _take_calls(self, entry: e.StateReplaced) -> None:
        """Of a reply that goes on: its calls may have other arguments in the new state."""
        for message in AgentState.model_validate(entry.state).context if entry.goes_on else ():
            self._calls.update({block.id: block for block in message.get_tool_calls() if block.id in self._calls})

    def _piece(self, entry: e.DeltaReceived) -> Iterator[AgentEvent]:
        yield from self._start(entry.call_id)
        yield AgentEvent(type="TOOL_RESULT_TEXT_DELTA", tool_call_id=entry.call_id, delta=entry.text)
        self._compression_fields[entry.call_id] = self._compression_fields.get(entry.call_id, 0) + len(entry.text)

    def _closed(self, result: ToolResultBlock) -> Iterator[AgentEvent]:
        """A result that no tool made, worded as the model reads it."""
        yield from self._start(result.id)
        yield from self._ended(result)

    def _ended(self, result: ToolResultBlock, told: int = 0) -> Iterator[AgentEvent]:
        """Forgets the call: in a reply of ten thousand steps they would be the most of what is carried along."""
        yield from of_result(result, told)
        if result.state is not ToolResultState.UNKNOWN:
            self._calls.pop(result.id, None)
            self._started.pop(result.id, None)
            self._edits.pop(result.id, None)

    def _finished(self, entry: e.ReplyFinished) -> Iterator[AgentEvent]:
        for result in entry.closing:
            yield from self._closed(result)
        if entry.said:
            yield from of(TextBlock(text=entry.said), f"{entry.seq}.0")
        if entry.reason is FinishedReason.EXCEED_MAX_ITERS:
            yield AgentEvent(type="EXCEED_MAX_ITERS", name=self._agent)
        if entry.reason is FinishedReason.STUCK:
            yield AgentEvent(type="CUSTOM", name="stuck", error=entry.error)
        yield self._end(entry.reason, error=entry.error)
        self._calls, self._started, self._compression_fields, self._edits = {}, {}, {}, {}

    def _end(self, reason: FinishedReason, **more: Any) -> AgentEvent:
        return AgentEvent(type="REPLY_END", session_id=self._session_id, finished_reason=reason, **more)


_STAGES = {"remind": "reminded", "escalate": "escalated", "expire": "expired"}

_REQUIRES: tuple[tuple[str, EventType, ToolCallState], ...] = (
    ("ask", "REQUIRE_USER_CONFIRM", ToolCallState.ASKING),
    ("external", "REQUIRE_EXTERNAL_EXECUTION", ToolCallState.SUBMITTED),
)


def _approval_fields(ruling: e.CallRuling, at: int) -> dict[str, Any]:
    """What a person is to look at, and the digest that their decision has to carry."""
    preview = ruling.preview.model_dump(mode="json") if ruling.preview else {}
    return {**preview, "reason": ruling.reason, "digest": asked_digest(ruling.seen, at)}
