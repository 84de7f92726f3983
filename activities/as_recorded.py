"""The tool of a call as its session knows it: another one of that name is not what anybody has decided on."""

from activities.tools.registry import Toolbox
from activities.tools.tool import Tool
from activities.workspaces import not_here
from agent.results import changed_tool


def tool_as_recorded(toolbox: Toolbox, name: str, digest: str) -> Tool:
    """Raises NotHere, whose sentence the model and people read when no worker has it."""
    tool, descriptor = toolbox.get(name), toolbox.descriptor(name)
    if tool is None or descriptor is None:
        raise not_here(f"this worker has no tool {name!r}")
    if descriptor.digest != digest:
        raise not_here(changed_tool(name))
    return tool
