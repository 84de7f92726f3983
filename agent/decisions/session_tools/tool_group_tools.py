"""`reset_equipped_tools`: the agent chooses the groups of tools that it sees."""

from pydantic import ValidationError

from longhaul.agent.decisions.session_tools.session_tool import InsideTool, failed, told
from longhaul.agent.entries.all_entries import CallAnswered
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.tool_groups import RESET


class _Wanted(OpenValue):
    to_activate: tuple[str, ...]


def _reset(call: OpenCall, ledger: Ledger) -> CallAnswered:
    groups = ledger.spec.tool_groups
    try:
        wanted = _Wanted.model_validate_json(call.input).to_activate
    except ValidationError:
        return failed(call, "to_activate: a list of names is needed")
    if unknown := [name for name in wanted if name not in groups]:
        known = ", ".join(groups) or "none"
        return failed(call, f"to_activate: there is no group {unknown[0]!r}; the groups are: {known}")
    active = tuple(name for name in groups if name in wanted)
    lines = [f"- {name}: {', '.join(groups[name].tools)}" for name in active] or ["none"]
    return CallAnswered(result=told(call, "\n".join(("Active groups now:", *lines))), groups=active)


RESET_TOOL = InsideTool(
    name=RESET,
    description="""\
Chooses which groups of tools you have beside those that are always there. Give all that you need: a group that is not \
named is switched off.""",
    input_schema={
        "type": "object",
        "properties": {"to_activate": {"type": "array", "items": {"type": "string"}, "maxItems": 100}},
        "required": ["to_activate"],
        "additionalProperties": False,
    },
    answer=_reset,
)
