"""A key store holds the data keys of sessions, each wrapped by its operator's master key, and of deleted ones that they
were deleted. It is small, and apart from all that the keys are for: whoever copies sessions has no key by that.
"""

from typing import NamedTuple, Protocol

from longhaul.agent.plain.errors import BadSetup, Damaged, Unavailable

DELETED = "its key was deleted"
"""Stands in each sentence about a session whose key is gone for good."""


class KeysUnavailable(Unavailable):
    """The key store does not answer, or no master key fits. Nothing is lost: what needs the key is tried again."""


class WrongMaster(KeysUnavailable):
    """The master key is not the one that a key was wrapped by; the sentence names it."""


class BadKeysSetting(BadSetup, ValueError):
    """A setting that names no key store, or a master key that is none. The key is not in the sentence."""


class NoKey(Damaged, ValueError):
    """What is encrypted can't be read: its key was deleted, is not known here, or is another session's."""


class StoredKey(NamedTuple):
    """One data key."""

    id: str
    """16 letters, digits, `-` and `_`, by chance; what is encrypted with it says it."""
    owner: str
    """Whom it was made for: a session's place among the blobs, which tells no name."""
    wrapped: bytes
    """Empty: deleted."""
    master: str
    """Name of the master key that it is wrapped by."""
    deleted_at: str = ""
    """ISO 8601."""


class KeyStore(Protocol):
    """Methods raise KeysUnavailable within seconds, and each changes all that it changes in one step."""

    @property
    def place(self) -> str:
        """For sentences; without passwords."""
        ...

    async def get(self, key_id: str) -> StoredKey | None: ...

    async def key_of(self, owner: str) -> StoredKey | None:
        """The key that this session's values are encrypted with, deleted or not; None where it never had one."""
        ...

    async def add(self, key: StoredKey) -> StoredKey:
        """Give its owner this key, unless he has one that is not deleted. Returns the one that counts."""
        ...

    async def share(self, owner: str, key_id: str) -> StoredKey | None:
        """Give somebody a key that there is, as `add` does. Returns the one that counts."""
        ...

    async def delete(self, key_id: str, at: str) -> bool:
        """Forget the key itself for good, and remember that it was deleted. Whether it was there."""
        ...

    async def every(self) -> list[StoredKey]:
        """All that are not deleted."""
        ...

    async def rewrap(self, key: StoredKey, wrapped: bytes, master: str) -> bool:
        """Wrap it anew, unless it was changed since it was read as `key`; False then."""
        ...

    async def close(self) -> None: ...
