"""The tool of a call as its session knows it: another one of that name is not what anybody has decided on."""

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.tool import Tool
from longhaul.activities.tools.absent import AbsentTool
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.fold.synthetic_results import changed_tool


def tool_as_recorded(toolbox: Toolbox, name: str, digest: str) -> Tool:
    """Raises NotHere, whose sentence the model and people read when no worker has it."""
    tool, descriptor = toolbox.get(name), toolbox.descriptor(name)
    if tool is None or descriptor is None:
        raise not_here(f"this worker has no tool {name!r}")
    if isinstance(tool, AbsentTool):
        return tool  # it says why
    if descriptor.digest != digest:
        raise not_here(changed_tool(name))
    return tool
