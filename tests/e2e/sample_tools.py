"""A tool that nobody here runs, for its result comes from outside, one that never comes back, and one that pays."""

import asyncio

from activities.tools.function import tool
from tests.workflows.paying import pay  # noqa: F401  a worker finds it by its name


@tool(is_external_tool=True)
def price_of(article: str) -> str:
    """Look up the price of an article in the shop's own system."""
    raise NotImplementedError(article)


@tool(timeout_seconds=0.2)
async def engrave(text: str) -> None:
    """Begin to engrave, and never come back."""
    await asyncio.sleep(60)
