"""What entries do to the ledger that no worker has a part in."""

from typing import assert_never

from agent import fold_stuck
from agent.entries import CallAnswered, Reminded
from agent.fold_calls import close
from agent.ledger import Ledger
from agent.standing import stamped, standing_hints
from agent.tasks import TasksContext
from agent.times import iso


def apply(ledger: Ledger, entry: CallAnswered | Reminded) -> None:
    match entry:
        case CallAnswered():
            _answered(ledger, entry)
        case Reminded():
            _reminded(ledger, entry)
        case _ as never:
            assert_never(never)


def _reminded(ledger: Ledger, entry: Reminded) -> None:
    if ledger.compressed_at == ledger.messages_total:
        # These words alone are no reason to compress once more.
        ledger.compressed_at += len(entry.messages)
    ledger.reminders = ()
    fold_stuck.note_warned(ledger)
    ledger.append(stamped(entry.messages, entry))


def _answered(ledger: Ledger, entry: CallAnswered) -> None:
    if entry.tasks is not None:
        now = iso(entry.at)
        stamped = (task if task.created_at else task.model_copy(update={"created_at": now}) for task in entry.tasks)
        ledger.state.tasks_context = TasksContext(tasks=tuple(stamped))
    if entry.plan is not None:
        ledger.state.take_plan(entry.plan)
        ledger.ruled = entry.seq
    if entry.groups is not None:
        ledger.state.tool_context.activated_groups = entry.groups
    close(ledger, ledger.current.calls[entry.result.id], entry.result, entry)
    if ledger.reminders:
        ledger.reminders = standing_hints(ledger)
