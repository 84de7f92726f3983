"""The plan notebook's tools for whole plans: made, changed, ended, taken up again."""

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from longhaul.agent.decisions.session_tools.session_tool import Answer, InsideTool, Wanted, failed, reading, told
from longhaul.agent.entries.all_entries import CallAnswered
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values import plan_notebook as book
from longhaul.agent.values.plan_texts import history_text, standing_text
from longhaul.agent.values.tasks import MOST_TASKS, NotebookPlan, Task, TasksContext


class _Wanted(OpenValue):
    name: str = Field(min_length=1, max_length=book.NAME_CHARS)
    description: str = Field(max_length=book.TEXT_CHARS)
    expected_outcome: str = Field(max_length=book.TEXT_CHARS)
    subtasks: tuple[book.Subtask, ...] = Field(min_length=1)


class _Ended(OpenValue):
    state: Literal["done", "abandoned"]
    outcome: str = Field(min_length=1, max_length=book.TEXT_CHARS)


class _Found(OpenValue):
    plan_id: str


def planning(kind: type[Wanted], do: Callable[[OpenCall, TasksContext, Wanted], CallAnswered]) -> Answer:
    """As `reading`, of what stands in the notebook; what can't be done with that is the model's mistake too."""

    def answer(call: OpenCall, ledger: Ledger, wanted: Wanted) -> CallAnswered:
        try:
            return do(call, ledger.state.tasks_context, wanted)
        except book.BadPlan as error:
            return failed(call, str(error))

    return reading(kind, answer)


def stands(call: OpenCall, said: str, plan: NotebookPlan | None, tasks: tuple[Task, ...], **more: Any) -> CallAnswered:
    """What was done, and how things stand then."""
    text = standing_text(TasksContext(tasks=tasks, current_plan=plan))
    return CallAnswered(result=told(call, f"{said}\n\n{text}"), tasks=tasks, **more)


def current(known: TasksContext) -> NotebookPlan:
    """Raises BadPlan where there is none."""
    if known.current_plan is None:
        raise book.BadPlan(f"there is no plan; make one by {book.CREATE_PLAN}")
    return known.current_plan


def _create(call: OpenCall, known: TasksContext, wanted: _Wanted) -> CallAnswered:
    tasks = book.begun(wanted.subtasks)
    plan = NotebookPlan(
        id=book.next_plan_id(known),
        name=wanted.name,
        description=wanted.description,
        expected_outcome=wanted.expected_outcome,
    )
    said, before = f"Plan {plan.name!r} is made.", known.current_plan
    if before is not None:
        said += f" Plan {before.name!r} is abandoned for it, and kept as {before.id}."
    over = book.filed(known, "abandoned", f"plan {plan.id} ({plan.name}) took its place")
    return stands(call, said, plan, tasks, plans=book.PlanChange(current=plan, filed=over))


def _finish(call: OpenCall, known: TasksContext, wanted: _Ended) -> CallAnswered:
    plan = current(known)
    open_at = [at for at, task in enumerate(known.tasks) if task.is_open]
    if wanted.state == "done" and open_at:
        name = known.tasks[open_at[0]].subject
        raise book.BadPlan(
            f"state: subtask {open_at[0]} ({name!r}) is not over, so the plan is not done; finish it, give it up by "
            f"{book.UPDATE_SUBTASK}, or end the plan as 'abandoned'"
        )
    over = book.filed(known, wanted.state, wanted.outcome)
    said = f"Plan {plan.name!r} is over: {wanted.state}."
    return stands(call, said, None, (), plans=book.PlanChange(filed=over))


def _view(call: OpenCall, known: TasksContext, _: OpenValue) -> CallAnswered:
    return CallAnswered(result=told(call, history_text(known.historical_plans)))


def _recover(call: OpenCall, known: TasksContext, wanted: _Found) -> CallAnswered:
    found = next((plan for plan in known.historical_plans if plan.id == wanted.plan_id), None)
    if found is None:
        ids = ", ".join(plan.id for plan in known.historical_plans) or "none"
        raise book.BadPlan(f"plan_id: there is no plan {wanted.plan_id[:50]!r} that is over; there are: {ids}")
    again = found.model_copy(update={"state": "in_progress", "outcome": "", "finished_at": "", "subtasks": ()})
    said, before = f"Plan {found.name!r} is taken up again.", known.current_plan
    if before is not None:
        said += f" Plan {before.name!r} is abandoned for it, and kept as {before.id}."
    over = book.filed(known, "abandoned", f"plan {found.id} ({found.name}) was taken up again in its place")
    change = book.PlanChange(current=again, filed=over, recovered=found.id)
    return stands(call, said, again, found.subtasks, plans=change)


SUBTASK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": book.NAME_CHARS,
            "description": "In ten words or less.",
        },
        "description": {
            "type": "string",
            "maxLength": book.TEXT_CHARS,
            "description": "What is to be done, within which bounds.",
        },
        "expected_outcome": {
            "type": "string",
            "maxLength": book.TEXT_CHARS,
            "description": "What there is when it is done, so that it can be checked.",
        },
    },
    "required": ["name", "description", "expected_outcome"],
    "additionalProperties": False,
}

CREATE = InsideTool(
    name=book.CREATE_PLAN,
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

FINISH = InsideTool(
    name=book.FINISH_PLAN,
    description="""\
Ends the plan: as done, when all of its subtasks are over, or as abandoned, once whoever asked for it has said so.""",
    input_schema={
        "type": "object",
        "properties": {
            "state": {"type": "string", "enum": ["done", "abandoned"]},
            "outcome": {
                "type": "string",
                "minLength": 1,
                "maxLength": book.TEXT_CHARS,
                "description": "What came of it, or why it is given up.",
            },
        },
        "required": ["state", "outcome"],
        "additionalProperties": False,
    },
    answer=planning(_Ended, _finish),
)

VIEW_HISTORY = InsideTool(
    name=book.VIEW_PLANS,
    description="Lists the plans that are over, the newest first.",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    answer=planning(OpenValue, _view),
)

RECOVER = InsideTool(
    name=book.RECOVER_PLAN,
    description="Takes a plan up again that is over. A current one is kept as abandoned.",
    input_schema={
        "type": "object",
        "properties": {"plan_id": {"type": "string", "description": f"As {book.VIEW_PLANS} tells it."}},
        "required": ["plan_id"],
        "additionalProperties": False,
    },
    answer=planning(_Found, _recover),
)
