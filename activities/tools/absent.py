"""Stands for a tool of a server that does not offer it now: its calls end at once, with the reason."""

from typing import Any

from longhaul.activities.tool import Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.agent.permission.call_facts import CallFacts


class AbsentTool(Tool):
    def __init__(self, name: str, why: str) -> None:
        """`why`: a sentence without its full stop."""
        self.name = name
        self.description = ""
        self.input_schema = {"type": "object"}
        self._why = f"{why}. Nothing was done"

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        """Nobody is asked about a call that can't run."""
        return CallFacts(cwd=str(place.cwd), arguments_error=self._why)

    async def run(self, call: ToolCall) -> ToolOutput:
        raise ToolError(self._why)
