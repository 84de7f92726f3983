"""Permission in plan mode: what is proven to change nothing runs, the plan file may be written, the rest is denied.

Rules of this file: it only ever makes the engine's answer stricter, but for writes to the plan file, which are decided
as an edit within the workspace is.
"""

from longhaul.agent.permission.decision_table import WRITING_TOOLS, PermissionDecision, decide_call
from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode
from longhaul.agent.values.plan import IS_ON, PLAN_ENTER, PLAN_EXIT

REFUSED = (
    f"{IS_ON.lower()}: only calls run that are proven to change nothing and to read within the workspace, "
    "and writes to the plan file"
)
NOBODY_ASKED = "the mode 'dont_ask' asks nobody, and a plan has to be approved by a person"


def decide_planning(
    tool: ToolDescriptor,
    raw_input: str,
    facts: CallFacts,
    context: PermissionContext,
    workspace_root: str,
    plan_file: str,
) -> PermissionDecision:
    """Decide one call in plan mode. `plan_file`: absolute, or empty when none may be written."""
    if _writes_only(plan_file, tool, facts):
        editing = context.model_copy(update={"mode": PermissionMode.ACCEPT_EDITS})
        return decide_call(tool, raw_input, facts, editing, workspace_root)
    exploring = context.model_copy(update={"mode": PermissionMode.EXPLORE})
    unruled = exploring.model_copy(update={"rules": ()})
    if decide_call(tool, raw_input, facts, unruled, workspace_root).behavior is Behavior.DENY:
        return PermissionDecision(behavior=Behavior.DENY, reason=REFUSED)
    return decide_call(tool, raw_input, facts, exploring, workspace_root)


def decide_plan_tool(tool: ToolDescriptor, mode: PermissionMode, decision: PermissionDecision) -> PermissionDecision:
    """What the engine said, but that a plan is approved by a person in every mode and whatever rules allow."""
    if not tool.inside or tool.name not in (PLAN_ENTER, PLAN_EXIT) or decision.behavior is Behavior.DENY:
        return decision
    if mode is PermissionMode.DONT_ASK:
        return PermissionDecision(behavior=Behavior.DENY, reason=NOBODY_ASKED)
    if tool.name == PLAN_EXIT:
        return PermissionDecision(behavior=Behavior.ASK, reason="A plan has to be approved by a person")
    return decision


def _writes_only(plan_file: str, tool: ToolDescriptor, facts: CallFacts) -> bool:
    return (
        bool(plan_file)
        and tool.name in WRITING_TOOLS
        and [path.path for path in facts.paths] == [plan_file]
        and not facts.safety
        and not facts.not_understood
        and not any(path.danger for path in facts.paths)
    )
