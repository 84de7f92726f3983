"""A store of live streams has one stream of lines per session, appended to by workers and read by many.

A stream may be lost at any time without losing a word of what was said. Keys are `namespace/workflow id`, made from
names that anybody may choose: each store escapes them.
"""

from typing import Protocol

from longhaul.agent.plain.errors import BadSetup, Unavailable


class StreamsUnavailable(Unavailable):
    """The store can't be written or read just now, or not from here; the sentence says why."""


class BadStreamsSetting(BadSetup, ValueError):
    """The setting, or what a session says of its stream, names no store."""


class StreamReader(Protocol):
    """One reader's place in one stream; it begins with the oldest line that is kept."""

    async def read(self, seconds: float, *, gently: bool = False) -> list[bytes]:
        """The next lines without their newlines, some or many; none when nothing came in so many seconds.

        `gently`: where looking costs, they may come some 25 ms late. Raises StreamsUnavailable; the same reader may be
        asked again later.
        """
        ...

    async def close(self) -> None: ...


class Streams(Protocol):
    @property
    def address(self) -> str:
        """Where it is, as a URL without any password: what sessions tell their clients."""
        ...

    async def append(self, key: str, lines: bytes) -> None:
        """Add whole lines, each with its newline. Raises StreamsUnavailable; they may have been added then."""
        ...

    def reader(self, key: str) -> StreamReader: ...

    async def check(self) -> None:
        """Raise StreamsUnavailable when it can't be reached from here, or is another one than its address says."""
        ...

    async def delete(self, key: str) -> bool:
        """Whether there was anything. Raises StreamsUnavailable."""
        ...

    async def close(self) -> None: ...


def key_of(namespace: str, workflow_id: str) -> str:
    """The key of a session's stream."""
    return f"{namespace}/{workflow_id}"
