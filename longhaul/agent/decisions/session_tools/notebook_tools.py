"""The plan notebook's tools for whole plans: made, changed, ended, taken up again.

The plan notebook's tools for the subtasks of the current plan.
"""

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from longhaul.agent.decisions.session_tools.session_tool import (
    Answer,
    InWorkflowTool,
    Wanted,
    failed,
    reading,
    result_of,
)
from longhaul.agent.entries import CallAnswered
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values import plans
from longhaul.agent.values.plans import history_text, standing_text, subtask_text
from longhaul.agent.values.tasks import MOST_TASKS, NotebookPlan, Task, TasksContext


class _Wanted(OpenValue):
    name: str = Field(min_length=1, max_length=plans.NAME_CHARS)
    description: str = Field(max_length=plans.TEXT_CHARS)
    expected_outcome: str = Field(max_length=plans.TEXT_CHARS)
    subtasks: tuple[plans.Subtask, ...] = Field(min_length=1)


class _Ended(OpenValue):
    state: Literal["done", "abandoned"]
    outcome: str = Field(min_length=1, max_length=plans.TEXT_CHARS)


class _Found(OpenValue):
    plan_id: str


def planning(kind: type[Wanted], do: Callable[[OpenCall, TasksContext, Wanted], CallAnswered]) -> Answer:
    """As `reading`, of what stands in the notebook; what can't be done with that is the model's mistake too."""

    def answer(call: OpenCall, session: SessionState, wanted: Wanted) -> CallAnswered:
        try:
            return do(call, session.state.tasks_context, wanted)
        except plans.BadPlan as error:
            return failed(call, str(error))

    return reading(kind, answer)


def stands(call: OpenCall, said: str, plan: NotebookPlan | None, tasks: tuple[Task, ...], **more: Any) -> CallAnswered:
    """What was done, and how things stand then."""
    text = standing_text(TasksContext(tasks=tasks, current_plan=plan))
    return CallAnswered(result=result_of(call, f"{said}\n\n{text}"), tasks=tasks, **more)


def current(known: TasksContext) -> NotebookPlan:
    """Raises BadPlan where there is none."""
    if known.current_plan is None:
        raise plans.BadPlan(f"there is no plan; make one by {plans.CREATE_PLAN}")
    return known.current_plan


def _create(call: OpenCall, known: TasksContext, wanted: _Wanted) -> CallAnswered:
    tasks = plans.started(wanted.subtasks)
    plan = NotebookPlan(
        id=plans.next_plan_id(known),
        name=wanted.name,
        description=wanted.description,
        expected_outcome=wanted.expected_outcome,
    )
    said, before = f"Plan {plan.name!r} is made.", known.current_plan
    if before is not None:
        said += f" Plan {before.name!r} is abandoned for it, and kept as {before.id}."
    over = plans.filed(known, "abandoned", f"plan {plan.id} ({plan.name}) took its place")
    return stands(call, said, plan, tasks, plans=plans.PlanChange(current=plan, filed=over))


def _finish_plan(call: OpenCall, known: TasksContext, wanted: _Ended) -> CallAnswered:
    plan = current(known)
    open_at = [at for at, task in enumerate(known.tasks) if task.is_open]
    if wanted.state == "done" and open_at:
        name = known.tasks[open_at[0]].subject
        raise plans.BadPlan(
            f"state: subtask {open_at[0]} ({name!r}) is not over, so the plan is not done; finish it, give it up by "
            f"{plans.UPDATE_SUBTASK}, or end the plan as 'abandoned'"
        )
    over = plans.filed(known, wanted.state, wanted.outcome)
    said = f"Plan {plan.name!r} is over: {wanted.state}."
    return stands(call, said, None, (), plans=plans.PlanChange(filed=over))


def _view_plan(call: OpenCall, known: TasksContext, _: OpenValue) -> CallAnswered:
    return CallAnswered(result=result_of(call, history_text(known.historical_plans)))


