"""Changes the ledger by notifications, unknown outcomes and sleeping calls: what starts each of them, and what ends
it.
"""

from collections.abc import Iterable, Sequence
from typing import assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import (
    KEPT_DOUBTS,
    KEPT_NOTICES,
    SOURCE,
    Doubt,
    Given,
    Notice,
    NotifyTry,
    SleepBegun,
    SleepEntry,
    WakeUpCame,
    cut,
    settled_text,
    shown_arguments,
)
from longhaul.agent.fold.agent_state import OpenCall
from longhaul.agent.fold.ledger import KEPT_REQUESTS, Ledger, WakeUps
from longhaul.agent.plain.measures import iso
from longhaul.agent.values.conversation.messages import ToolCallState, ToolResultBlock
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.deadlines import Over, Sleep

_EVENTS = {"remind": "reminded", "escalate": "escalated", "expire": "expired"}
NOT_TOLD = "the worker that wrote the checkpoint has notified nobody"


def begin_notices(ledger: Ledger, calls: Iterable[OpenCall], seq: int) -> None:
    """Calls have begun to wait. Whoever waits for them is told by a checkpoint, so there has to be one."""
    _add_as_lists(ledger, [_notice(call, "waits", seq, call.asked_at) for call in calls if call.waits_for])


def due(ledger: Ledger, entry: e.DeadlineReached) -> None:
    """Before the calls are closed. What was not told yet of the same waits is overtaken."""
    _forget(ledger, {each.call_id for each in entry.due})
    _add_as_lists(ledger, [_due(ledger.current.calls[each.call_id], each, entry) for each in entry.due])


def _due(call: OpenCall, reached: e.Due, entry: e.DeadlineReached) -> Notice:
    shown = shown_arguments(call.input) if reached.closes else ""
    update = {"to": reached.to, "closed": reached.closes, "shown": shown}
    return _notice(call, _EVENTS[reached.stage], entry.seq, entry.at).model_copy(update=update)


def _forget(ledger: Ledger, call_ids: set[str]) -> None:
    for key, notice in list(ledger.notices.unsent.items()):
        left = [each for each in notice.each() if each.call_id not in call_ids]
        if left:
            ledger.notices.unsent[key] = left[0].model_copy(update={"more": tuple(left[1:])})
        else:
            del ledger.notices.unsent[key]


def _add_as_lists(ledger: Ledger, notices: Sequence[Notice]) -> None:
    """One notice for all that the same people are told of the same thing."""
    lists = dict[tuple[object, ...], list[Notice]]()
    for notice in notices:
        lists.setdefault((notice.event, notice.waits_for, notice.to, notice.closed), []).append(notice)
    for first, *rest in lists.values():
        _add(ledger, first.model_copy(update={"more": tuple(rest)}))


