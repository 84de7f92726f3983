"""The standing of a session's plan, for people and programs."""

from typing import Any

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.record import Record
from longhaul.agent.values.tasks import MOST_TASKS, NotebookPlan, Task, TaskState, progress

SHOWN_CHARS = 300
"""Of one text: what is written by hand into a state may have any length. The state has all of it."""
SHOWN_PLANS = 5


class SubtaskStanding(OpenValue):
    name: str
    state: TaskState
    outcome: str = sparse("")


class PlanStanding(OpenValue):
    """A plan in short; of one that is over no subtasks."""

    id: str
    name: str
    state: str
    description: str = sparse("")
    expected_outcome: str = sparse("")
    outcome: str = sparse("")
    created_at: str = sparse("")
    finished_at: str = sparse("")
    subtasks: tuple[SubtaskStanding, ...] = sparse(())


def tasks_told(record: Record) -> dict[str, Any]:
    """What a session's status says of its tasks and plans, under the names of its fields."""
    done, total, current = progress(record.state.tasks_context.tasks)
    plans = {"plan": plan_standing(record), "plans_over": plans_over(record)}
    return {"tasks_done": done, "tasks_total": total, "current_task": current, **plans}


def plan_standing(record: Record) -> PlanStanding | None:
    """Of the current one; None without one."""
    known = record.state.tasks_context
    if known.current_plan is None:
        return None
    subtasks = tuple(_of_subtask(task) for task in known.tasks[:MOST_TASKS])
    return _of(known.current_plan).model_copy(update={"subtasks": subtasks})


def plans_over(record: Record) -> tuple[PlanStanding, ...]:
    """The newest of those that are over, the newest last."""
    return tuple(_of(plan) for plan in record.state.tasks_context.historical_plans[-SHOWN_PLANS:])


def _of(plan: NotebookPlan) -> PlanStanding:
    texts = {name: _cut(text) for name, text in plan.model_dump(exclude={"subtasks"}).items()}
    return PlanStanding.model_validate(texts)


def _of_subtask(task: Task) -> SubtaskStanding:
    return SubtaskStanding(name=_cut(task.subject), state=task.state, outcome=_cut(task.outcome))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
