"""Plan mode: the agent looks and thinks, and changes nothing until a person has approved its plan.

The plan notebook: a plan of many steps, whose subtasks are the session's tasks, and what may become of each.

Places of subtasks count from 0, as AgentScope's `subtask_idx`.

Words for a model about its plan: where it is, and what it may do next.
"""

import posixpath
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from longhaul.agent.plain.values import CodeWithName, Given, Names, OpenValue, sparse, stated
from longhaul.agent.values.tasks import (
    MARKS,
    MOST_CHARS,
    MOST_TASKS,
    NotebookPlan,
    Task,
    TasksContext,
    next_id,
    one_line,
    progress,
)
from longhaul.agent.values.tool_groups import ToolGroup

DEFAULT_FILE = "plans/PLAN.md"
"""Below the workspace, as AgentScope Java has it."""

PLAN_ENTER, PLAN_EXIT = "plan_enter", "plan_exit"
IS_ON, IS_OVER = "Plan mode is on", "Plan mode is over"
"""How the model is told: by the newest of these in its context it knows how things stand."""


class PlanModeContext(OpenValue):
    """The mode to go back to is the one in `permission_context`: plan mode stands above it."""

    active: bool = False
    file: str = sparse("")
    """Where the agent may write its plan, absolute or below the workspace; empty = DEFAULT_FILE."""

    @property
    def place(self) -> str:
        return self.file or DEFAULT_FILE


NO_PLAN_MODE = PlanModeContext()


def plan_file(plan: PlanModeContext, workspace_root: str) -> str:
    """The one file that may be written, absolute; empty when it does not lie below the workspace."""
    path = posixpath.normpath(posixpath.join(workspace_root, plan.place))
    return path if workspace_root and path.startswith(f"{workspace_root.rstrip('/')}/") else ""


def on_text(plan: PlanModeContext, *, may_exit: bool) -> str:
    """What the model is told when plan mode begins."""
    end = (
        f"When the plan is ready, call {PLAN_EXIT} with all of it: a person approves it, changes it, or says why not."
        if may_exit
        else "When the plan is ready, tell it as your answer: a person ends plan mode."
    )
    return (
        f"{IS_ON}: only calls run that are proven to change nothing. Find out what you need and work out a plan. "
        f"The only file that you may write is {plan.place}, for the plan. {end}"
    )


def over_text(mode: str) -> str:
    return f"{IS_OVER}: calls run again as permission says, in the mode {mode!r}."


PLAN_RELATED = "plan_related"
"""The group's name, as AgentScope has it."""

CREATE_PLAN, REVISE_PLAN, FINISH_PLAN = "create_plan", "revise_current_plan", "finish_plan"
UPDATE_SUBTASK, FINISH_SUBTASK, VIEW_SUBTASKS = "update_subtask_state", "finish_subtask", "view_subtasks"
VIEW_PLANS, RECOVER_PLAN = "view_historical_plans", "recover_historical_plan"
CHANGING = (CREATE_PLAN, REVISE_PLAN, UPDATE_SUBTASK, FINISH_SUBTASK, FINISH_PLAN, RECOVER_PLAN)
PLAN_TOOLS = (*CHANGING, VIEW_SUBTASKS, VIEW_PLANS)

KEPT_PLANS = 20
KEPT_PLANS_CHARS = 100_000
"""Of plans that are over, as JSON together: they are carried along."""
NAME_CHARS, TEXT_CHARS, OUTCOME_CHARS = 200, 4_000, 1_000

Action = Literal["add", "revise", "delete"]
Moved = Literal["todo", "in_progress", "abandoned"]


class PlanNotebook(ToolGroup):
    """The group `plan_related`: the tools with which an agent makes a plan and follows it."""

    tools: Given[Names, Sequence[str | CodeWithName]] = stated(PLAN_TOOLS)
    description: str = (
        "A notebook for plans. Take it for work of many steps, or that goes on for long: you write a plan down, go "
        "through its subtasks one by one, and are shown where you are."
    )


