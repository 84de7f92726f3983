"""How a line is run as if its proof had let it through, whatever it is."""

from dataclasses import replace

from longhaul.activities.process.sandbox import Box
from longhaul.activities.tool import Place, ToolOutput
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.call_facts import Confined
from tests.activities.tools.calls import called

SECRET = "marmalade-6120"
PROVEN = Box("proven")


async def held(place: Place, command: str, confined: Confined = "read", box: Box = PROVEN) -> ToolOutput:
    """Run it as if its proof had let it through."""
    bash = Bash(box=box)
    facts = await bash.examine({"command": command}, place)
    return await bash.run(replace(called({"command": command}, place, facts), confined=confined))


async def said(place: Place, command: str, confined: Confined = "read", box: Box = PROVEN) -> str:
    return str((await held(place, command, confined, box)).output)
