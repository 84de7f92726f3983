"""Text from outside on a terminal: nothing in it can steer the terminal, or hide from whoever decides."""

from longhaul.agent.plain.text import harmless, visible

__all__ = ["harmless", "one_line", "visible"]


def one_line(text: str) -> str:
    """`harmless`, with tabs and newlines as single spaces."""
    return " ".join(harmless(text).split())
