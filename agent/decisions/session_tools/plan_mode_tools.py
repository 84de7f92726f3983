"""`plan_enter` and `plan_exit`: into plan mode by itself, out of it by a person's word."""

from pydantic import ValidationError

from longhaul.agent.decisions.session_tools.session_tool import InsideTool, failed, told
from longhaul.agent.entries.all_entries import CallAnswered
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.plan import PLAN_ENTER, PLAN_EXIT, on_text, over_text

LONGEST_PLAN_CHARS = 50_000


class _Plan(OpenValue):
    plan: str


def _enter(call: OpenCall, ledger: Ledger) -> CallAnswered:
    plan = ledger.state.plan_mode_context.model_copy(update={"active": True})
    text = on_text(plan, may_exit=PLAN_EXIT in ledger.provided.tools)
    return CallAnswered(result=told(call, text), plan=plan)


def _exit(call: OpenCall, ledger: Ledger) -> CallAnswered:
    try:
        approved = _Plan.model_validate_json(call.input).plan
    except ValidationError:
        return failed(call, "plan: the text of the plan is missing")
    plan = ledger.state.plan_mode_context.model_copy(update={"active": False})
    return CallAnswered(result=told(call, _approved(call, ledger, approved)), plan=plan)


def _approved(call: OpenCall, ledger: Ledger, plan: str) -> str:
    mode = ledger.state.permission_context.mode
    before = PermissionMode.DEFAULT if mode is PermissionMode.PLAN else mode
    who = f" by {call.approver}" if call.approver else ""
    if not call.edited:
        return f"{over_text(before.value)} Your plan was approved{who}; carry it out."
    return f"{over_text(before.value)} Your plan was changed and approved{who}; carry out this one:\n\n{plan}"


PLAN_ENTER_TOOL = InsideTool(
    name=PLAN_ENTER,
    description="""\
Begins plan mode, for work that should be thought through before anything changes. Until a person has approved your \
plan, only calls run that change nothing.""",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    answer=_enter,
)

PLAN_EXIT_TOOL = InsideTool(
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
