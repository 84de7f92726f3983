"""Leases of workers on different hosts, in Redis: a worker counts up while it runs calls.

Another worker that has seen the same number at several looks takes that worker as lost. It may only have stalled, or
have lost its way to Redis, so calls that must not run twice are never noted here, and a worker that was taken as lost
hears of it. No clock of one machine is compared with that of another.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable
from typing import Any, cast

from redis.exceptions import RedisError

from longhaul.stores.leases import ANSWER_SECONDS, Fail, LeasedCall, LeasesUnavailable, call_in, line_of
from longhaul.stores.names import safe_name
from longhaul.stores.state.redis_connection import connect, target_of

log = logging.getLogger(__name__)

PREFIX = "longhaul:lease:"
LOOKS = 5
"""How often the same number of a worker is seen until it counts as lost."""
KEPT_SECONDS = 24 * 3600


class RedisLeases:
    """A number for each worker that runs calls, all in one hash; and a list of calls beside it, for each."""

    pause = 0.7

    def __init__(self, url: str, key: str) -> None:
        """`key`: of the task queue, whose workers look after each other. Connects with the first look."""
        target, prefix = target_of(url)
        self._client, self._beside = connect(target)
        self._place = f"Redis at {target.hosts}"
        self._key = f"{prefix or PREFIX}{safe_name(key)}"
        self._name = secrets.token_hex(8)
        self._number = 0
        """Zero: nothing of this worker is there."""
        self._calls = set[LeasedCall]()
        self._seen = dict[bytes, tuple[bytes, int]]()
        """The number of each worker, and at how many looks in a row it was that."""
        self._writing: asyncio.Task[None] | None = None
        self._changed = False

    def hold(self, call: LeasedCall) -> None:
        if not call.runs_once:
            self._calls.add(call)
            self._write_soon()

    def release(self, call: LeasedCall) -> None:
        if call in self._calls:
            self._calls.discard(call)
            self._write_soon()

    def _write_soon(self) -> None:
        """One write at a time, of all that is noted: what changes meanwhile is in the next one."""
        self._changed = True
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._changed:
            self._changed = False
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._note()
            except (RedisError, OSError, TimeoutError) as error:
                log.info("a death of this worker is noticed by its heartbeats alone: %s", error)

    async def _note(self) -> None:
        if not self._calls:
            self._number = 0
            await self._do("HDEL", self._key, self._name)
            await self._do("DEL", self._calls_of(self._name))
            return
        lines = b"\n".join(line_of(call) for call in self._calls)
        await self._do("SET", self._calls_of(self._name), lines, "EX", KEPT_SECONDS)
        if not self._number:
            await self._count_up()

    async def _count_up(self) -> bool:
        """False: another worker has taken this one as dead since."""
        number = int(await self._do("HINCRBY", self._key, self._name, 1))
        known, self._number = self._number, number
        return number > known

    async def look(self, fail: Fail) -> bool:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                kept = not self._number or await self._count_up()
                found: dict[bytes, bytes] = await self._do("HGETALL", self._key)
            for worker in self._silent(found):
                await self._see_to(worker, fail)
        except (RedisError, OSError, TimeoutError) as error:
            raise LeasesUnavailable(f"the leases in {self._place} can't be read: {error}") from error
        if not kept:
            self._write_soon()
        return kept

    def _silent(self, found: dict[bytes, bytes]) -> list[bytes]:
        seen, self._seen = self._seen, {}
        silent = list[bytes]()
        for worker, number in found.items():
            if worker == self._name.encode("ascii"):
                continue
            before, looks = seen.get(worker, (b"", 0))
            looks = looks + 1 if before == number else 1
            if looks >= LOOKS:
                silent.append(worker)
            else:
                self._seen[worker] = (number, looks)
        return silent

    async def _see_to(self, worker: bytes, fail: Fail) -> None:
        if not await self._do("HDEL", self._key, worker):
            return  # of several that look, one sees to it
        place = self._calls_of(worker.decode("ascii", "replace"))
        noted: bytes = await self._do("GET", place) or b""
        await fail([call for call in map(call_in, noted.split(b"\n")) if call is not None and not call.runs_once])
        await self._do("DEL", place)

    def _calls_of(self, worker: str) -> str:
        return f"{self._key}:{worker}"

    async def _do(self, *command: Any) -> Any:
        return await cast(Awaitable[Any], self._client.execute_command(*command))

    async def close(self) -> None:
        self._calls.clear()
        self._write_soon()
        if self._writing is not None:
            await self._writing
        for client in (self._client, *self._beside):
            with contextlib.suppress(RedisError, OSError):
                await client.aclose()
