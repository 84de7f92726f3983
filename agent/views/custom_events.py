"""Events that the seed has no type for: they are CUSTOM, and their name says what happened."""

from collections.abc import Iterator
from typing import Any, assert_never

from longhaul.agent.entries import all_entries as e
from longhaul.agent.entries.repairs import Repair
from longhaul.agent.fold.message_ends import refusal
from longhaul.agent.plain.times import iso
from longhaul.agent.values.conversation.stop_reasons import BROKEN_OFF, REFUSALS, StopReason
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.plan_notebook import PlanChange
from longhaul.agent.views import block_events
from longhaul.agent.views.event_types import AgentEvent


def custom(entry: e.AnyEntry) -> AgentEvent | None:  # noqa: C901, PLR0911, PLR0912  one per kind of event
    """The event of an entry, or None for one that nobody outside is told of."""
    match entry:
        case e.ModelFailed():
            return AgentEvent(type="CUSTOM", name="model_failed", model_name=entry.model, error=entry.error)
        case e.CallUnsettled():
            value = {"reason": entry.reason} | ({} if entry.input is None else {"input": entry.input})
            return AgentEvent(type="CUSTOM", name="call_unsettled", tool_call_id=entry.call_id, value=value)
        case e.DoubtProbed() | e.DoubtSettled():
            return _of_doubt(entry)
        case e.ContextCompressed():
            return AgentEvent(type="CUSTOM", name="context_compressed", value=_told(entry))
        case e.NotCompressed():
            return AgentEvent(type="CUSTOM", name="compression_failed", error=entry.error)
        case e.StateReplaced():
            return AgentEvent(type="CUSTOM", name="state_replaced", value={"by": entry.by, "why": entry.why})
        case e.RulesChanged():
            return AgentEvent(type="CUSTOM", name="rules_changed", value=_ruled(entry))
        case e.Configured() if entry.mode is PermissionMode.PLAN:
            return AgentEvent(type="CUSTOM", name="plan_mode_changed", value={"active": True, "by": entry.by})
        case e.Restored() if entry.source != "nothing":
            return AgentEvent(type="CUSTOM", name="restored", value={"note": entry.note, "hold": entry.hold})
        case e.Joined():
            return _of_joined(entry)
        case e.PauseBegun() | e.PauseEnded() | e.StepAsked() | e.StepBegun():
            return _of_pause(entry)
        case e.SleepBegun() | e.WakeUpCame():
            return _of_sleep(entry)
        case e.BudgetExhausted() | e.BudgetChanged():
            return _of_budget(entry)
        case e.WorkerLeft() | e.WorkerLacks() | e.HostBack():
            return _of_worker(entry)
        case e.ChildStarted() | e.ChildEnded():
            return _of_child(entry)
        case e.CommandBegun() | e.CommandEnded() | e.StopAsked():
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
    yield from block_events.of_hints(entry.hints, entry.seq)


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
        case e.PauseBegun():
            return AgentEvent(type="CUSTOM", name="paused", value={"by": entry.by, "why": entry.why})
        case e.PauseEnded():
            return AgentEvent(type="CUSTOM", name="resumed", value={"by": entry.by})
        case e.StepAsked():
            return AgentEvent(type="CUSTOM", name="step_asked", value={"by": entry.by})
        case e.StepBegun():
            return None
        case _ as never:
            assert_never(never)


def _of_sleep(entry: e.SleepEntry) -> AgentEvent:
    """What came with an event is told with the result of the call that waits for it."""
    if isinstance(entry, e.SleepBegun):
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


def _of_joined(entry: e.Joined) -> AgentEvent:
    ids = {"request_ids": list(entry.request_ids), "reply_ids": list(entry.reply_ids)}
    return AgentEvent(type="CUSTOM", name="joined", value=ids)


def away_words(away: e.Away) -> dict[str, Any]:
    """Which attempt failed, when the next one is made and the last one may be, as ISO times."""
    return {"attempt": away.attempt, "next_try": iso(away.next_at), "until": iso(away.until)}


def _of_worker(entry: e.WorkerLeft | e.WorkerLacks | e.HostBack) -> AgentEvent:
    if isinstance(entry, e.HostBack):
        return AgentEvent(type="CUSTOM", name="host_back", value={"host": entry.host})
    value: dict[str, object] = {"worker": entry.worker, "doing": entry.doing}
    if isinstance(entry, e.WorkerLacks) and entry.away is not None:
        return AgentEvent(type="CUSTOM", name="provider_away", value={"reason": entry.why, **away_words(entry.away)})
    if isinstance(entry, e.WorkerLacks) and entry.host:
        told = {"host": entry.host, "doing": entry.doing, "reason": entry.why}
        return AgentEvent(type="CUSTOM", name="host_away", tool_call_id=entry.call_id, value=told)
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
    return AgentEvent(type="CUSTOM", name="command_begun", tool_call_id=entry.command.call_id, value=value)


def _of_end(entry: e.InterruptHandled | e.MemoryRecorded) -> AgentEvent | None:
    """What hooks said is told with the end of the reply."""
    if isinstance(entry, e.MemoryRecorded):
        value = {"memories": entry.memories, "reason": entry.error}
        return AgentEvent(type="CUSTOM", name="memory_recorded", value=value)
    if not entry.error:
        return None
    return AgentEvent(type="CUSTOM", name="handle_interrupt_failed", value={"reason": entry.error})


def _of_doubt(entry: e.DoubtEntry) -> AgentEvent:
    value: dict[str, object]
    if isinstance(entry, e.DoubtProbed):
        value = {"finding": entry.finding, "detail": entry.detail}
        return AgentEvent(type="CUSTOM", name="doubt_probed", tool_call_id=entry.call_id, value=value)
    value = {"happened": entry.happened, "output": entry.output, "by": entry.by, "reason": entry.reason}
    return AgentEvent(type="CUSTOM", name="doubt_settled", tool_call_id=entry.call_id, value=value)


def _ruled(entry: e.RulesChanged) -> dict[str, object]:
    added = [rule.model_dump(mode="json") for rule in entry.add]
    missing = {"no_tool": list(entry.no_tool)} if entry.no_tool else {}
    return {"added": added, "revoked": list(entry.revoked), "by": entry.by, "why": entry.why, **missing}


def _told(entry: e.ContextCompressed) -> dict[str, object]:
    return {
        "epoch": entry.epoch,
        "condenser": entry.condenser,
        "model": entry.model,
        "summary_tokens": entry.summary_tokens,
        "offloaded": entry.offloaded,
    }
