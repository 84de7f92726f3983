"""From one setting to a store: `file`, `memory`, a URL, or `module:Class` for one's own."""

import inspect
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from longhaul.agent.plain.errors import missing
from longhaul.stores.loading import found_at
from longhaul.stores.state.file_store import FileStore, MemoryStore
from longhaul.stores.state.store import BadStoreSetting, StateStore

SQL = ("sqlite", "postgresql", "postgres", "mysql", "mariadb")
SHAPES = "file, file:///PATH, memory, redis://…, sqlite:///PATH, postgresql://…, mysql://… or module:Class"
METHODS = (
    "get_session", "upsert_session", "update_session_state", "list_sessions", "delete_session", "save_checkpoint",
    "close",
)  # fmt: skip


def open_store(setting: str, *, data_dir: Path) -> StateStore:
    """The store that a setting names. It connects at its first use. `file` is in `data_dir`. Your own class is called
    without arguments. Raises BadStoreSetting."""
    match _kind(setting):
        case "file":
            if setting == "file":
                folder = data_dir / "sessions"
            else:
                parts = urlsplit(setting)
                if parts.netloc not in ("", "localhost") or not parts.path.strip("/"):
                    raise BadStoreSetting(f"store: {setting!r} names no folder; write file:///PATH with three slashes")
                folder = Path(unquote(parts.path))
            return FileStore(folder)
        case "memory":
            return MemoryStore()
        case "redis":
            from longhaul.stores.state.redis_store import RedisStorage  # noqa: PLC0415  only who uses Redis loads it

            return RedisStorage.from_url(setting)
        case "sql":
            try:
                from longhaul.stores.state.sql_store import SqlStore  # noqa: PLC0415  only who uses SQL loads it

                return SqlStore(setting)
            except ModuleNotFoundError as error:
                raise missing(error) from error
        case _:
            return cast(StateStore, _called(_own_class(setting), setting))


def is_single_host(setting: str) -> bool:
    """Whether workers on other hosts can't read what this store writes. Raises BadStoreSetting."""
    match _kind(setting):
        case "file" | "memory":
            return True
        case "redis":
            return False
        case "sql":
            return urlsplit(setting).scheme == "sqlite"
        case _:
            return bool(getattr(_own_class(setting), "single_host", False))


def why_not_shared(setting: str) -> str:
    """Why workers that share a workspace between hosts can't use this store; empty when they can."""
    if not is_single_host(setting):
        return ""
    shown = setting if _kind(setting) in ("file", "memory") else f"{urlsplit(setting).scheme}://…"
    return (
        f"store: {shown!r} keeps sessions on this host alone, but the workspace is shared between hosts: another host "
        "would go on with the same files and an older session, or none. Set a store that all hosts reach (redis://…, "
        "postgresql://… or mysql://…), or LONGHAUL_SHARED=off where one host has all workers"
    )


def _kind(setting: str) -> str:
    scheme, colon, rest = setting.partition(":")
    if setting in ("file", "memory"):
        return setting
    if colon and rest.startswith("//"):
        if scheme == "file":
            return "file"
        if scheme.partition("+")[0] in ("redis", "rediss"):
            return "redis"
        if scheme in SQL:
            return "sql"
        raise BadStoreSetting(f"store: nothing is known of {scheme}://…; set {SHAPES}")
    if colon and rest.isidentifier() and all(part.isidentifier() for part in scheme.split(".")):
        return "own"
    raise BadStoreSetting(f"store: the setting starts with {scheme[:30]!r} and is none of {SHAPES}")


def _own_class(setting: str) -> Any:
    found = found_at(
        setting, "class", lambda said: BadStoreSetting(f"store: {said}"), make=False, setting="LONGHAUL_STORE"
    )
    missing = [name for name in METHODS if not inspect.iscoroutinefunction(getattr(found, name, None))]
    if missing:
        raise BadStoreSetting(f"store: {setting} is no StateStore: it has no `async def {missing[0]}`")
    return found


def _called(own: Any, setting: str) -> object:
    try:
        return own()
    except TypeError as error:
        raise BadStoreSetting(f"store: {setting} has to work without arguments: {error}") from error
