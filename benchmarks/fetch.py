"""The tools of the benchmarks, found by LONGHAUL_TOOLS=benchmarks.fetch."""

from benchmarks.bodies import body
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


@tool(effect=Effect.READ, name="fetch", read_only=True, quick=True)
async def fetch(chars: int) -> str:
    """Return a text of that many characters."""
    return body(chars)


@tool(effect=Effect.READ, name="pull", read_only=True)
async def pull(chars: int) -> str:
    """Return a text of that many characters; it does not say that it is quick."""
    return body(chars)
