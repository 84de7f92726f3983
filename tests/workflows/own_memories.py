"""A store of memories of an operator's own: it hangs once, when all is written and nobody knows of it yet."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from longhaul.stores.memories.memories import MemoryOwner, NewMemory
from longhaul.stores.memories.sqlite_memories import SqliteMemories

FOLDER = "TEST_MEMORIES_FOLDER"
"""Variable that says where it writes."""
HUNG, TRIED = "hung", "tried"


class Stalling(SqliteMemories):
    def __init__(self) -> None:
        self._folder = Path(os.environ[FOLDER])
        super().__init__(self._folder / "memory.db")

    async def record(self, owner: MemoryOwner, new: Sequence[NewMemory]) -> None:
        await super().record(owner, new)
        if not (self._folder / HUNG).exists():
            (self._folder / HUNG).touch()
            await asyncio.sleep(3_600)


class Slow(SqliteMemories):
    """Takes its time before it writes and behind it, so that whoever kills at random meets both; and notes each try."""

    def __init__(self) -> None:
        self._folder = Path(os.environ[FOLDER])
        super().__init__(self._folder / "memory.db")

    async def record(self, owner: MemoryOwner, new: Sequence[NewMemory]) -> None:
        with (self._folder / TRIED).open("a", encoding="utf-8") as tried:
            tried.writelines(f"{each.key}\n" for each in new)
        await asyncio.sleep(0.1)
        await super().record(owner, new)
        await asyncio.sleep(0.15)
