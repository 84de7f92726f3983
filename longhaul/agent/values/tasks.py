"""The tasks of a session: a list that the model keeps with `todo_write`, or as the subtasks of a plan, and that people
and model are shown."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import field_validator

from longhaul.agent.plain.values import OpenValue, sparse

MOST_TASKS = 50
MOST_CHARS = 20_000
"""Of all tasks together: the list stands in the context, and is carried along."""

TodoState = Literal["pending", "in_progress", "completed"]
TaskState = Literal["pending", "in_progress", "completed", "abandoned"]
MARKS: dict[TaskState, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "abandoned": "[-]"}


class Task(OpenValue):
    """One task, with the names of AgentScope Java. What this project does not use itself is kept as it came."""

    id: str = ""
    subject: str
    state: TaskState = "pending"
    description: str = sparse("")
    metadata: dict[str, Any] = sparse({})
    created_at: str = sparse("")
    """ISO 8601; empty until the journal has stamped it."""
    owner: str = sparse("")
    blocks: tuple[str, ...] = sparse(())
    blocked_by: tuple[str, ...] = sparse(())
    expected_outcome: str = sparse("")
    outcome: str = sparse("")
    """What came of it."""
    finished_at: str = sparse("")
    """ISO 8601, of a subtask; stamped as `created_at` is."""

    @property
    def is_open(self) -> bool:
        return self.state in ("pending", "in_progress")

    @field_validator("description", "created_at", "owner", mode="before")
    @classmethod
    def _nothing_is_empty(cls, written: Any) -> Any:
        return "" if written is None else written


class NotebookPlan(OpenValue):
    """A plan of many steps, with the names of AgentScope."""

    id: str
    name: str
    description: str = sparse("")
    expected_outcome: str = sparse("")
    state: Literal["in_progress", "done", "abandoned"] = "in_progress"
    outcome: str = sparse("")
    """Of one that is over: what came of it, or why it was given up."""
    created_at: str = sparse("")
    finished_at: str = sparse("")
    """Both ISO 8601; empty until the journal has stamped them."""
    subtasks: tuple[Task, ...] = sparse(())
    """Of one that is over. Those of the current plan are the session's tasks."""


class TasksContext(OpenValue):
    tasks: tuple[Task, ...] = ()
    current_plan: NotebookPlan | None = sparse(None)
    historical_plans: tuple[NotebookPlan, ...] = sparse(())
    """Those that are over, the newest last."""


NO_TASKS = TasksContext()


class Todo(OpenValue):
    """One line of what the model writes."""

    content: str
    status: TodoState
    id: str = ""
    priority: Literal["high", "medium", "low"] | None = None


class BadTodos(ValueError):
    """The model's mistake, in a sentence that it can act on."""


def replaced(tasks: tuple[Task, ...], todos: tuple[Todo, ...]) -> tuple[Task, ...]:
    """The list that takes the place of `tasks`. A task of the same id, or of the same text, goes on as it was.

    Raises BadTodos for what can't be a list of tasks, before anything has changed.
    """
    _check(todos)
    left = {task.id: task for task in tasks}
    named = [left.pop(todo.id, None) if todo.id else None for todo in todos]
    used = {todo.id for todo in todos if todo.id} | set(left)
    new: list[Task] = []
    for todo, known in zip(todos, named, strict=True):
        before = known or next((task for task in left.values() if task.subject == todo.content), None)
        if before is not None:
            left.pop(before.id, None)
        task_id = todo.id or (before.id if before else "") or next_id(used)
        used.add(task_id)
        new.append(_task(todo, before, task_id))
    return tuple(new)


def _check(todos: tuple[Todo, ...]) -> None:
    if len(todos) > MOST_TASKS:
        raise BadTodos(f"todos: these are {len(todos)} tasks, and the most is {MOST_TASKS}; join small ones")
    if sum(len(todo.content) for todo in todos) > MOST_CHARS:
        raise BadTodos(f"todos: the texts have more than {MOST_CHARS} characters together; say them shorter")
    for at, todo in enumerate(todos):
        if not todo.content.strip():
            raise BadTodos(f"todos[{at}].content is blank; say what is to be done")
    current = [todo.content for todo in todos if todo.status == "in_progress"]
    if len(current) > 1:
        raise BadTodos(f"todos: {len(current)} tasks are in_progress; one at a time, the others are pending")
    ids = [todo.id for todo in todos if todo.id]
    if len(set(ids)) != len(ids):
        raise BadTodos(f"todos: two have the same id ({', '.join(ids)}); give each its own, or none")


def next_id(used: Iterable[str]) -> str:
    return str(max((int(each) for each in used if each.isascii() and each.isdigit() and len(each) < 10), default=0) + 1)


def _task(todo: Todo, before: Task | None, task_id: str) -> Task:
    task = before or Task(id=task_id, subject=todo.content)
    metadata = task.metadata if todo.priority is None else {**task.metadata, "priority": todo.priority}
    known = {"id": task_id, "subject": todo.content, "state": todo.status, "metadata": metadata}
    again = {} if todo.status == "completed" else {"outcome": "", "finished_at": ""}
    return task.model_copy(update={**known, **again})


def progress(tasks: tuple[Task, ...]) -> tuple[int, int, str]:
    """How many are done, how many there are without those that were given up, and the one that is being worked on."""
    done = sum(task.state == "completed" for task in tasks)
    total = sum(task.state != "abandoned" for task in tasks)
    return done, total, next((task.subject for task in tasks if task.state == "in_progress"), "")


def tasks_text(tasks: tuple[Task, ...]) -> str:
    """The list as the model reads it."""
    done, total, _ = progress(tasks)
    lines = [f"{task.id}. {MARKS[task.state]} {one_line(task.subject)}" for task in tasks]
    return "\n".join([f"{done} of {total} tasks done:", *lines]) if tasks else "There are no tasks."


def one_line(text: str) -> str:
    return " ".join(text.split())