def _recover(call: OpenCall, known: TasksContext, wanted: _Found) -> CallAnswered:
    found = next((plan for plan in known.historical_plans if plan.id == wanted.plan_id), None)
    if found is None:
        ids = ", ".join(plan.id for plan in known.historical_plans) or "none"
        raise plans.BadPlan(f"plan_id: there is no plan {wanted.plan_id[:50]!r} that is over; there are: {ids}")
    again = found.model_copy(update={"state": "in_progress", "outcome": "", "finished_at": "", "subtasks": ()})
    said, before = f"Plan {found.name!r} is taken up again.", known.current_plan
    if before is not None:
        said += f" Plan {before.name!r} is abandoned for it, and kept as {before.id}."
    over = plans.filed(known, "abandoned", f"plan {found.id} ({found.name}) was taken up again in its place")
    change = plans.PlanChange(current=again, filed=over, recovered=found.id)
    return stands(call, said, again, found.subtasks, plans=change)


SUBTASK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": plans.NAME_CHARS,
            "description": "In ten words or less.",
        },
        "description": {
            "type": "string",
            "maxLength": plans.TEXT_CHARS,
            "description": "What is to be done, within which bounds.",
        },
        "expected_outcome": {
            "type": "string",
            "maxLength": plans.TEXT_CHARS,
            "description": "What there is when it is done, so that it can be checked.",
        },
    },
    "required": ["name", "description", "expected_outcome"],
    "additionalProperties": False,
}

CREATE = InWorkflowTool(
    name=plans.CREATE_PLAN,
    description="""\
Makes a plan for the work at hand: a list of subtasks that are done one after the other. People see it as well. A plan \
that there is already is kept as abandoned.""",
    input_schema={
        **SUBTASK_SCHEMA,
        "properties": {
            **SUBTASK_SCHEMA["properties"],
            "subtasks": {"type": "array", "minItems": 1, "maxItems": MOST_TASKS, "items": SUBTASK_SCHEMA},
        },
        "required": [*SUBTASK_SCHEMA["required"], "subtasks"],
    },
    answer=planning(_Wanted, _create),
)

FINISH_PLAN = InWorkflowTool(
    name=plans.FINISH_PLAN,
    description="""\
Ends the plan: as done, when all of its subtasks are over, or as abandoned, once the person who asked for it \
says so.""",
    input_schema={
        "type": "object",
        "properties": {
            "state": {"type": "string", "enum": ["done", "abandoned"]},
            "outcome": {
                "type": "string",
                "minLength": 1,
                "maxLength": plans.TEXT_CHARS,
                "description": "What came of it, or why it is given up.",
            },
        },
        "required": ["state", "outcome"],
        "additionalProperties": False,
    },
    answer=planning(_Ended, _finish_plan),
)

VIEW_HISTORY = InWorkflowTool(
    name=plans.VIEW_PLANS,
    description="Lists the plans that are over, the newest first.",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    answer=planning(OpenValue, _view_plan),
)

RECOVER = InWorkflowTool(
    name=plans.RECOVER_PLAN,
    description="Takes a plan up again that is over. A current one is kept as abandoned.",
    input_schema={
        "type": "object",
        "properties": {"plan_id": {"type": "string", "description": f"As {plans.VIEW_PLANS} tells it."}},
        "required": ["plan_id"],
        "additionalProperties": False,
    },
    answer=planning(_Found, _recover),
)


class _Revision(OpenValue):
    subtask_idx: int
    action: plans.Action
    subtask: plans.Subtask | None = None


class _Move(OpenValue):
    subtask_idx: int
    state: plans.Moved


class _Outcome(OpenValue):
    subtask_idx: int
    subtask_outcome: str = Field(min_length=1, max_length=plans.OUTCOME_CHARS)


class _Places(OpenValue):
    subtask_idx: tuple[int, ...] = Field(min_length=1, max_length=MOST_TASKS)


