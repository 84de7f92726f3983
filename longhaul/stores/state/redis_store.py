"""Sessions in Redis: one server, a cluster, or whichever server the sentinels name as master.

All keys of one user carry one hash tag, so that a record and its line in the user's index change in one step, in a
cluster too. A record is a hash of `incarnation`, `seq`, `closed`, `revision` and `body`.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Self, cast

from redis.exceptions import RedisClusterException, RedisError, ResponseError

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.stores.state.redis_connection import Target, connect, target_of
from longhaul.stores.state.store import (
    DamagedRecord,
    SessionRecord,
    SessionRow,
    Slot,
    StateStore,
    StoreBusy,
    StoreUnavailable,
    encode_record,
    newest_first,
    no_such_session,
    owner,
    read,
    row_of,
    slot_of,
    stamp_record,
    with_state,
)

PREFIX = "longhaul:"
ANSWER_SECONDS = 10.0
TRIES = 20
"""For changes of a state that somebody else is changing too."""


class RedisStorage(StateStore):
    """`async with RedisStorage(host="localhost", port=6379) as storage: …`; any other shape of Redis by `from_url`."""

    single_host = False

    def __init__(  # noqa: PLR0913  the seed's keywords, and what else a server wants to know
        self,
        host: str = "localhost",
        port: int = 6379,
        *,
        db: int = 0,
        username: str | None = None,
        password: str | None = None,
        key_prefix: str = PREFIX,
        target: Target | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        login = {"db": db, "username": username, "password": password}
        target = target or Target("server", ((host, port),), login)
        self._client, self._beside = connect(target)
        self._prefix = key_prefix
        self._answer_seconds = answer_seconds
        self._where = f"the Redis store at {target.hosts}"

    @classmethod
    def from_url(cls, url: str, *, key_prefix: str = PREFIX, answer_seconds: float = ANSWER_SECONDS) -> Self:
        """`redis://`, `rediss://`, `redis+cluster://host:port,host:port`, `redis+sentinel://…/master`.

        Raises BadStoreSetting.
        """
        target, prefix = target_of(url)
        return cls(target=target, key_prefix=prefix or key_prefix, answer_seconds=answer_seconds)

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        found = await self._get(Slot(user_id, agent_id, session_id))
        return found[0] if found else None

    async def upsert_session(self, record: SessionRecord) -> None:
        await self._save(stamp_record(record), "always")

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        return await self._save(stamp_record(record), "later")

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        return await self._save(
            stamp_record(record), "absent" if expected is None else f"at {expected[0]} {expected[1]}"
        )

    async def update_session_state(
        self, user_id: str | None, agent_id: str, session_id: str, state: AgentState
    ) -> None:
        slot = Slot(user_id, agent_id, session_id)
        for _ in range(TRIES):
            found = await self._get(slot)
            if found is None:
                raise no_such_session(user_id, agent_id, session_id)
            record, revision = found
            if await self._save(stamp_record(with_state(record, state)), revision):
                return
        raise StoreBusy(f"{self._where}: {slot.name!r} was written by others {TRIES} times meanwhile")

    async def list_sessions(self, user_id: str | None, agent_id: str | None = None) -> list[SessionRow]:
        async with self._answering(self._index(owner(user_id))) as key:
            lines = await self._request(self._client.hvals(key))
            try:
                rows = [SessionRow.model_validate(json.loads(line)) for line in lines]
            except ValueError as error:
                raise DamagedRecord(self._where, key, "the user's index holds a line that is none") from error
        return newest_first([row for row in rows if agent_id in (None, row.agent_id)])

    async def delete_session(self, user_id: str | None, agent_id: str, session_id: str) -> bool:
        slot = Slot(user_id, agent_id, session_id)
        async with self._answering(slot.name):
            script = self._client.eval(DELETE, 2, self._key(slot), self._index(slot.owner), slot.name)
            return bool(await self._request(script))

    async def close(self) -> None:
        for client in (self._client, *self._beside):
            await client.aclose()

    def _key(self, slot: Slot) -> str:
        return f"{self._prefix}{{{slot.owner[:32]}}}:{slot.name}"

    def _index(self, owner: str) -> str:
        return f"{self._prefix}{{{owner[:32]}}}:sessions"

    async def _get(self, slot: Slot) -> tuple[SessionRecord, str] | None:
        async with self._answering(slot.name):
            fields: dict[bytes, bytes] = await self._request(self._client.hgetall(self._key(slot)))
        if not fields:
            return None
        if b"body" not in fields:
            raise DamagedRecord(self._where, slot.name, "the hash has no field 'body'")
        return read(fields[b"body"], slot, self._where), fields.get(b"revision", b"").decode("ascii", "replace")

    async def _save(self, record: SessionRecord, condition: str) -> bool:
        """`condition`: `always`, `later` (not older than what is stored), `absent`, `at INCARNATION SEQ`, or
        the revision that was read before."""
        slot = slot_of(record)
        keys = (self._key(slot), self._index(slot.owner))
        line = json.dumps(row_of(record).model_dump())
        position = (str(record.incarnation), str(record.seq), str(int(record.closed)), secrets.token_hex(8))
        async with self._answering(slot.name):
            script = self._client.eval(SAVE, 2, *keys, condition, slot.name, line, encode_record(record), *position)
            return bool(await self._request(script))

    async def _request(self, answer: Awaitable[Any] | Any) -> Any:
        return await cast(Awaitable[Any], answer)

    @asynccontextmanager
    async def _answering(self, key: str) -> AsyncIterator[str]:
        """What Redis complains about, as our errors, within seconds."""
        try:
            async with asyncio.timeout(self._answer_seconds):
                yield key
        except TimeoutError as error:
            raise StoreUnavailable(f"{self._where} did not answer within {self._answer_seconds:g} seconds") from error
        except ResponseError as error:
            if str(error).startswith(("WRONGTYPE", "DAMAGED")):
                raise DamagedRecord(self._where, key, "the key holds something else") from error
            raise StoreUnavailable(f"{self._where} refuses: {error}") from error
        except (RedisError, RedisClusterException, OSError) as error:
            raise StoreUnavailable(f"{self._where} can't be reached: {error}") from error


SAVE = """
local condition, name, line, body = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local incarnation, seq, closed = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local stored = redis.call('HMGET', KEYS[1], 'incarnation', 'seq', 'closed', 'revision')
if redis.call('EXISTS', KEYS[1]) == 1 and condition ~= 'always' then
  if condition ~= 'later' then
    local at = 'at ' .. tostring(stored[1]) .. ' ' .. tostring(stored[2])
    if stored[4] ~= condition and at ~= condition then return 0 end
  else
    local g, s, c = tonumber(stored[1]), tonumber(stored[2]), tonumber(stored[3])
    if not (g and s and c) then return redis.error_reply('DAMAGED the hash has no position') end
    if incarnation < g or (incarnation == g and seq < s) then return 0 end
    if incarnation == g and seq == s and closed < c then return 1 end
  end
elseif condition ~= 'always' and condition ~= 'later' and condition ~= 'absent' then
  return 0
end
redis.call('HSET', KEYS[1],
  'incarnation', ARGV[5], 'seq', ARGV[6], 'closed', ARGV[7], 'revision', ARGV[8], 'body', body)
redis.call('HSET', KEYS[2], name, line)
return 1
"""
"""Keys: the record, the user's index. Arguments: condition, slot's name, its line, body, incarnation, seq, closed,
a new revision.

1: written, or the same position and nothing to write. 0: what is stored is later, or changed since it was read.
Positions stay below 2^53, where Lua's numbers are exact.
"""

DELETE = """
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])
"""
"""Keys as above; argument: the slot's name."""
