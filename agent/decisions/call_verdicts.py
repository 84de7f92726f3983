"""From a call's facts to the verdict on it: permission, what a person said before, and whether to look again."""

from longhaul.agent.decisions import background
from longhaul.agent.decisions.findings_validity import findings_hold, terms_hold
from longhaul.agent.decisions.structured_output import verdict_on
from longhaul.agent.decisions.subagents import why_not
from longhaul.agent.entries.all_entries import Ruling, Verdict
from longhaul.agent.fold.ledger.agent_state import OpenCall, effect_of
from longhaul.agent.fold.ledger.approval_digest import material
from longhaul.agent.permission.confirmation_policy import stricter, warning_of
from longhaul.agent.permission.decision_table import PermissionDecision, decide_call
from longhaul.agent.permission.plan_mode import decide_plan_tool, decide_planning
from longhaul.agent.permission.preview import preview
from longhaul.agent.permission.rulebook import in_force
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ToolCallState
from longhaul.agent.values.conversation.structured_output import GENERATE_RESPONSE
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior
from longhaul.agent.values.plan import PLAN_EXIT, plan_file
from longhaul.agent.values.tool_groups import hidden, why_hidden

MAX_UNSETTLED = 5
"""A world that keeps changing under a call would otherwise have it decided on for ever."""


def judge(call: OpenCall, record: Record, at_ms: int = 0, *, planning: bool | None = None) -> Verdict:
    """The verdict on a call whose facts are fresh, by the rules that count at this time (0: at the newest entry's).
    `planning`: whether plan mode is on then; if not said, as it is now."""
    planning = record.state.planning if planning is None else planning
    tool = record.provided.tools.get(call.block.name)
    if tool is None:
        unseen = hidden(record.spec.tool_groups, record.state.tool_context.activated_groups)
        known = ", ".join(sorted(name for name in record.provided.tools if name not in unseen)) or "none"
        return _verdict(call, "invalid", f"there is no tool {call.block.name!r}; the tools are: {known}")
    if (wrong := _why_not_now(call, record, planning=planning)) or (wrong := call.facts.arguments_error):
        return _verdict(call, "invalid", wrong)
    if tool.inside and tool.name == GENERATE_RESPONSE:
        return verdict_on(call)
    if call.times_unsettled > MAX_UNSETTLED:
        return _verdict(call, "invalid", f"each time it was about to run, something had changed: {call.changed}")
    decision = _permission(call, record, tool, at_ms, planning=planning)
    match decision.behavior:
        case Behavior.DENY:
            return _verdict(call, "deny", decision.reason)
        case Behavior.ASK if not (findings_hold(call) and terms_hold(call, record, tool)):
            return _question(call, record, tool, decision)
        case _:
            verdict = _verdict(call, "external" if tool.external else "allow", decision.reason)
            if decision.behavior is Behavior.ALLOW and decision.confined:
                verdict = verdict.model_copy(update={"confined": decision.confined})
            warning = "" if call.approved or tool.inside else warning_of(record.permission, call.facts)
            return verdict.model_copy(update={"warning": warning}) if warning else verdict


def _why_not_now(call: OpenCall, record: Record, *, planning: bool) -> str:
    """Why a tool that there is can't be called as things stand."""
    groups, activated = record.spec.tool_groups, record.state.tool_context.activated_groups
    if call.block.name in hidden(groups, activated):
        return why_hidden(call.block.name, groups, activated)
    tool = record.provided.tools[call.block.name]
    if tool.inside and tool.name == PLAN_EXIT and not planning:
        return "plan mode is not on, so there is nothing to leave"
    return "" if call.facts.arguments_error else why_not(call, tool, record) or background.why_not(call, tool, record)


def _permission(
    call: OpenCall, record: Record, tool: ToolDescriptor, at_ms: int, *, planning: bool
) -> PermissionDecision:
    state, root = record.state, record.provided.workspace_root
    context = in_force(record.permission, at_ms or record.latest_at)
    if not planning:
        decision = decide_call(tool, call.input, call.facts, context, root)
    else:
        file = plan_file(state.plan_mode_context, root)
        decision = decide_planning(tool, call.input, call.facts, context, root, file)
    decision = decide_plan_tool(tool, context.mode, decision)
    return decision if tool.inside else stricter(decision, context, call.facts)


def _question(call: OpenCall, record: Record, tool: ToolDescriptor, decision: PermissionDecision) -> Verdict:
    """The verdict that a person is asked, with all that they will be shown."""
    suggested = decision.suggested_rules
    return Verdict(
        call_id=call.block.id,
        behavior="ask",
        reason=f"{_why_again(call)}{decision.reason}",
        suggested_rules=suggested,
        seen=material(call, tool, record.permission, suggested),
        preview=preview(call.input, call.facts, effect_of(call, tool), tool.name if tool.inside else ""),
    )


_ASKED_BEFORE = "What it would touch has changed since it was asked about. "


def _why_again(call: OpenCall) -> str:
    if call.changed:
        return f"It was about to run when something had changed: {call.changed}. "
    if not call.approved and call.approvals:
        who = ", ".join(one.approver for one in call.approvals)
        return f"{who} has changed the arguments and approves them so; somebody else has to approve them too. "
    if not call.approved:
        return _ASKED_BEFORE if call.asked_at and call.state is not ToolCallState.ASKING else ""
    if findings_hold(call):
        return "The rules, or the tool itself, have changed since it was approved. "
    return "What it would touch has changed since it was approved. "


def _verdict(call: OpenCall, behavior: Ruling, reason: str) -> Verdict:
    return Verdict(call_id=call.block.id, behavior=behavior, reason=reason)
