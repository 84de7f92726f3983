"""What a call that the session answers itself does to the ledger."""

from agent.entries import CallAnswered
from agent.fold_calls import close
from agent.ledger import Ledger
from agent.tasks import TasksContext
from agent.times import iso


def apply(ledger: Ledger, entry: CallAnswered) -> None:
    if entry.tasks is not None:
        now = iso(entry.at)
        stamped = (task if task.created_at else task.model_copy(update={"created_at": now}) for task in entry.tasks)
        ledger.state.tasks_context = TasksContext(tasks=tuple(stamped))
    if entry.plan is not None:
        ledger.state.take_plan(entry.plan)
        ledger.ruled = entry.seq
    close(ledger, ledger.current.calls[entry.result.id], entry.result, entry)
