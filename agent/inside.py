"""Tools that the session answers itself: from a call and the record to an entry, without a worker.

Rules of this file: it reads the record and changes nothing; what a call changes stands in its entry. Workers know these
tools by description alone, to tell the model of them and to check what it hands them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import ValidationError

from agent.bodies import what_is_wrong
from agent.entries import CallAnswered
from agent.ledger import Ledger
from agent.messages import ToolResultBlock, ToolResultState
from agent.state import OpenCall
from agent.tasks import BadTodos, Todo, replaced, tasks_text
from agent.values import Guest

Answer = Callable[[OpenCall, Ledger], CallAnswered]

TODO_WRITE = "todo_write"


class InsideTool(NamedTuple):
    name: str
    description: str
    input_schema: dict[str, Any]
    answer: Answer


def answer(call: OpenCall, ledger: Ledger) -> CallAnswered:
    """The entry for an allowed call of one of these tools."""
    return INSIDE[call.block.name].answer(call, ledger)


def told(call: OpenCall, text: str) -> ToolResultBlock:
    return ToolResultBlock(id=call.block.id, name=call.block.name, output=text)


def failed(call: OpenCall, text: str) -> CallAnswered:
    return CallAnswered(
        result=ToolResultBlock(id=call.block.id, name=call.block.name, output=text, state=ToolResultState.ERROR)
    )


class _Todos(Guest):
    todos: tuple[Todo, ...]


def _todo_write(call: OpenCall, ledger: Ledger) -> CallAnswered:
    try:
        wanted = _Todos.model_validate_json(call.input)
        tasks = replaced(ledger.state.tasks_context.tasks, wanted.todos)
    except ValidationError as error:
        return failed(call, what_is_wrong(error))
    except BadTodos as error:
        return failed(call, str(error))
    return CallAnswered(result=told(call, tasks_text(tasks)), tasks=tasks)


_TODO_WRITE = InsideTool(
    name=TODO_WRITE,
    description="""\
Writes the list of tasks for the work at hand, in the place of the list before; people see it as well.

- For work of three steps or more. Give the whole list each time: what is left out is gone.
- Exactly one task is in_progress while you work; mark it completed as soon as it is done, and take the next.
- A task whose text stays the same keeps its number.""",
    input_schema={
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "description": "All tasks, in the order in which they are to be done.",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string", "minLength": 1, "description": "What is to be done."},
                        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                        "priority": {"type": "string", "enum": ["high", "medium", "low"]},
                        "id": {"type": "string", "maxLength": 50, "description": "Of a task whose text changes."},
                    },
                    "required": ["content", "status"],
                },
            }
        },
        "required": ["todos"],
        "additionalProperties": False,
    },
    answer=_todo_write,
)

INSIDE: dict[str, InsideTool] = {tool.name: tool for tool in (_TODO_WRITE,)}
