"""Changes the session state by notifications, unknown outcomes and sleeping calls: what starts each of them, and what
ends it.
"""

from collections.abc import Iterable, Sequence
from typing import assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import (
    KEPT_NOTIFICATIONS,
    KEPT_UNKNOWN_OUTCOMES,
    SOURCE,
    ExternalEventReceived,
    Given,
    Notification,
    NotifyTry,
    SleepEntry,
    SleepStarted,
    UnknownOutcome,
    cut,
    resolution_text,
    shown_arguments,
)
from longhaul.agent.plain.measures import iso
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.session_state import KEPT_REQUESTS, ExternalEvents, SessionState
from longhaul.agent.values.conversation.messages import ToolCallState, ToolResultBlock
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.deadlines import Over, Sleep

_EVENTS = {"remind": "reminded", "escalate": "escalated", "expire": "expired"}
NOT_TOLD = "the worker that wrote the checkpoint has notified nobody"


def begin_notifications(session: SessionState, calls: Iterable[OpenCall], seq: int) -> None:
    """Calls have started to wait. Whoever waits for them is told by a checkpoint, so there has to be one."""
    _add_as_lists(session, [_notification(call, "waits", seq, call.asked_at) for call in calls if call.waits_for])


def due(session: SessionState, entry: e.DeadlineReached) -> None:
    """Before the calls are closed. What was not told yet of the same waits is overtaken."""
    _forget(session, {each.call_id for each in entry.due})
    _add_as_lists(session, [_due(session.current.calls[each.call_id], each, entry) for each in entry.due])


def _due(call: OpenCall, reached: e.Due, entry: e.DeadlineReached) -> Notification:
    shown = shown_arguments(call.input) if reached.closes else ""
    update = {"to": reached.to, "closed": reached.closes, "shown": shown}
    return _notification(call, _EVENTS[reached.stage], entry.seq, entry.at).model_copy(update=update)


def _forget(session: SessionState, call_ids: set[str]) -> None:
    for key, notification in list(session.notifications.unsent.items()):
        left = [each for each in notification.each() if each.call_id not in call_ids]
        if left:
            session.notifications.unsent[key] = left[0].model_copy(update={"more": tuple(left[1:])})
        else:
            del session.notifications.unsent[key]


def _add_as_lists(session: SessionState, notifications: Sequence[Notification]) -> None:
    """One notice for all that the same people are told of the same thing."""
    lists = dict[tuple[object, ...], list[Notification]]()
    for notification in notifications:
        lists.setdefault((notification.event, notification.waits_for, notification.to, notification.closed), []).append(
            notification
        )
    for first, *rest in lists.values():
        _add(session, first.model_copy(update={"more": tuple(rest)}))


def _notification(call: OpenCall, event: str, seq: int, at: int) -> Notification:
    expires = call.deadline.expire_after if call.deadline else None
    return Notification.model_validate(
        {
            "event": event,
            "call_id": call.block.id,
            "tool": call.block.name,
            "waits_for": call.waits_for,
            "seq": seq,
            "at": at,
            "asked_at": call.asked_at,
            "reason": call.reason,
            "expires_at": 0 if expires is None else call.asked_at + round(expires * 1000),
        }
    )


def _add(session: SessionState, notification: Notification) -> None:
    session.notifications.unsent[notification.key] = notification
    too_many = sum(1 + len(kept.more) for kept in session.notifications.unsent.values()) - KEPT_NOTIFICATIONS
    oldest = (
        [each.call_id for kept in session.notifications.unsent.values() for each in kept.each()] if too_many > 0 else []
    )
    _forget(session, set(oldest[: max(too_many, 0)]))


def checkpointed(session: SessionState, entry: e.Checkpointed) -> None:
    for given in entry.notified:
        _note(session, given)
    left = any(notification.seq <= entry.through for notification in session.notifications.unsent.values())
    session.notifications.failed = _failed(session, entry.at, entry.notify_error or NOT_TOLD) if left else None


def checkpoint_failed(session: SessionState, entry: e.CheckpointFailed) -> None:
    if session.notifications.unsent:
        session.notifications.failed = _failed(session, entry.at, entry.error.message)


def notifications_time_reached(session: SessionState, at: int) -> None:
    tried = session.notifications.failed
    if tried is not None and at >= tried.due_at:
        session.notifications.failed = tried._replace(again=True)


def _note(session: SessionState, given: Given) -> None:
    notification = session.notifications.unsent.get(given.key)
    if notification is None:
        return
    # A new table: what a checkpoint makes of a copy of the session state must not change the original.
    rest = {key: other for key, other in session.notifications.unsent.items() if key != given.key}
    told = {} if given.done else {given.key: notification.model_copy(update={"given": given.channels})}
    session.notifications.unsent = {**told, **rest}


def _failed(session: SessionState, at: int, error: str) -> NotifyTry:
    before = session.notifications.failed.tries if session.notifications.failed else 0
    return NotifyTry(at, before + 1, error)


PROBE = "the tool's probe"
SOMEBODY = "somebody"


def begin_unknown_outcome(
    session: SessionState, call: OpenCall, result: ToolResultBlock, at: int, *, runs_on: bool = False
) -> None:
    tool = session.provided.tools.get(call.block.name)
    due = tool is not None and tool.probes
    session.unknown_outcomes[result.id] = UnknownOutcome(
        call_id=result.id,
        tool=call.block.name,
        reply_id=session.current.reply_id,
        input=call.input if due else cut(call.input),
        why=cut(result.get_text()),
        at=at,
        cwd=session.state.tool_context.cwd,
        due=due,
        runs_on=runs_on,
    )
    if not due:
        session.keep_unmarked(result.id, "")
    while len(session.unknown_outcomes) > KEPT_UNKNOWN_OUTCOMES:
        # The oldest that is settled, or the oldest of all.
        resolved = (
            call_id for call_id, unknown_outcome in session.unknown_outcomes.items() if not unknown_outcome.open
        )
        least = next(resolved, next(iter(session.unknown_outcomes)))
        session.keep_unmarked(least, "")
        del session.unknown_outcomes[least]


