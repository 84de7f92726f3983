"""Data keys in Redis, for workers and clients of several hosts. It needs AOF and `noeviction`: without its key, nothing
of a session can be read."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, cast

from redis.exceptions import RedisError

from longhaul.stores.keys.keyring import BadKeysSetting, KeysUnavailable, StoredKey
from longhaul.stores.state.redis_connection import connect, target_of
from longhaul.stores.state.store import BadStoreSetting

PREFIX = "longhaul:keys:"
ANSWER_SECONDS = 10.0

_GIVE = """
local there = redis.call('HGET', KEYS[2], ARGV[1])
if there then
  local line = redis.call('HGET', KEYS[1], there)
  if line and cjson.decode(line).wrapped ~= '' then return line end
end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return redis.call('HGET', KEYS[1], ARGV[2])
"""
_REPLACE = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""


class RedisKeys:
    """Two hashes of one slot: keys by id, and ids by owner."""

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Connects with the first command. Raises BadKeysSetting."""
        try:
            target, prefix = target_of(url)
        except BadStoreSetting as error:
            raise BadKeysSetting(f"LONGHAUL_KEYS: {str(error).removeprefix('store: ')}") from None
        self._client, self._beside = connect(target)
        self._answer_seconds = answer_seconds
        begin = prefix or PREFIX
        self._keys, self._owners = f"{begin}{{keys}}", f"{begin}{{keys}}:owners"
        self._place = f"Redis at {target.hosts}"

    @property
    def place(self) -> str:
        return self._place

    async def get(self, key_id: str) -> StoredKey | None:
        return _read(await self._request(self._client.hget(self._keys, key_id)))

    async def key_of(self, owner: str) -> StoredKey | None:
        found = await self._request(self._client.hget(self._owners, owner))
        return await self.get(found.decode()) if found else None

    async def add(self, key: StoredKey) -> StoredKey:
        return cast(StoredKey, await self._give(key.owner, key.id, _encode(key)))

    async def share(self, owner: str, key_id: str) -> StoredKey | None:
        return await self._give(owner, key_id, "")

    async def delete(self, key_id: str, at: str) -> bool:
        while (key := await self.get(key_id)) is not None and key.wrapped:
            if await self._replace(key, key._replace(wrapped=b"", deleted_at=at)):
                return True
        return False

    async def every(self) -> list[StoredKey]:
        lines = await self._request(self._client.hvals(self._keys))
        return [key for line in lines if (key := _read(line)) is not None and key.wrapped]

    async def rewrap(self, key: StoredKey, wrapped: bytes, master: str) -> bool:
        return await self._replace(key, key._replace(wrapped=wrapped, master=master))

    async def close(self) -> None:
        for client in (self._client, *self._beside):
            await client.aclose()

    async def _give(self, owner: str, key_id: str, line: str) -> StoredKey | None:
        script = self._client.eval(_GIVE, 2, self._keys, self._owners, owner, key_id, line)
        return _read(await self._request(script))

    async def _replace(self, key: StoredKey, new: StoredKey) -> bool:
        script = self._client.eval(_REPLACE, 1, self._keys, key.id, _encode(key), _encode(new))
        return bool(await self._request(script))

    async def _request(self, answer: Awaitable[Any] | Any) -> Any:
        async with self._answering():
            return await cast(Awaitable[Any], answer)

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._answer_seconds):
                yield
        except TimeoutError as error:
            raise KeysUnavailable(
                f"keys: {self._place} did not answer within {self._answer_seconds:g} seconds"
            ) from error
        except (RedisError, OSError) as error:
            raise KeysUnavailable(f"keys: {self._place} can't be used: {error}") from error


def _encode(key: StoredKey) -> str:
    return json.dumps({**key._asdict(), "wrapped": key.wrapped.hex()}, sort_keys=True)


def _read(line: bytes | None) -> StoredKey | None:
    if line is None:
        return None
    told = json.loads(line)
    return StoredKey(**{**told, "wrapped": bytes.fromhex(told["wrapped"])})
