"""The same tool as one of `fused_tools`, by its name and its answers, which does not say that it is quick."""

from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect
from tests.workflows.tools import page_text


@tool(effect=Effect.READ, read_only=True, concurrency_safe=True)
async def peek(page: int, chars: int = 40) -> str:
    """Return that page."""
    return page_text(page, chars)
