"""How a line is run as if its proof had let it through, whatever it is."""

from dataclasses import replace

from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.tool import Place, ToolOutput
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.call_analysis import Confined
from tests.activities.tools.calls import called

SECRET = "marmalade-6120"
PROVEN = SandboxPolicy("proven")


async def held(place: Place, command: str, confined: Confined = "read", sandbox: SandboxPolicy = PROVEN) -> ToolOutput:
    """Run it as if its proof had let it through."""
    bash = Bash(sandbox=sandbox)
    analysis = await bash.examine({"command": command}, place)
    return await bash.run(replace(called({"command": command}, place, analysis), confined=confined))


async def said(place: Place, command: str, confined: Confined = "read", sandbox: SandboxPolicy = PROVEN) -> str:
    return str((await held(place, command, confined, sandbox)).output)
