"""Begins notices, and ends those that are told."""

from collections.abc import Iterable, Sequence

from longhaul.agent.entries import all_entries as e
from longhaul.agent.entries.notices import KEPT_NOTICES, Given, Notice, NotifyTry, shown_arguments
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger

_EVENTS = {"remind": "reminded", "escalate": "escalated", "expire": "expired"}
NOT_TOLD = "the worker that wrote the checkpoint has notified nobody"


def begin(ledger: Ledger, calls: Iterable[OpenCall], seq: int) -> None:
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


def time_reached(ledger: Ledger, at: int) -> None:
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
