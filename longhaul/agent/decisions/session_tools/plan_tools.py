"""Tools that the session answers itself about its plan: `plan_enter`, `plan_exit`, `todo_write`, and
`reset_equipped_tools`, by which the agent chooses its tool groups.
"""

from pydantic import ValidationError

from longhaul.agent.decisions.session_tools.session_tool import InWorkflowTool, failed, reading, result_of
from longhaul.agent.entries import CallAnswered
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.plans import PLAN_ENTER, PLAN_EXIT, on_text, over_text
from longhaul.agent.values.tasks import BadTodos, Todo, replaced, tasks_text
from longhaul.agent.values.tool_groups import RESET

LONGEST_PLAN_CHARS = 50_000


class _Plan(OpenValue):
    plan: str


def _enter(call: OpenCall, session: SessionState) -> CallAnswered:
    plan = session.state.plan_mode_context.model_copy(update={"active": True})
    text = on_text(plan, may_exit=PLAN_EXIT in session.provided.tools)
    return CallAnswered(result=result_of(call, text), plan=plan)


def _exit(call: OpenCall, session: SessionState) -> CallAnswered:
    try:
        approved = _Plan.model_validate_json(call.input).plan
    except ValidationError:
        return failed(call, "plan: the text of the plan is missing")
    plan = session.state.plan_mode_context.model_copy(update={"active": False})
    return CallAnswered(result=result_of(call, _approved(call, session, approved)), plan=plan)


def _approved(call: OpenCall, session: SessionState, plan: str) -> str:
    mode = session.state.permission_context.mode
    before = PermissionMode.DEFAULT if mode is PermissionMode.PLAN else mode
    who = f" by {call.approver}" if call.approver else ""
    if not call.edited:
        return f"{over_text(before.value)} Your plan was approved{who}; carry it out."
    return f"{over_text(before.value)} Your plan was changed and approved{who}; carry out this one:\n\n{plan}"


PLAN_ENTER_TOOL = InWorkflowTool(
    name=PLAN_ENTER,
    description="""\
Begins plan mode, for work that should be thought through before anything changes. Until a person has approved your \
plan, only calls run that change nothing.""",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    answer=_enter,
)

PLAN_EXIT_TOOL = InWorkflowTool(
    name=PLAN_EXIT,
    description="""\
Hands your plan to a person. Approved, perhaps with changes, it ends plan mode, and you carry it out; denied, you read \
why and plan on. Give the whole plan: what will change, where, in which order, and how it is checked.""",
    input_schema={
        "type": "object",
        "properties": {
            "plan": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_PLAN_CHARS,
                "description": "The whole plan, in Markdown.",
            }
        },
        "required": ["plan"],
        "additionalProperties": False,
    },
    answer=_exit,
)


class _Todos(OpenValue):
    todos: tuple[Todo, ...]


def _todo_write(call: OpenCall, session: SessionState, wanted: _Todos) -> CallAnswered:
    try:
        tasks = replaced(session.state.tasks_context.tasks, wanted.todos)
    except BadTodos as error:
        return failed(call, str(error))
    return CallAnswered(result=result_of(call, tasks_text(tasks)), tasks=tasks)


TODO_WRITE = InWorkflowTool(
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


class _Wanted(OpenValue):
    to_activate: tuple[str, ...]


def _reset(call: OpenCall, session: SessionState) -> CallAnswered:
    groups = session.spec.tool_groups
    try:
        wanted = _Wanted.model_validate_json(call.input).to_activate
    except ValidationError:
        return failed(call, "to_activate: a list of names is needed")
    if unknown := [name for name in wanted if name not in groups]:
        known = ", ".join(groups) or "none"
        return failed(call, f"to_activate: there is no group {unknown[0]!r}; the groups are: {known}")
    active = tuple(name for name in groups if name in wanted)
    lines = [f"- {name}: {', '.join(groups[name].tools)}" for name in active] or ["none"]
    return CallAnswered(result=result_of(call, "\n".join(("Active groups now:", *lines))), groups=active)


RESET_TOOL = InWorkflowTool(
    name=RESET,
    description="""\
Chooses which groups of tools you have besides those that are always there. Give all that you need: a group that is \
not named is switched off.""",
    input_schema={
        "type": "object",
        "properties": {"to_activate": {"type": "array", "items": {"type": "string"}, "maxItems": 100}},
        "required": ["to_activate"],
        "additionalProperties": False,
    },
    answer=_reset,
)
