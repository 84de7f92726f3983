"""Tools whose calls take several approvals: what one person alone may not do to them."""

from longhaul.agent.letters.bodies import ChangeRules, Configure, ReplaceState, Unusable
from longhaul.agent.permission.rulebook import id_of
from longhaul.agent.record import Record
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule

_EDITING = frozenset({"Write", "Edit", "Bash"})
"""What `accept_edits` lets run unasked."""


def refuse_alone(record: Record, body: object) -> None:
    """Whoever sends a letter is one person. Raises Unusable for what would let such calls run without the others."""
    context = record.state.permission_context
    if not (tools := _taking_several(context)):
        return
    match body:
        case Configure():
            _check_mode(body.mode, tools)
            _check_added(body.rules, tools)
        case ChangeRules():
            _check_added(body.add, tools)
            kept = {id_of(rule): rule for rule in context.rules if rule.behavior is not Behavior.ALLOW}
            if gone := next((kept[one] for one in body.revoke if one in kept and kept[one].tool_name in tools), None):
                raise Unusable(f"revoke: {gone.spelt()} stays: {_sentence(gone.tool_name)}")
        case ReplaceState() if body.state.get("permission_context") != context.model_dump(mode="json"):
            raise Unusable(f"state.permission_context: it stays as it is: {_sentence(min(tools))}")
        case _:
            pass


def _taking_several(context: PermissionContext) -> frozenset[str]:
    return frozenset(name for name in context.tools if context.approvers(name) > 1)


def _check_mode(mode: PermissionMode | None, tools: frozenset[str]) -> None:
    if mode is PermissionMode.BYPASS or (mode is PermissionMode.ACCEPT_EDITS and tools & _EDITING):
        raise Unusable(f"mode: {mode.value!r} can't be set here: {_sentence(min(tools))}")


def _check_added(rules: tuple[PermissionRule, ...], tools: frozenset[str]) -> None:
    for rule in rules:
        if rule.behavior is Behavior.ALLOW and rule.tool_name in tools:
            raise Unusable(f"rules: {rule.spelt()} can't be allowed in advance: {_sentence(rule.tool_name)}")


def _sentence(tool: str) -> str:
    return f"calls of {tool!r} take more than one approval each, so that nobody lets them run alone; see the agent file"