def _revise(call: OpenCall, known: TasksContext, wanted: _Revision) -> CallAnswered:
    plan = current(known)
    tasks = plans.revised(known.tasks, wanted.subtask_idx, wanted.action, wanted.subtask)
    done = {"add": "added", "revise": "revised", "delete": "deleted"}[wanted.action]
    return stands(call, f"Subtask {wanted.subtask_idx} is {done}.", plan, tasks)


def _update(call: OpenCall, known: TasksContext, wanted: _Move) -> CallAnswered:
    plan = current(known)
    tasks = plans.moved(known.tasks, wanted.subtask_idx, wanted.state)
    return stands(call, f"Subtask {wanted.subtask_idx} is {wanted.state} now.", plan, tasks)


def _finish_subtask(call: OpenCall, known: TasksContext, wanted: _Outcome) -> CallAnswered:
    plan = current(known)
    tasks = plans.finished(known.tasks, wanted.subtask_idx, wanted.subtask_outcome)
    return stands(call, f"Subtask {wanted.subtask_idx} is done.", plan, tasks)


def _view_subtasks(call: OpenCall, known: TasksContext, wanted: _Places) -> CallAnswered:
    current(known)
    found = plans.viewed(known.tasks, wanted.subtask_idx)
    return CallAnswered(result=result_of(call, "\n".join(subtask_text(at, task) for at, task in found)))


_PLACE: dict[str, Any] = {"type": "integer", "minimum": 0, "description": "Of the subtask in the plan, from 0 on."}

REVISE = InWorkflowTool(
    name=plans.REVISE_PLAN,
    description="""\
Changes the plan by one subtask: adds it before the one with this number, rewrites it, or deletes it.""",
    input_schema={
        "type": "object",
        "properties": {
            "subtask_idx": _PLACE,
            "action": {"type": "string", "enum": ["add", "revise", "delete"]},
            "subtask": {**SUBTASK_SCHEMA, "description": "To add, or to write in the place of the old one."},
        },
        "required": ["subtask_idx", "action"],
        "additionalProperties": False,
    },
    answer=planning(_Revision, _revise),
)

UPDATE = InWorkflowTool(
    name=plans.UPDATE_SUBTASK,
    description=f"""\
Begins a subtask, puts it back or gives it up. One at a time is in progress, and those before it are over. Report one \
that is done with {plans.FINISH_SUBTASK}.""",
    input_schema={
        "type": "object",
        "properties": {
            "subtask_idx": _PLACE,
            "state": {"type": "string", "enum": ["todo", "in_progress", "abandoned"]},
        },
        "required": ["subtask_idx", "state"],
        "additionalProperties": False,
    },
    answer=planning(_Move, _update),
)

FINISH_SUBTASK = InWorkflowTool(
    name=plans.FINISH_SUBTASK,
    description="Marks a subtask as done, with what came of it; the next one starts.",
    input_schema={
        "type": "object",
        "properties": {
            "subtask_idx": _PLACE,
            "subtask_outcome": {
                "type": "string",
                "minLength": 1,
                "maxLength": plans.OUTCOME_CHARS,
                "description": """\
What there is now: the analysis, the numbers, the path of a file; not that you did it. Write what is long into a file, \
and name that.""",
            },
        },
        "required": ["subtask_idx", "subtask_outcome"],
        "additionalProperties": False,
    },
    answer=planning(_Outcome, _finish_subtask),
)

VIEW = InWorkflowTool(
    name=plans.VIEW_SUBTASKS,
    description="Shows subtasks of the plan with all that is known of them.",
    input_schema={
        "type": "object",
        "properties": {
            "subtask_idx": {"type": "array", "items": _PLACE, "minItems": 1, "maxItems": MOST_TASKS},
        },
        "required": ["subtask_idx"],
        "additionalProperties": False,
    },
    answer=planning(_Places, _view_subtasks),
)
