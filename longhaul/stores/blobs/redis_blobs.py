"""Blobs in Redis. They are part of what is true: it needs AOF, and `noeviction`.

A blob is a string; a set for each session names its digests, so that nobody has to search all keys. All keys of a
session carry one hash tag and change together, in a cluster too.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, cast

from redis.exceptions import RedisError

from longhaul.stores.blobs.blobs import (
    BadBlobsSetting,
    BlobsUnavailable,
    absent,
    check_new,
    checked_key,
    checked_prefix,
    read_back,
)
from longhaul.stores.state.redis_connection import connect, target_of
from longhaul.stores.state.store import BadStoreSetting

PREFIX = "longhaul:blobs:"
ANSWER_SECONDS = 10.0
AT_A_TIME = 100
AT_ONCE = 8
"""Commands under way: each has a connection of its own, and may hold a large blob."""


class RedisBlobs:
    """By URL: `redis://`, `rediss://`, `redis+cluster://host:port,host:port`, `redis+sentinel://…/master`."""

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Connects with the first command. Raises BadBlobsSetting."""
        try:
            target, prefix = target_of(url)
        except BadStoreSetting as error:
            raise BadBlobsSetting(str(error).removeprefix("store: ")) from None
        self._client, self._beside = connect(target)
        self._prefix = prefix or PREFIX
        self._answer_seconds = answer_seconds
        self._free = asyncio.Semaphore(AT_ONCE)
        self._place = f"Redis at {target.hosts}"

    @property
    def place(self) -> str:
        return self._place

    async def put(self, key: str, data: bytes) -> None:
        check_new(key, data)
        session, _, digest = key.rpartition("/")
        async with self._answering(), self._client.pipeline(transaction=True) as both:
            both.sadd(self._index(session), digest)
            both.set(self._name(key), data)
            await both.execute()

    async def get(self, key: str) -> bytes:
        async with self._answering():
            data: bytes | None = await self._request(self._client.get(self._name(checked_key(key))))
        if data is None:
            raise absent(key, self.place)
        return read_back(key, data, self.place)

    async def keys(self, prefix: str) -> list[str]:
        async with self._answering():
            digests = await self._request(self._client.smembers(self._index(checked_prefix(prefix))))
        return sorted(f"{prefix}/{digest.decode()}" for digest in digests)

    async def delete_prefix(self, prefix: str) -> int:
        names = [self._name(key) for key in await self.keys(prefix)]
        index = self._index(prefix)
        for start in range(0, len(names), AT_A_TIME):
            some = names[start : start + AT_A_TIME]
            async with self._answering(), self._client.pipeline(transaction=True) as both:
                both.unlink(*some)
                both.srem(index, *(name.rpartition("/")[2] for name in some))
                await both.execute()
        return len(names)

    async def mark(self, new: str = "") -> str:
        name = f"{self._prefix}mark"
        async with self._answering():
            if new:
                await self._request(self._client.set(name, new, nx=True))
            found: bytes | None = await self._request(self._client.get(name))
        return found.decode("ascii", "replace") if found else ""

    async def close(self) -> None:
        for client in (self._client, *self._beside):
            await client.aclose()

    def _name(self, key: str) -> str:
        session, _, digest = key.rpartition("/")
        return f"{self._index(session)}/{digest}"

    def _index(self, session: str) -> str:
        return f"{self._prefix}{{{session}}}"

    async def _request(self, answer: Awaitable[Any] | Any) -> Any:
        return await cast(Awaitable[Any], answer)

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        """What Redis complains about, as our error, within seconds."""
        try:
            async with self._free, asyncio.timeout(self._answer_seconds):
                yield
        except TimeoutError as error:
            raise BlobsUnavailable(f"{self.place} did not answer within {self._answer_seconds:g} seconds") from error
        except (RedisError, OSError) as error:
            raise BlobsUnavailable(f"the blobs in {self.place} can't be used: {error}") from error
