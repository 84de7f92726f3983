"""`todo_write`: the model's list of tasks."""

from longhaul.agent.decisions.session_tools.session_tool import InsideTool, failed, reading, told
from longhaul.agent.entries.all_entries import CallAnswered
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.tasks import BadTodos, Todo, replaced, tasks_text


class _Todos(OpenValue):
    todos: tuple[Todo, ...]


def _todo_write(call: OpenCall, ledger: Ledger, wanted: _Todos) -> CallAnswered:
    try:
        tasks = replaced(ledger.state.tasks_context.tasks, wanted.todos)
    except BadTodos as error:
        return failed(call, str(error))
    return CallAnswered(result=told(call, tasks_text(tasks)), tasks=tasks)


TODO_WRITE = InsideTool(
    name="todo_write",
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
    answer=reading(_Todos, _todo_write),
)
