"""The tool of the benchmarks, found by LONGHAUL_TOOLS=benchmarks.fetch."""

from activities.tools.function import tool
from agent.tools import Effect
from benchmarks.bodies import body


@tool(effect=Effect.READ, name="fetch", read_only=True)
async def fetch(chars: int) -> str:
    """Return a text of that many characters."""
    return body(chars)
