"""Three tools, found by LONGHAUL_TOOLS=benchmarks.fetches; the MCP server of the benchmarks offers the same."""

from benchmarks.bodies import body
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


@tool(effect=Effect.READ, read_only=True)
async def fetch_one(chars: int) -> str:
    """Return a text of that many characters."""
    return body(chars)


@tool(effect=Effect.READ, read_only=True)
async def fetch_two(chars: int) -> str:
    """Return a text of that many characters."""
    return body(chars)


@tool(effect=Effect.READ, read_only=True)
async def fetch_three(chars: int) -> str:
    """Return a text of that many characters."""
    return body(chars)
