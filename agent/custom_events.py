"""Events that the seed has no type for: they are CUSTOM, and their name says what happened."""

from collections.abc import Iterator
from typing import assert_never

from agent import entries as e
from agent.event import AgentEvent
from agent.permission.rules import PermissionMode

Other = (
    e.ModelFailed
    | e.CallUnsettled
    | e.DoubtProbed
    | e.DecisionsOffered
    | e.OfferSettled
    | e.DoubtSettled
    | e.ContextCompressed
    | e.CompressionFailed
    | e.StateReplaced
    | e.Restored
    | e.RestoreFailed
    | e.Resumed
    | e.Paused
    | e.Unpaused
    | e.StepAsked
    | e.StepBegun
    | e.Checkpointed
    | e.CheckpointFailed
    | e.TimeReached
    | e.WorkerLeft
    | e.InterruptHandled
    | e.CompressAsked
    | e.RequestAccepted
    | e.Joined
    | e.Observed
    | e.Configured
    | e.RulesChanged
    | e.Prepared
    | e.Reminded
    | e.CallsExamined
    | e.ResultReceived
    | e.Refused
)


def custom(entry: Other) -> AgentEvent | None:  # noqa: C901, PLR0911, PLR0912  one per kind of event
    """The event of an entry, or None for one that nobody outside is told of."""
    match entry:
        case e.ModelFailed():
            return AgentEvent(type="CUSTOM", name="model_failed", model_name=entry.model, error=entry.error)
        case e.CallUnsettled():
            value = {"reason": entry.reason}
            return AgentEvent(type="CUSTOM", name="call_unsettled", tool_call_id=entry.call_id, value=value)
        case e.DoubtProbed() | e.DoubtSettled():
            return _of_doubt(entry)
        case e.ContextCompressed():
            return AgentEvent(type="CUSTOM", name="context_compressed", value=_told(entry))
        case e.CompressionFailed():
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
        case e.Paused() | e.Unpaused() | e.StepAsked() | e.StepBegun():
            return _of_pause(entry)
        case e.WorkerLeft():
            return _of_shutdown(entry)
        case e.InterruptHandled():
            return _of_hooks(entry)
        case e.Restored() | e.RestoreFailed() | e.Resumed() | e.Checkpointed() | e.CheckpointFailed():
            return None
        case e.TimeReached() | e.CompressAsked() | e.RequestAccepted() | e.Observed() | e.Configured():
            return None
        case e.Reminded() if entry.stuck:
            return AgentEvent(type="CUSTOM", name="stuck_warning", value={"pattern": entry.stuck})
        case e.DecisionsOffered() | e.OfferSettled() | e.ResultReceived() | e.CallsExamined() | e.Reminded():
            return None
        case e.Prepared() | e.Refused():
            return None  # refusals are forgotten in time: an event for them would shift all later numbers
        case _ as never:
            assert_never(never)


def changes(entry: e.CallAnswered) -> Iterator[AgentEvent]:
    """What a call that the session answered itself has changed, beside its result."""
    if entry.tasks is not None:
        told = [task.model_dump(mode="json", exclude={"created_at"}) for task in entry.tasks]
        yield AgentEvent(type="CUSTOM", name="tasks_changed", value={"tasks": told})
    if entry.groups is not None:
        yield AgentEvent(type="CUSTOM", name="tool_groups_changed", value={"activated_groups": list(entry.groups)})
    if entry.plan is not None:
        value = {"active": entry.plan.active, "file": entry.plan.place}
        yield AgentEvent(type="CUSTOM", name="plan_mode_changed", value=value)


def _of_pause(entry: e.Paused | e.Unpaused | e.StepAsked | e.StepBegun) -> AgentEvent | None:
    match entry:
        case e.Paused():
            return AgentEvent(type="CUSTOM", name="paused", value={"by": entry.by, "why": entry.why})
        case e.Unpaused():
            return AgentEvent(type="CUSTOM", name="resumed", value={"by": entry.by})
        case e.StepAsked():
            return AgentEvent(type="CUSTOM", name="step_asked", value={"by": entry.by})
        case e.StepBegun():
            return None
        case _ as never:
            assert_never(never)


def _of_joined(entry: e.Joined) -> AgentEvent:
    ids = {"request_ids": list(entry.request_ids), "reply_ids": list(entry.reply_ids)}
    return AgentEvent(type="CUSTOM", name="joined", value=ids)


def _of_shutdown(entry: e.WorkerLeft) -> AgentEvent:
    value = {"worker": entry.worker, "doing": entry.doing}
    return AgentEvent(type="CUSTOM", name="worker_left", tool_call_id=entry.call_id, value=value)


def _of_hooks(entry: e.InterruptHandled) -> AgentEvent | None:
    """What they said is told with the end of the reply."""
    if not entry.error:
        return None
    return AgentEvent(type="CUSTOM", name="handle_interrupt_failed", value={"reason": entry.error})


def _of_doubt(entry: e.DoubtProbed | e.DoubtSettled) -> AgentEvent:
    value: dict[str, object]
    if isinstance(entry, e.DoubtProbed):
        value = {"finding": entry.finding, "detail": entry.detail}
        return AgentEvent(type="CUSTOM", name="doubt_probed", tool_call_id=entry.call_id, value=value)
    value = {"happened": entry.happened, "output": entry.output, "by": entry.by, "reason": entry.reason}
    return AgentEvent(type="CUSTOM", name="doubt_settled", tool_call_id=entry.call_id, value=value)


def _ruled(entry: e.RulesChanged) -> dict[str, object]:
    added = [rule.model_dump(mode="json") for rule in entry.add]
    return {"added": added, "revoked": list(entry.revoked), "by": entry.by, "why": entry.why}


def _told(entry: e.ContextCompressed) -> dict[str, object]:
    return {
        "epoch": entry.epoch,
        "condenser": entry.condenser,
        "model": entry.model,
        "summary_tokens": entry.summary_tokens,
        "offloaded": entry.offloaded,
    }
