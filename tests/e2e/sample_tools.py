"""A tool that nobody here runs: its result comes from outside."""

from activities.tools.function import tool


@tool(is_external_tool=True)
def price_of(article: str) -> str:
    """Look up the price of an article in the shop's own system."""
    raise NotImplementedError(article)