def with_notebook(groups: Any) -> Any:
    """Groups as they are written; of PLAN_RELATED its tools and what it is for need not be said."""
    match groups:
        case {"plan_related": dict() as said}:
            return {**groups, PLAN_RELATED: {**PlanNotebook().model_dump(mode="json"), **said}}
        case {"plan_related": PlanNotebook() as said}:
            # As it is read back: settings are compared.
            return {**groups, PLAN_RELATED: said.model_dump(mode="json")}
        case _:
            return groups


class PlanChange(OpenValue):
    """What a call has done to the session's plans. The subtasks of the current one are tasks, and named beside it."""

    current: NotebookPlan | None = None
    """None: there is none now."""
    filed: NotebookPlan | None = sparse(None)
    """It is over."""
    recovered: str = sparse("")
    """Id of the one that was over and goes on."""


class Subtask(OpenValue):
    """As the model writes it."""

    name: str = Field(min_length=1, max_length=NAME_CHARS)
    description: str = Field(max_length=TEXT_CHARS)
    expected_outcome: str = Field(max_length=TEXT_CHARS)


class BadPlan(ValueError):
    """The model's mistake, in a sentence that it can act on."""


def started(subtasks: tuple[Subtask, ...]) -> tuple[Task, ...]:
    """The tasks of a new plan. Raises BadPlan for too many or too long ones."""
    tasks = tuple(_task(subtask, str(number)) for number, subtask in enumerate(subtasks, start=1))
    _check(tasks)
    return tasks


def revised(tasks: tuple[Task, ...], at: int, action: Action, subtask: Subtask | None) -> tuple[Task, ...]:
    """With another subtask before this place, another one in it, or none. What is revised is to be done (again)."""
    if action == "delete":
        _at(tasks, at)
        if len(tasks) == 1:
            raise BadPlan(f"subtask_idx: {at} is the plan's only subtask; revise it, or end the plan by {FINISH_PLAN}")
        return (*tasks[:at], *tasks[at + 1 :])
    if subtask is None:
        raise BadPlan(f"subtask: with the action {action!r} it has to be there")
    if action == "add":
        if not 0 <= at <= len(tasks):
            raise BadPlan(f"subtask_idx: {at} is no place to add one; they go from 0 to {len(tasks)}, the end")
        new = (*tasks[:at], _task(subtask, next_id(task.id for task in tasks)), *tasks[at:])
    else:
        before = _at(tasks, at)
        state = "in_progress" if before.state == "in_progress" else "pending"
        again = _task(subtask, before.id).model_copy(update={"state": state, "created_at": before.created_at})
        new = (*tasks[:at], again, *tasks[at + 1 :])
    _check(new)
    return new


def moved(tasks: tuple[Task, ...], at: int, to: Moved) -> tuple[Task, ...]:
    """With a subtask begun, put back or given up. One at a time is started, when those before it are over."""
    task = _at(tasks, at)
    if to == "in_progress":
        _check_turn(tasks, at)
        others = [place for place, one in enumerate(tasks) if one.state == "in_progress" and place != at]
        if others:
            raise BadPlan(f"subtask {others[0]} ({tasks[others[0]].subject!r}) is in progress; finish it first")
    state = "pending" if to == "todo" else to
    return _with(tasks, at, task.model_copy(update={"state": state, "outcome": "", "finished_at": ""}))


def finished(tasks: tuple[Task, ...], at: int, outcome: str) -> tuple[Task, ...]:
    """With a subtask done, and the next one that is still to be done begun."""
    done = _at(tasks, at).model_copy(update={"state": "completed", "outcome": outcome})
    _check_turn(tasks, at)
    left = _with(tasks, at, done)
    following = next((place for place, task in enumerate(left) if task.is_open), None)
    if following is None or any(task.state == "in_progress" for task in left):
        return left
    return _with(left, following, left[following].model_copy(update={"state": "in_progress"}))


