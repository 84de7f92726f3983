"""Words for a model about its plan: where it is, and what it may do next."""

from longhaul.agent.values.plan_notebook import (
    CREATE_PLAN,
    FINISH_PLAN,
    FINISH_SUBTASK,
    REVISE_PLAN,
    UPDATE_SUBTASK,
)
from longhaul.agent.values.tasks import MARKS, NotebookPlan, Task, TasksContext, one_line, progress

NO_PLAN = "There is no plan."
THE_PLAN = "The plan as it stands"
"""How the words below begin: by the newest of these in its context the model knows how things stand."""

_BEGIN = f"Work of many steps begins with a plan: call {CREATE_PLAN} first. What a few steps do needs none: just do it."
_AT_FIRST = (
    f"Nothing is begun. Call {UPDATE_SUBTASK} with subtask_idx {{next}} and the state 'in_progress', and do that "
    "subtask. If it can't be done, find out what would help: ask, or change the plan."
)
_AT_WORK = f"Go on with it, and call {FINISH_SUBTASK} with what came of it when it is done: the next one then begins."
_BETWEEN = f"No subtask is in progress. Call {UPDATE_SUBTASK} with subtask_idx {{next}} and the state 'in_progress'."
_AT_LAST = (
    f"All subtasks are over: call {FINISH_PLAN} with the state 'done' and what came of it, and say that in your answer."
)
_ALWAYS = (
    f"{REVISE_PLAN} changes the plan. If you are asked for something else, do that first and then come back to the "
    f"plan; if nobody wants the plan any more, make sure of that, and call {FINISH_PLAN} with the state 'abandoned'."
)


def standing_text(known: TasksContext) -> str:
    """How things stand, and what to do."""
    if known.current_plan is None:
        return f"{NO_PLAN} {_BEGIN}"
    head = _plan(known.current_plan, known.tasks)
    return "\n".join((head, _next(known.tasks), _ALWAYS))


def _plan(plan: NotebookPlan, tasks: tuple[Task, ...]) -> str:
    done, total, _ = progress(tasks)
    lines = [f"{at}. {MARKS[task.state]} {one_line(task.subject)}" for at, task in enumerate(tasks)]
    return "\n".join((f"{THE_PLAN} ({done} of {total} subtasks done):", *_head(plan), *lines))


def _head(plan: NotebookPlan) -> list[str]:
    said = {"What it is about": plan.description, "Expected outcome": plan.expected_outcome}
    return [f"# {one_line(plan.name)}", *(f"{name}: {one_line(text)}" for name, text in said.items() if text)]


def _next(tasks: tuple[Task, ...]) -> str:
    """What there is to do now."""
    for at, task in enumerate(tasks):
        if task.state == "in_progress":
            return f"Subtask {at} is in progress.\n{subtask_text(at, task)}\n{_AT_WORK}"
    following = next((at for at, task in enumerate(tasks) if task.is_open), None)
    if following is None:
        return _AT_LAST
    begun = any(not task.is_open for task in tasks)
    return (_BETWEEN if begun else _AT_FIRST).format(next=following)


def subtask_text(at: int, task: Task) -> str:
    said = {
        "What it is about": task.description,
        "Expected outcome": task.expected_outcome,
        "What came of it": task.outcome,
        "Finished at": task.finished_at,
    }
    lines = [f"  {name}: {one_line(text)}" for name, text in said.items() if text]
    return "\n".join((f"{at}. {MARKS[task.state]} {one_line(task.subject)}", *lines))


def history_text(plans: tuple[NotebookPlan, ...]) -> str:
    """The plans that are over, the newest first."""
    if not plans:
        return "No plan is over yet."
    return "\n".join(_past(plan) for plan in reversed(plans))


def _past(plan: NotebookPlan) -> str:
    done, total, _ = progress(plan.subtasks)
    counted = f"{plan.state}, {done} of {total} subtasks done, begun at {plan.created_at}"
    outcome = [f"  What came of it: {one_line(plan.outcome)}"] if plan.outcome else []
    return "\n".join((f"plan_id {plan.id}: {one_line(plan.name)} ({counted})", *outcome))