def _notice(call: OpenCall, event: str, seq: int, at: int) -> Notice:
    expires = call.deadline.expire_after if call.deadline else None
    return Notice.model_validate(
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


def _add(ledger: Ledger, notice: Notice) -> None:
    ledger.notices.unsent[notice.key] = notice
    too_many = sum(1 + len(kept.more) for kept in ledger.notices.unsent.values()) - KEPT_NOTICES
    oldest = [each.call_id for kept in ledger.notices.unsent.values() for each in kept.each()] if too_many > 0 else []
    _forget(ledger, set(oldest[: max(too_many, 0)]))


def checkpointed(ledger: Ledger, entry: e.Checkpointed) -> None:
    for given in entry.notified:
        _note(ledger, given)
    left = any(notice.seq <= entry.through for notice in ledger.notices.unsent.values())
    ledger.notices.failed = _failed(ledger, entry.at, entry.notify_error or NOT_TOLD) if left else None


def checkpoint_failed(ledger: Ledger, entry: e.CheckpointFailed) -> None:
    if ledger.notices.unsent:
        ledger.notices.failed = _failed(ledger, entry.at, entry.error.message)


def notices_time_reached(ledger: Ledger, at: int) -> None:
    tried = ledger.notices.failed
    if tried is not None and at >= tried.due_at:
        ledger.notices.failed = tried._replace(again=True)


def _note(ledger: Ledger, given: Given) -> None:
    notice = ledger.notices.unsent.get(given.key)
    if notice is None:
        return
    # A new table: what a checkpoint makes of a copy of the ledger must not change the original.
    rest = {key: other for key, other in ledger.notices.unsent.items() if key != given.key}
    told = {} if given.done else {given.key: notice.model_copy(update={"given": given.channels})}
    ledger.notices.unsent = {**told, **rest}


def _failed(ledger: Ledger, at: int, error: str) -> NotifyTry:
    before = ledger.notices.failed.tries if ledger.notices.failed else 0
    return NotifyTry(at, before + 1, error)


PROBE = "the tool's probe"
SOMEBODY = "somebody"


def begin_doubt(ledger: Ledger, call: OpenCall, result: ToolResultBlock, at: int, *, runs_on: bool = False) -> None:
    tool = ledger.provided.tools.get(call.block.name)
    due = tool is not None and tool.probes
    ledger.doubts[result.id] = Doubt(
        call_id=result.id,
        tool=call.block.name,
        reply_id=ledger.current.reply_id,
        input=call.input if due else cut(call.input),
        why=cut(result.get_text()),
        at=at,
        cwd=ledger.state.tool_context.cwd,
        due=due,
        runs_on=runs_on,
    )
    if not due:
        ledger.keep_unmarked(result.id, "")
    while len(ledger.doubts) > KEPT_DOUBTS:
        # The oldest that is settled, or the oldest of all.
        settled = (call_id for call_id, doubt in ledger.doubts.items() if not doubt.open)
        least = next(settled, next(iter(ledger.doubts)))
        ledger.keep_unmarked(least, "")
        del ledger.doubts[least]


def apply_doubt(ledger: Ledger, entry: e.DoubtEntry) -> None:
    doubt = ledger.doubts.get(entry.call_id)
    if doubt is None:
        return  # put aside for newer ones while it was looked at
    match entry:
        case e.DoubtProbed():
            _probed(ledger, doubt, entry)
        case e.DoubtSettled():
            told = f"On the word of {entry.by or SOMEBODY}{f': {entry.reason}' if entry.reason else '.'}"
            _settle(ledger, doubt, entry, by=entry.by or SOMEBODY, told=told)
        case _ as never:
            assert_never(never)


def _probed(ledger: Ledger, doubt: Doubt, entry: e.DoubtProbed) -> None:
    ledger.keep_unmarked(doubt.call_id, "")
    looked = doubt.model_copy(update={"due": False, "finding": entry.finding, "input": cut(doubt.input)})
    too_early = entry.finding == "did_not" and doubt.runs_on
    if entry.finding == "unknown" or too_early or not doubt.open:
        # A person's word that came while the tool looked stands.
        ledger.doubts[doubt.call_id] = looked
        return
    told = f"{doubt.tool} has looked{f': {entry.detail}' if entry.detail else '.'}"
    _settle(ledger, looked, entry, by=PROBE, told=told)


def _settle(ledger: Ledger, doubt: Doubt, entry: e.DoubtEntry, *, by: str, told: str) -> None:
    """The result that the model has read stays as it is: what is known now comes behind it."""
    happened = entry.happened if isinstance(entry, e.DoubtSettled) else entry.finding == "happened"
    ledger.keep_unmarked(doubt.call_id, "")
    output = entry.output if isinstance(entry, e.DoubtSettled) else ""
    update = {"due": False, "happened": happened, "by": by, "input": cut(doubt.input)}
    settled = doubt.model_copy(update=update)
    ledger.doubts[doubt.call_id] = settled
    stamp = {"id": f"m{entry.seq}.0", "created_at": iso(entry.at)}
    message = hint_message(settled_text(settled, told, output), SOURCE).model_copy(update=stamp)
    if ledger.reply and ledger.reply.calls:
        ledger.context.deferred.append(message)  # nothing may stand between a call and its result
    else:
        ledger.append((message,))


def apply_sleep(ledger: Ledger, entry: SleepEntry) -> None:
    match entry:
        case SleepBegun():
            _begin(ledger, entry)
        case WakeUpCame():
            _came(ledger, entry)
        case _ as never:
            assert_never(never)


def sleep_time_reached(ledger: Ledger, at: int) -> None:
    for call in asleep(ledger):
        if call.sleep is not None and call.sleep.until <= at:
            _end(call, "time")


def message_came(ledger: Ledger) -> None:
    """Who says something that the reply is to hear at its next step would else wait for days."""
    for call in asleep(ledger):
        _end(call, "message")


def asleep(ledger: Ledger) -> list[OpenCall]:
    """Calls that sleep and have not been woken."""
    return [call for call in ledger.open_calls.values() if call.sleep is not None and call.waits_for == "wake-up"]


def _begin(ledger: Ledger, entry: SleepBegun) -> None:
    call = ledger.current.calls[entry.call_id]
    call.state, call.asked_at = ToolCallState.SUBMITTED, entry.at
    call.sleep = Sleep(until=entry.until, event=entry.event)
    if ledger.requests.steering:
        _end(call, "message")
        return
    kept = ledger.wake_ups.kept if ledger.wake_ups else []
    if (first := next((one for one in kept if one.event == entry.event), None)) is not None:
        _wake(ledger, call, first)
        ledger.wake_ups = WakeUps([one for one in kept if one is not first], _handled(ledger))


def _came(ledger: Ledger, entry: WakeUpCame) -> None:
    """Of two that are in their own lives the first of an id, and both here when these are joined, one counts."""
    handled = _handled(ledger)
    if entry.request_id in handled:
        return
    handled[entry.request_id] = entry.body_digest
    while len(handled) > KEPT_REQUESTS:
        del handled[next(iter(handled))]
    kept = [*ledger.wake_ups.kept] if ledger.wake_ups else []
    waits = (call for call in asleep(ledger) if call.sleep is not None and call.sleep.event == entry.event)
    if (call := next(waits, None)) is not None:
        _wake(ledger, call, entry)
    else:
        kept.append(entry)
    ledger.wake_ups = WakeUps(kept, handled)


def _handled(ledger: Ledger) -> dict[str, str]:
    return {**ledger.wake_ups.handled} if ledger.wake_ups else {}


def _wake(ledger: Ledger, call: OpenCall, came: WakeUpCame) -> None:
    _end(call, "event")
    if call.sleep is not None:
        call.sleep = call.sleep.model_copy(update={"payload": came.payload, "came_at": came.at, "by": came.by})
    if came.payload and not ledger.state.tainted:
        ledger.state.tainted = f"a notification of {came.event!r} brought in what others wrote"


def _end(call: OpenCall, why: Over) -> None:
    if call.sleep is not None:
        call.sleep = call.sleep.model_copy(update={"over": why})
