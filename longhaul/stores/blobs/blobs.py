"""A blob store keeps bytes of a session, written once under the digest of what they are, and reads them back whole."""

import hashlib
import re
from typing import Protocol

from longhaul.agent.plain.errors import BadSetup, Damaged, Unavailable

LARGEST_BLOB = 64_000_000
"""Bytes. Whoever reads a blob has all of it in memory."""

_PREFIX = re.compile(r"[0-9a-f]{16}/[0-9a-f]{40}")
_KEY = re.compile(r"[0-9a-f]{16}/[0-9a-f]{40}/[0-9a-f]{64}")


class NoBlob(Damaged, LookupError):
    """The store certainly has no such complete blob. The sentence says whether it is missing or damaged."""


class BlobsUnavailable(Unavailable, RuntimeError):
    """The store can't be reached, or refuses. It is unknown whether it has the blob. Try again."""


class BadBlobsSetting(BadSetup, ValueError):
    """The setting names no blob store. The sentence says what is allowed, without passwords."""


class BlobStore(Protocol):
    """Keys come from `key_of`; any other raises ValueError, as do bytes that are not what their key says."""

    @property
    def place(self) -> str:
        """Where it keeps them, for people, without passwords."""
        ...

    async def put(self, key: str, data: bytes) -> None:
        """Durable when it returns; what is there already stays. Raises BlobsUnavailable."""
        ...

    async def get(self, key: str) -> bytes:
        """The bytes, checked against the key. Raises NoBlob, BlobsUnavailable."""
        ...

    async def keys(self, prefix: str) -> list[str]:
        """All keys of one session, sorted. Raises BlobsUnavailable."""
        ...

    async def delete_prefix(self, prefix: str) -> int:
        """Forget one session; returns how many blobs that were. Raises BlobsUnavailable."""
        ...

    async def mark(self, new: str = "") -> str:
        """What tells this store from every other one, whatever its address; `new` is left in one that has none.
        Empty where there is none. Raises BlobsUnavailable."""
        ...

    async def close(self) -> None:
        """Let go of connections; the store is not used afterwards."""
        ...


def session_prefix(namespace: str, workflow_id: str) -> str:
    """What all keys of one session begin with. No two sessions share a blob, so that each can be deleted alone."""
    return f"{_digest(namespace)[:16]}/{_digest(workflow_id)[:40]}"


def key_of(prefix: str, data: bytes) -> str:
    """Where these bytes lie among the blobs of a session."""
    return f"{prefix}/{hashlib.sha256(data).hexdigest()}"


def is_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None


def checked_key(key: str) -> str:
    """The key, for a store that makes a path of it. Raises ValueError."""
    if not is_key(key):
        raise ValueError(f"{key[:200]!r} is no key of a blob; make one by key_of")
    return key


def checked_prefix(prefix: str) -> str:
    """The prefix, for a store that deletes what it names. Raises ValueError."""
    if _PREFIX.fullmatch(prefix) is None:
        raise ValueError(f"{prefix[:200]!r} is no prefix of a session; make one by session_prefix")
    return prefix


def check_new(key: str, data: bytes) -> None:
    """Raise ValueError for bytes that could not be read back from there."""
    if len(data) > LARGEST_BLOB:
        raise ValueError(f"a blob of {len(data) // 1000} kB is too large; the most is {LARGEST_BLOB // 1000} kB")
    if not is_whole(checked_key(key), data):
        raise ValueError(f"{key!r} is the key of other bytes; make it by key_of")


def is_whole(key: str, data: bytes) -> bool:
    """Whether these are the bytes that were put there."""
    return key.endswith(hashlib.sha256(data).hexdigest())


def read_back(key: str, data: bytes, place: str) -> bytes:
    """The bytes. Raises NoBlob for others than were put there: a damaged blob is none."""
    if not is_whole(key, data):
        raise NoBlob(f"the blob {key} in {place} is damaged")
    return data


def absent(key: str, place: str) -> NoBlob:
    return NoBlob(f"there is no blob {key} in {place}")


async def delete_session_blobs(store: BlobStore, workflow_id: str, *, namespace: str = "default") -> int:
    """For whoever ends a session's retention: its history can't be replayed afterwards. Returns how many they were."""
    return await store.delete_prefix(session_prefix(namespace, workflow_id))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
