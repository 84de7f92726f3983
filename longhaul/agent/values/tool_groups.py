"""Groups of tools that an agent switches on when it needs them: among few tools a model chooses better."""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from longhaul.agent.plain.values import CodeWithName, Given, Names, Value, sparse
from longhaul.agent.values.conversation.tools import ToolDescriptor

RESET = "reset_equipped_tools"


class ToolGroup(Value):
    tools: Given[Names, Sequence[str | CodeWithName]] = Field(min_length=1)
    description: str = Field(min_length=1)
    """What the group is for. The model reads this."""
    active: bool = sparse(False)
    """The group is on when a session starts."""


Groups = Mapping[str, ToolGroup]


def check_groups(groups: Groups, tools: Iterable[str]) -> None:
    """Raise ValueError for a tool that is always there and in a group as well: it could not be switched off."""
    always = set(tools)
    for name, group in groups.items():
        if both := [tool for tool in group.tools if tool in always or tool == RESET]:
            raise ValueError(f"tool_groups.{name}: {both[0]!r} is always there; name it in `tools` or in a group")


def in_groups(groups: Groups) -> tuple[str, ...]:
    """The tools of all groups, and the one that switches them."""
    names = dict.fromkeys(tool for group in groups.values() for tool in group.tools)
    return (*names, RESET) if groups else ()


def active_at_first(groups: Groups) -> tuple[str, ...]:
    return tuple(name for name, group in groups.items() if group.active)


def hidden(groups: Groups, activated: Iterable[str]) -> tuple[str, ...]:
    """The tools that no active group has."""
    active = set(activated)
    shown = {tool for name, group in groups.items() if name in active for tool in group.tools}
    return tuple(tool for tool in in_groups(groups) if tool != RESET and tool not in shown)


def why_hidden(tool: str, groups: Groups, activated: tuple[str, ...]) -> str:
    """What a model reads that calls a tool of an inactive group."""
    name = next(name for name, group in groups.items() if tool in group.tools)
    wanted = [*(each for each in activated if each in groups), name]
    return f"{tool!r} is in the group {name!r}, which is not active; call {RESET} with to_activate {wanted} first"


def described(tool: ToolDescriptor, groups: Groups) -> ToolDescriptor:
    """The descriptor as the model gets it: of the tool that switches groups, with the groups."""
    if tool.name != RESET:
        return tool
    lines = [f"- {name}: {group.description} ({', '.join(group.tools)})" for name, group in groups.items()]
    return tool.model_copy(update={"description": "\n".join((tool.description, "", "The groups:", *lines))})
