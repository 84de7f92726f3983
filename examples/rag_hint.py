"""Tell the model, behind each request, which notes in a folder are about what it names.

    LONGHAUL_MIDDLEWARES=?examples.rag_hint:Notes NOTES=/srv/notes longhaul dev

and in the agent file `middlewares = ["notes"]`. What is found is recorded once with the reply: retries, replays and
other workers see the same.
"""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path

from longhaul import Middleware, RuntimeContext

MOST = 3
CHARS = 2_000


class Notes(Middleware):
    name = "notes"

    async def on_reply(self, request: str, context: RuntimeContext) -> Sequence[str]:
        words = set(re.findall(r"\w{4,}", request.lower()))
        return await asyncio.to_thread(_about, words, Path(os.environ.get("NOTES", "notes")))


def _about(words: set[str], folder: Path) -> list[str]:
    """The notes that share the most words with the request, the best first."""
    found: list[tuple[int, str, str]] = []
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8", errors="replace")[:CHARS]
        if common := len(words & set(re.findall(r"\w{4,}", text.lower()))):
            found.append((-common, path.name, text))
    return [f"From the note {name}:\n{text}" for _, name, text in sorted(found)[:MOST]]
