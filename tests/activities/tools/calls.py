"""How these tests use a tool: examined and run as the session does it, without the session."""

from pathlib import Path
from typing import Any

from longhaul.activities.process.program_run import find_ripgrep
from longhaul.activities.tool import Place, Tool, ToolCall, ToolOutput
from longhaul.agent.permission.call_analysis import CallAnalysis

RIPGREP = find_ripgrep() or "rg"
"""The one that was installed with Longhaul; where it is missing each search fails."""


def place_at(root: Path) -> Place:
    return Place(root=root, cwd=root)


def called(arguments: dict[str, Any], place: Place, analysis: CallAnalysis, attempt: int = 1) -> ToolCall:
    return ToolCall(id="call-7", arguments=arguments, place=place, analysis=analysis, attempt=attempt)


async def use(tool: Tool, place: Place, **arguments: Any) -> ToolOutput:
    """Examine, then run on exactly these findings."""
    analysis = await tool.examine(arguments, place)
    return await tool.run(called(arguments, place, analysis))


async def text_of(tool: Tool, place: Place, **arguments: Any) -> str:
    output = (await use(tool, place, **arguments)).output
    assert isinstance(output, str)
    return output
