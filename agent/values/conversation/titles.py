"""The beginning of what people have asked for, on one line: by it lists tell sessions apart, and requests that wait."""

from collections.abc import Iterable

from longhaul.agent.values.conversation.messages import DataBlock, Msg, TextBlock

TITLE_CHARS = 120
_LOOKED_AT = 20
"""Times as many characters of each text as are shown: blanks are left out, and a megabyte would take its time."""


def title_of(messages: Iterable[Msg], chars: int = TITLE_CHARS) -> str:
    """Up to so many characters of the users' words, and the kinds of what came with them; empty where they said
    nothing. It may hold anything that a person can type but line breaks and lone surrogates."""
    said: list[str] = []
    for message in messages:
        for block in message.content if message.role == "user" else ():
            if isinstance(block, TextBlock):
                said += block.text[: chars * _LOOKED_AT].split()
            elif isinstance(block, DataBlock):
                said.append(f"[{block.name or block.source.media_type}]")
    whole = " ".join(said).encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= chars else f"{whole[: chars - 1]}…"
