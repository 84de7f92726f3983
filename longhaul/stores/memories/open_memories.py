"""From a setting to the store of memories, or of knowledge: `sqlite`, `sqlite:///PATH`, or `module:Class`."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from longhaul.stores.loading import found_at
from longhaul.stores.memories.memories import KnowledgeBases, Memories
from longhaul.stores.memories.sqlite_memories import SqliteKnowledge, SqliteMemories
from longhaul.stores.memories.vectors import Meaning, VectorKnowledge, VectorMemories
from longhaul.stores.state.store import BadStoreSetting

OF_MEMORIES = ("record", "retrieve", "list_memories", "delete", "close")
OF_KNOWLEDGE = ("put", "search", "bases", "list_documents", "delete", "close")


@dataclass(frozen=True, slots=True)
class LongTerm:
    """Both stores of one worker."""

    memories: Memories
    knowledge: KnowledgeBases

    async def close(self) -> None:
        await self.memories.close()
        await self.knowledge.close()


def open_memories(setting: str, data_dir: Path, meaning: Meaning | None = None) -> Memories:
    """It connects when it is first used; a class of the operator's does without `meaning`. Raises BadStoreSetting."""
    path = _path("memory", setting, data_dir)
    if path and meaning:
        return VectorMemories(path, meaning)
    return SqliteMemories(path) if path else cast(Memories, _own("memory", setting, OF_MEMORIES))


def open_knowledge(setting: str, data_dir: Path, meaning: Meaning | None = None) -> KnowledgeBases:
    """As `open_memories`."""
    path = _path("knowledge", setting, data_dir)
    if path and meaning:
        return VectorKnowledge(path, meaning)
    return SqliteKnowledge(path) if path else cast(KnowledgeBases, _own("knowledge", setting, OF_KNOWLEDGE))


def _path(kind: str, setting: str, data_dir: Path) -> Path | None:
    """None for a class of the operator's."""
    if setting == "sqlite":
        return data_dir / f"{kind}.db"
    scheme, _, rest = setting.partition(":")
    if not rest.startswith("//"):
        return None
    parts = urlsplit(setting)
    if scheme != "sqlite" or parts.netloc or not parts.path.strip("/"):
        raise BadStoreSetting(f"{kind}: {scheme[:30]}://… can't be used; set sqlite, sqlite:///PATH or module:Class")
    return Path(unquote(parts.path))


def _own(kind: str, setting: str, methods: tuple[str, ...]) -> Any:
    variable = f"LONGHAUL_{kind.upper()}"
    made = found_at(setting, "class", lambda said: BadStoreSetting(f"{kind}: {said}"), setting=variable)
    missing = [name for name in methods if not inspect.iscoroutinefunction(getattr(made, name, None))]
    if missing:
        raise BadStoreSetting(f"{kind}: {setting} can't be used: it has no `async def {missing[0]}`")
    return made