def apply_unknown_outcome(session: SessionState, entry: e.OutcomeEntry) -> None:
    unknown_outcome = session.unknown_outcomes.get(entry.call_id)
    if unknown_outcome is None:
        return  # put aside for newer ones while it was looked at
    match entry:
        case e.OutcomeProbed():
            _probed(session, unknown_outcome, entry)
        case e.OutcomeResolved():
            told = f"On the word of {entry.by or SOMEBODY}{f': {entry.reason}' if entry.reason else '.'}"
            _resolve(session, unknown_outcome, entry, by=entry.by or SOMEBODY, told=told)
        case _ as never:
            assert_never(never)


def _probed(session: SessionState, unknown_outcome: UnknownOutcome, entry: e.OutcomeProbed) -> None:
    session.keep_unmarked(unknown_outcome.call_id, "")
    looked = unknown_outcome.model_copy(
        update={"due": False, "finding": entry.finding, "input": cut(unknown_outcome.input)}
    )
    too_early = entry.finding == "did_not" and unknown_outcome.runs_on
    if entry.finding == "unknown" or too_early or not unknown_outcome.open:
        # A person's word that came while the tool looked stands.
        session.unknown_outcomes[unknown_outcome.call_id] = looked
        return
    told = f"{unknown_outcome.tool} has looked{f': {entry.detail}' if entry.detail else '.'}"
    _resolve(session, looked, entry, by=PROBE, told=told)


def _resolve(
    session: SessionState, unknown_outcome: UnknownOutcome, entry: e.OutcomeEntry, *, by: str, told: str
) -> None:
    """The result that the model has read stays as it is: what is known now comes behind it."""
    happened = entry.happened if isinstance(entry, e.OutcomeResolved) else entry.finding == "happened"
    session.keep_unmarked(unknown_outcome.call_id, "")
    output = entry.output if isinstance(entry, e.OutcomeResolved) else ""
    update = {"due": False, "happened": happened, "by": by, "input": cut(unknown_outcome.input)}
    resolved = unknown_outcome.model_copy(update=update)
    session.unknown_outcomes[unknown_outcome.call_id] = resolved
    stamp = {"id": f"m{entry.seq}.0", "created_at": iso(entry.at)}
    message = hint_message(resolution_text(resolved, told, output), SOURCE).model_copy(update=stamp)
    if session.reply and session.reply.calls:
        session.context.deferred.append(message)  # nothing may stand between a call and its result
    else:
        session.append((message,))


def apply_sleep(session: SessionState, entry: SleepEntry) -> None:
    match entry:
        case SleepStarted():
            _begin(session, entry)
        case ExternalEventReceived():
            _came(session, entry)
        case _ as never:
            assert_never(never)


def sleep_time_reached(session: SessionState, at: int) -> None:
    for call in asleep(session):
        if call.sleep is not None and call.sleep.until <= at:
            _end(call, "time")


def message_came(session: SessionState) -> None:
    """Who says something that the reply is to hear at its next step would else wait for days."""
    for call in asleep(session):
        _end(call, "message")


def asleep(session: SessionState) -> list[OpenCall]:
    """Calls that sleep and have not been woken."""
    return [call for call in session.open_calls.values() if call.sleep is not None and call.waits_for == "event"]


def _begin(session: SessionState, entry: SleepStarted) -> None:
    call = session.current.calls[entry.call_id]
    call.state, call.asked_at = ToolCallState.SUBMITTED, entry.at
    call.sleep = Sleep(until=entry.until, event=entry.event)
    if session.requests.steering:
        _end(call, "message")
        return
    kept = session.external_events.kept if session.external_events else []
    if (first := next((one for one in kept if one.event == entry.event), None)) is not None:
        _wake(session, call, first)
        session.external_events = ExternalEvents([one for one in kept if one is not first], _handled(session))


def _came(session: SessionState, entry: ExternalEventReceived) -> None:
    """Of two that are in their own lives the first of an id, and both here when these are joined, one counts."""
    handled = _handled(session)
    if entry.request_id in handled:
        return
    handled[entry.request_id] = entry.body_digest
    while len(handled) > KEPT_REQUESTS:
        del handled[next(iter(handled))]
    kept = [*session.external_events.kept] if session.external_events else []
    waits = (call for call in asleep(session) if call.sleep is not None and call.sleep.event == entry.event)
    if (call := next(waits, None)) is not None:
        _wake(session, call, entry)
    else:
        kept.append(entry)
    session.external_events = ExternalEvents(kept, handled)


def _handled(session: SessionState) -> dict[str, str]:
    return {**session.external_events.handled} if session.external_events else {}


def _wake(session: SessionState, call: OpenCall, came: ExternalEventReceived) -> None:
    _end(call, "event")
    if call.sleep is not None:
        call.sleep = call.sleep.model_copy(update={"payload": came.payload, "came_at": came.at, "by": came.by})
    if came.payload and not session.state.tainted:
        session.state.tainted = f"a notification of {came.event!r} brought in what others wrote"


def _end(call: OpenCall, why: Over) -> None:
    if call.sleep is not None:
        call.sleep = call.sleep.model_copy(update={"over": why})
