"""Tools of a shop, as its owner brings them along: this file is copied into the folder that is mounted, and
LONGHAUL_TOOLS=shop_tools names it."""

from longhaul import secret, tool


@tool(effect="read", read_only=True)
def price_of(article: str) -> str:
    """Say what an article costs."""
    return f"{article}: 7 euros, asked with a token of {len(secret('SHOP_TOKEN'))} letters"


@tool(effect="once")
def order(article: str) -> str:
    """Order an article, which somebody has to allow."""
    return f"{article} is ordered"
