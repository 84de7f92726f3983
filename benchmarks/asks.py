"""The tool of the parked sessions, found by LONGHAUL_TOOLS=benchmarks.asks: somebody has to allow it."""

from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


@tool(effect=Effect.ONCE, name="sign")
async def sign(paper: str) -> str:
    """Sign a paper."""
    return f"signed: {paper}"
