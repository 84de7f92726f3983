"""Changes the session's tasks and plans by calls that the session has answered."""

from longhaul.agent.entries.session_tools import CallAnswered
from longhaul.agent.plain.times import iso
from longhaul.agent.values.plan_notebook import PlanChange, kept
from longhaul.agent.values.tasks import NotebookPlan, Task, TasksContext


def changed(known: TasksContext, entry: CallAnswered) -> TasksContext:
    """Tasks and plans after the call, with the times of what it began and ended."""
    now = iso(entry.at)
    followed = known.current_plan is not None
    tasks = known.tasks if entry.tasks is None else tuple(_stamped(task, now, followed) for task in entry.tasks)
    after = known.model_copy(update={"tasks": tasks})
    return after if entry.plans is None else _with_plans(after, entry.plans, now)


def _stamped(task: Task, now: str, followed: bool) -> Task:  # noqa: FBT001
    times = {} if task.created_at else {"created_at": now}
    if followed and not (task.is_open or task.finished_at):
        times["finished_at"] = now
    return task.model_copy(update=times) if times else task


def _with_plans(known: TasksContext, change: PlanChange, now: str) -> TasksContext:
    past = tuple(plan for plan in known.historical_plans if plan.id != change.recovered)
    if change.filed is not None:
        past = (*past, change.filed.model_copy(update={"finished_at": now}))
    return known.model_copy(update={"current_plan": _begun(change.current, now), "historical_plans": kept(past)})


def _begun(plan: NotebookPlan | None, now: str) -> NotebookPlan | None:
    return plan.model_copy(update={"created_at": now}) if plan is not None and not plan.created_at else plan
