"""Titles: how requests begin, on one line. Lists tell sessions apart by them, and requests that wait."""

from collections.abc import Iterable

from longhaul.agent.values.conversation.messages import DataBlock, Msg, TextBlock

TITLE_CHARS = 120
_LOOKED_AT = 20
"""Times as many characters of each text as are shown: blanks are left out, and a megabyte would take its time."""


def title_of(messages: Iterable[Msg], chars: int = TITLE_CHARS) -> str:
    """Up to so many characters of the first of a user's messages that says something, and the names of what came with
    it; empty where none does. It may hold anything that a person can type but line breaks and lone surrogates."""
    return next(filter(None, (_beginning(message, chars) for message in messages if message.role == "user")), "")


def _beginning(message: Msg, chars: int) -> str:
    said: list[str] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            said += block.text[: chars * _LOOKED_AT].split()
        elif isinstance(block, DataBlock):
            said.append(f"[{block.name or block.source.media_type}]")
    whole = " ".join(said).encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= chars else f"{whole[: chars - 1]}…"
