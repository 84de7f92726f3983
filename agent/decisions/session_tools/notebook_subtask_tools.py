"""The plan notebook's tools for the subtasks of the current plan."""

from typing import Any

from pydantic import Field

from longhaul.agent.decisions.session_tools.notebook_tools import SUBTASK_SCHEMA, current, planning, stands
from longhaul.agent.decisions.session_tools.session_tool import InsideTool, told
from longhaul.agent.entries.all_entries import CallAnswered
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values import plan_notebook as book
from longhaul.agent.values.plan_texts import subtask_text
from longhaul.agent.values.tasks import MOST_TASKS, TasksContext


class _Revision(OpenValue):
    subtask_idx: int
    action: book.Action
    subtask: book.Subtask | None = None


class _Move(OpenValue):
    subtask_idx: int
    state: book.Moved


class _Outcome(OpenValue):
    subtask_idx: int
    subtask_outcome: str = Field(min_length=1, max_length=book.OUTCOME_CHARS)


class _Places(OpenValue):
    subtask_idx: tuple[int, ...] = Field(min_length=1, max_length=MOST_TASKS)


def _revise(call: OpenCall, known: TasksContext, wanted: _Revision) -> CallAnswered:
    plan = current(known)
    tasks = book.revised(known.tasks, wanted.subtask_idx, wanted.action, wanted.subtask)
    done = {"add": "added", "revise": "revised", "delete": "deleted"}[wanted.action]
    return stands(call, f"Subtask {wanted.subtask_idx} is {done}.", plan, tasks)


def _update(call: OpenCall, known: TasksContext, wanted: _Move) -> CallAnswered:
    plan = current(known)
    tasks = book.moved(known.tasks, wanted.subtask_idx, wanted.state)
    return stands(call, f"Subtask {wanted.subtask_idx} is {wanted.state} now.", plan, tasks)


def _finish(call: OpenCall, known: TasksContext, wanted: _Outcome) -> CallAnswered:
    plan = current(known)
    tasks = book.finished(known.tasks, wanted.subtask_idx, wanted.subtask_outcome)
    return stands(call, f"Subtask {wanted.subtask_idx} is done.", plan, tasks)


def _view(call: OpenCall, known: TasksContext, wanted: _Places) -> CallAnswered:
    current(known)
    found = book.viewed(known.tasks, wanted.subtask_idx)
    return CallAnswered(result=told(call, "\n".join(subtask_text(at, task) for at, task in found)))


_PLACE: dict[str, Any] = {"type": "integer", "minimum": 0, "description": "Of the subtask in the plan, from 0 on."}

REVISE = InsideTool(
    name=book.REVISE_PLAN,
    description="""\
Changes the plan by one subtask: adds it before the one with this number, writes that one anew, or deletes it.""",
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

UPDATE = InsideTool(
    name=book.UPDATE_SUBTASK,
    description=f"""\
Begins a subtask, puts it back or gives it up. One at a time is in progress, and those before it are over. One that is \
done is told by {book.FINISH_SUBTASK}.""",
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

FINISH = InsideTool(
    name=book.FINISH_SUBTASK,
    description="Marks a subtask as done, with what came of it; the next one is begun.",
    input_schema={
        "type": "object",
        "properties": {
            "subtask_idx": _PLACE,
            "subtask_outcome": {
                "type": "string",
                "minLength": 1,
                "maxLength": book.OUTCOME_CHARS,
                "description": """\
What there is now: the facts, the numbers, the path of a file; not that you did it. Write what is long into a file, \
and name that.""",
            },
        },
        "required": ["subtask_idx", "subtask_outcome"],
        "additionalProperties": False,
    },
    answer=planning(_Outcome, _finish),
)

VIEW = InsideTool(
    name=book.VIEW_SUBTASKS,
    description="Shows subtasks of the plan with all that is known of them.",
    input_schema={
        "type": "object",
        "properties": {
            "subtask_idx": {"type": "array", "items": _PLACE, "minItems": 1, "maxItems": MOST_TASKS},
        },
        "required": ["subtask_idx"],
        "additionalProperties": False,
    },
    answer=planning(_Places, _view),
)
