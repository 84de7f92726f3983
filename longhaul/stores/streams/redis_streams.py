"""Live streams in Redis: one Redis Stream per session, an entry for each batch of lines. Bounded in number, and gone by
itself a day after the last one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from redis.exceptions import RedisError

from longhaul.stores.names import safe_name
from longhaul.stores.state.redis_connection import connect, target_of
from longhaul.stores.state.store import BadStoreSetting
from longhaul.stores.streams.streams import BadStreamsSetting, StreamsUnavailable

PREFIX = "longhaul:stream:"
KEPT_ENTRIES = 4_000
KEPT_SECONDS = 24 * 3600
WRITE_SECONDS = 2.0
BLOCK_SECONDS = 1.0
"""Below the socket's own limit of five seconds, which would end a longer wait with an error."""
ENTRIES_AT_ONCE = 500
_FIELD = b"l"


class RedisStreams:
    """By URL, in the shapes that the Redis state store knows too."""

    def __init__(self, url: str) -> None:
        """Connects with the first command. Raises BadStreamsSetting."""
        try:
            target, prefix = target_of(url)
        except BadStoreSetting as error:
            raise BadStreamsSetting(f"LONGHAUL_REDIS_URL: {str(error).removeprefix('store: ')}") from None
        self._target = target
        self._client, self._beside = connect(target)
        self._prefix = prefix or PREFIX
        self._address = without_login(url)
        self._place = f"Redis at {target.hosts}"

    @property
    def address(self) -> str:
        return self._address

    async def append(self, key: str, lines: bytes) -> None:
        name = self._name(key)
        async with self._answering(), self._client.pipeline(transaction=False) as both:
            both.xadd(name, {_FIELD: lines}, maxlen=KEPT_ENTRIES, approximate=True)
            both.expire(name, KEPT_SECONDS)
            await both.execute()

    def reader(self, key: str) -> "RedisReader":
        return RedisReader(self._target, self._name(key), self._place)

    async def check(self) -> None:
        async with self._answering():
            await cast(Awaitable[Any], self._client.ping())

    async def delete(self, key: str) -> bool:
        async with self._answering():
            return bool(await cast(Awaitable[Any], self._client.delete(self._name(key))))

    async def close(self) -> None:
        for client in (self._client, *self._beside):
            await client.aclose()

    def _name(self, key: str) -> str:
        return f"{self._prefix}{safe_name(key)}"

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                yield
        except TimeoutError as error:
            raise StreamsUnavailable(f"{self._place} did not answer within {WRITE_SECONDS:g} s") from error
        except (RedisError, OSError) as error:
            raise StreamsUnavailable(f"the live streams in {self._place} can't be used: {error}") from error


class RedisReader:
    """Has a connection of its own: a command that waits would hold up everybody else's."""

    def __init__(self, target: Any, name: str, place: str) -> None:
        self._client, self._beside = connect(target)
        self._name = name
        self._place = place
        self._last: bytes | str = "0-0"

    async def read(self, seconds: float, *, gently: bool = False) -> list[bytes]:
        until = asyncio.get_running_loop().time() + seconds
        while True:
            left = until - asyncio.get_running_loop().time()
            block = max(min(left, BLOCK_SECONDS), 0.001)
            try:
                found: Any = await self._client.xread(
                    {self._name: self._last}, count=ENTRIES_AT_ONCE, block=int(block * 1000) or 1
                )
            except (RedisError, OSError) as error:
                raise StreamsUnavailable(f"the live stream in {self._place} can't be read: {error}") from error
            # The lines of an answer, which is a list or a mapping by the protocol that was agreed on.
            streams = found.values() if isinstance(found, dict) else [entries for _, entries in found or ()]
            lines: list[bytes] = []
            for entries in streams:
                # Protocol 3 wraps the entries once more.
                flat = entries[0] if entries and isinstance(entries[0], list) else entries
                for last, fields in flat:
                    self._last = last
                    lines += [line for line in (fields or {}).get(_FIELD, b"").split(b"\n") if line]
            if lines or left <= BLOCK_SECONDS:
                return lines

    async def close(self) -> None:
        for client in (self._client, *self._beside):
            await client.aclose()


def without_login(url: str) -> str:
    """The same place without user, password and the paths of certificates."""
    parts = urlsplit(url)
    query = "&".join(part for part in parts.query.split("&") if part.startswith("prefix="))
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))
