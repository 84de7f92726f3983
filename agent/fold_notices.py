"""How notices come to be, and how they are done with."""

from agent import entries as e
from agent.ledger import RESTORING, SUPERVISED, Ledger
from agent.notices import KEPT_NOTICES, Given, Notice, NotifyTry, shown_arguments
from agent.state import OpenCall

_EVENTS = {"remind": "reminded", "escalate": "escalated", "expire": "expired"}
NOT_TOLD = "the worker that wrote the checkpoint is of a release that notifies nobody"


def begin(ledger: Ledger, call: OpenCall, seq: int) -> None:
    """A call has begun to wait. Whoever waits for it is told by a checkpoint, so there has to be one."""
    if ledger.state.behaviour >= SUPERVISED and ledger.format >= RESTORING and call.waits_for:
        _add(ledger, _notice(call, "waits", seq, call.asked_at))


def due(ledger: Ledger, call: OpenCall, reached: e.Due, entry: e.DeadlineReached) -> None:
    """Before the call is closed. What was not told yet of the same wait is overtaken."""
    if ledger.format < RESTORING:
        return
    for key, notice in list(ledger.notices.items()):
        if notice.call_id == call.block.id:
            del ledger.notices[key]
    shown = shown_arguments(call.input) if reached.closes else ""
    update = {"to": reached.to, "closed": reached.closes, "shown": shown}
    _add(ledger, _notice(call, _EVENTS[reached.stage], entry.seq, entry.at).model_copy(update=update))


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
    ledger.notices[notice.key] = notice
    while len(ledger.notices) > KEPT_NOTICES:
        del ledger.notices[next(iter(ledger.notices))]


def checkpointed(ledger: Ledger, entry: e.Checkpointed) -> None:
    for given in entry.notified:
        _note(ledger, given)
    left = any(notice.seq <= entry.through for notice in ledger.notices.values())
    ledger.notify_failed = _failed(ledger, entry.at, entry.notify_error or NOT_TOLD) if left else None


def checkpoint_failed(ledger: Ledger, entry: e.CheckpointFailed) -> None:
    if ledger.notices:
        ledger.notify_failed = _failed(ledger, entry.at, entry.error.message)


def time_reached(ledger: Ledger, at: int) -> None:
    tried = ledger.notify_failed
    if tried is not None and at >= tried.due_at:
        ledger.notify_failed = tried._replace(again=True)


def _note(ledger: Ledger, given: Given) -> None:
    notice = ledger.notices.get(given.key)
    if notice is None:
        return
    # A new table: what a checkpoint makes of a copy of the ledger must not change the original.
    rest = {key: other for key, other in ledger.notices.items() if key != given.key}
    told = {} if given.done else {given.key: notice.model_copy(update={"given": given.channels})}
    ledger.notices = {**told, **rest}


def _failed(ledger: Ledger, at: int, error: str) -> NotifyTry:
    before = ledger.notify_failed.tries if ledger.notify_failed else 0
    return NotifyTry(at, before + 1, error)
