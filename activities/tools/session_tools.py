"""The tools that sessions answer themselves, as workers know them: descriptions, and what goes into a call."""

from typing import Any

from longhaul.activities.tool import Place, Tool
from longhaul.agent.decisions.session_tools.all_session_tools import INSIDE
from longhaul.agent.decisions.session_tools.session_tool import InsideTool
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.values.conversation.tools import Effect


class Inside(Tool):
    """Never run by a worker: its call is a step of the session."""

    effect = Effect.READ
    read_only = True
    inside = True

    def __init__(self, tool: InsideTool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.input_schema = tool.input_schema

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        return CallFacts(cwd=str(place.cwd), read_only=True)


def inside_tools() -> list[Tool]:
    return [Inside(tool) for tool in INSIDE.values()]