def viewed(tasks: tuple[Task, ...], places: tuple[int, ...]) -> tuple[tuple[int, Task], ...]:
    """Places and subtasks, each once."""
    return tuple((at, _at(tasks, at)) for at in dict.fromkeys(places))


def filed(known: TasksContext, state: Literal["done", "abandoned"], outcome: str) -> NotebookPlan | None:
    """The current plan as one that is over, with its subtasks; None without one."""
    over = {"state": state, "outcome": outcome, "subtasks": known.tasks}
    return known.current_plan.model_copy(update=over) if known.current_plan else None


def next_plan_id(known: TasksContext) -> str:
    plans = (*known.historical_plans, *((known.current_plan,) if known.current_plan else ()))
    return next_id(plan.id for plan in plans)


def kept(plans: tuple[NotebookPlan, ...]) -> tuple[NotebookPlan, ...]:
    """The newest, as many as are carried along."""
    newest, chars = list[NotebookPlan](), 0
    for plan in reversed(plans[-KEPT_PLANS:]):
        chars += len(plan.model_dump_json())
        if newest and chars > KEPT_PLANS_CHARS:
            break
        newest.insert(0, plan)
    return tuple(newest)


def _check(tasks: tuple[Task, ...]) -> None:
    if len(tasks) > MOST_TASKS:
        raise BadPlan(f"subtasks: these are {len(tasks)}, and the most is {MOST_TASKS}; join small ones")
    if sum(len(task.subject) + len(task.description) + len(task.expected_outcome) for task in tasks) > MOST_CHARS:
        raise BadPlan(f"subtasks: their texts have more than {MOST_CHARS} characters together; say them shorter")
    for at, task in enumerate(tasks):
        if not task.subject.strip():
            raise BadPlan(f"subtasks[{at}].name is blank; say what is to be done")


def _check_turn(tasks: tuple[Task, ...], at: int) -> None:
    for place, task in enumerate(tasks[:at]):
        if task.is_open:
            raise BadPlan(f"subtask {place} ({task.subject!r}) comes before {at} and is not over; finish it first")


def _at(tasks: tuple[Task, ...], at: int) -> Task:
    if not 0 <= at < len(tasks):
        raise BadPlan(f"subtask_idx: there is no subtask {at}; there are {len(tasks)}, counted from 0")
    return tasks[at]


def _with(tasks: tuple[Task, ...], at: int, task: Task) -> tuple[Task, ...]:
    return (*tasks[:at], task, *tasks[at + 1 :])


def _task(subtask: Subtask, task_id: str) -> Task:
    return Task(
        id=task_id,
        subject=subtask.name,
        description=subtask.description,
        expected_outcome=subtask.expected_outcome,
    )


NO_PLAN = "There is no plan."
THE_PLAN = "The plan as it stands"
"""How the words below begin: by the newest of these in its context the model knows how things stand."""

_BEGIN = f"Work of many steps begins with a plan: call {CREATE_PLAN} first. What a few steps do needs none: just do it."
_AT_FIRST = (
    f"Nothing is started. Call {UPDATE_SUBTASK} with subtask_idx {{next}} and the state 'in_progress', and do that "
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
    done, total, _ = progress(known.tasks)
    lines = [f"{at}. {MARKS[task.state]} {one_line(task.subject)}" for at, task in enumerate(known.tasks)]
    head = "\n".join((f"{THE_PLAN} ({done} of {total} subtasks done):", *_head(known.current_plan), *lines))
    return "\n".join((head, _next(known.tasks), _ALWAYS))


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
    started = any(not task.is_open for task in tasks)
    return (_BETWEEN if started else _AT_FIRST).format(next=following)


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
    counted = f"{plan.state}, {done} of {total} subtasks done, started at {plan.created_at}"
    outcome = [f"  What came of it: {one_line(plan.outcome)}"] if plan.outcome else []
    return "\n".join((f"plan_id {plan.id}: {one_line(plan.name)} ({counted})", *outcome))
