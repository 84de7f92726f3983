"""`RedisOffloader`: offloaded content in Redis, under the keys of one owner.

    {prefix}:{session}:context             list of messages, one line of JSON each, as in context.jsonl
    {prefix}:{session}:keys                set of the keys of those lines
    {prefix}:{session}:tool_result-{id}    a whole output; `(1)` … when another one has the name
    {prefix}:data:{sha256}.{ext}           attachments, each content once

A session's name stands in braces, so that its keys share a slot of a cluster. References are addresses without
credentials; file tools can't read them.

The end of what a session has offloaded there. Attachments stay, for they belong to all sessions of their owner.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from redis.exceptions import RedisError

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.stores.names import owner_name, safe_name
from longhaul.stores.offload.local_workspace import batch_of, lines_of, result_text
from longhaul.stores.state.redis_connection import Client, connect, target_of
from longhaul.stores.state.store import StoreUnavailable

MOST_CLASHES = 1_000

_APPEND = """
for i = 2, #ARGV, 2 do
  if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
    redis.call('RPUSH', KEYS[1], ARGV[i + 1])
    redis.call('SADD', KEYS[2], ARGV[i])
  end
end
if ARGV[1] ~= '0' then
  redis.call('EXPIRE', KEYS[1], ARGV[1])
  redis.call('EXPIRE', KEYS[2], ARGV[1])
end
return redis.call('LLEN', KEYS[1])
"""
"""In one step: a line and its key are there together, or neither is."""


class RedisOffloader:
    """An `Offloader` onto Redis (a server, a cluster or sentinels: see `stores.state.redis_connection`).

    `ttl_seconds` counts from the last time that a key was written, also by a repeated attempt; None keeps for ever.
    Each call opens a connection of its own and closes it: offloading is rare, and nothing has to be shut down.
    """

    def __init__(self, url: str, prefix: str = "longhaul:offload", ttl_seconds: int | None = None) -> None:
        """Raises `stores.store.BadStoreSetting` for a URL that names no Redis."""
        self._target, _ = target_of(url)
        self._prefix = prefix
        self._ttl_seconds = ttl_seconds

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        """As `LocalWorkspace.offload_context`. Raises RedisError or OSError."""
        data: dict[str, bytes] = {}
        lines = lines_of(msgs, batch_of(msgs, str(kwargs.get("batch") or "")), self._collecting(data))
        context = self._key(session_id, "context")
        async with self._client() as client:
            await self._put_data(client, data)
            if lines:
                arguments = [part for line in lines for part in (line.key, line.data)]
                ttl = self._ttl_seconds or 0
                await client.eval(_APPEND, 2, context, self._key(session_id, "keys"), ttl, *arguments)
        return self._address(context)

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        """As `LocalWorkspace.offload_tool_result`. Raises RedisError or OSError."""
        del kwargs
        data: dict[str, bytes] = {}
        text = result_text(tool_result, self._collecting(data)).encode("utf-8", "replace")
        async with self._client() as client:
            await self._put_data(client, data)
            for number in range(MOST_CLASHES):
                name = f"tool_result-{safe_name(tool_result.id)}{f'({number})' if number else ''}"
                key = self._key(session_id, name)
                if await self._put(client, key, text):
                    return self._address(key)
        raise RedisError(f"{MOST_CLASHES} results are named {safe_name(tool_result.id)!r} in this session")

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        client, sentinels = connect(self._target)
        try:
            yield client
        finally:
            for opened in (client, *sentinels):
                await opened.aclose()

    async def _put_data(self, client: Client, data: dict[str, bytes]) -> None:
        for key, content in data.items():
            await self._put(client, key, content)

    async def _put(self, client: Client, key: str, content: bytes) -> bool:
        """Whether `key` holds `content` now; something else that it holds stays."""
        if await client.set(key, content, nx=True, ex=self._ttl_seconds):
            return True
        if await client.get(key) != content:
            return False
        if self._ttl_seconds:
            await client.expire(key, self._ttl_seconds)
        return True

    def _collecting(self, data: dict[str, bytes]) -> Any:
        def keep(name: str, content: bytes) -> str:
            key = f"{self._prefix}:data:{name}"
            data[key] = content
            return self._address(key)

        return keep

    def _key(self, session_id: str, name: str) -> str:
        return f"{self._prefix}:{{{safe_name(session_id)}}}:{name}"

    def _address(self, key: str) -> str:
        scheme = "rediss" if self._target.login.get("ssl") else "redis"
        return f"{scheme}://{self._target.hosts}/{self._target.login.get('db', 0)}/{key}"


KEYS_AT_ONCE = 500


async def forget_keys(redis_url: str, agent: str, user_id: str | None, session_id: str) -> int:
    """Delete what `RedisOffloader` wrote for the session, and return how many keys that were; looks at all keys of the
    database. Raises BadStoreSetting, StoreUnavailable."""
    client, sentinels = connect(target_of(redis_url)[0])
    # Safe names have none of the characters that stand for others in a pattern.
    pattern = f"longhaul:offload:{owner_name(agent, user_id)}:{{{safe_name(session_id)}}}:*"
    try:
        keys = [key async for key in client.scan_iter(match=pattern, count=KEYS_AT_ONCE)]
        for key in keys:
            await client.delete(key)
        return len(keys)
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"LONGHAUL_REDIS_URL: Redis does not answer ({type(error).__name__})") from error
    finally:
        for opened in (client, *sentinels):
            await opened.aclose()
