"""The open connections of one worker, which are leases of sessions: few, ended when nobody uses them, and made anew
when they are lost. What a server keeps of a session counts where it is said to keep state, and there alone.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.mcp.allowed_servers import Server

if TYPE_CHECKING:
    from longhaul.activities.mcp.connection import McpConnection

IDLE_SECONDS = 600.0
STATELESS_SECONDS = 30.0
"""The same where nothing is kept: to begin a program, or to greet a server, takes longer than most calls."""
FRESH_SECONDS = 5.0
"""So long a connection that has answered is taken to do so again: a call that may run twice is made again where not."""
MOST_KEPT = 50
"""Beyond them the one that was not used for longest is ended."""


@dataclass
class Lease:
    """A connection of one session."""

    connection: "McpConnection"
    used_at: float
    before: str | None
    """The connection that the session had until this one was begun: calls that were made together know of that one."""
    in_use: int = 0
    ending: asyncio.TimerHandle | None = None
    """One at a time: a busy server would have thousands before the first comes."""


class Connections:
    def __init__(
        self,
        secrets: WorkerSecrets,
        on_change: Callable[[str], None],
        idle_seconds: float = IDLE_SECONDS,
        worker: str = "",
    ) -> None:
        """`on_change` is called with a server's key when it says that its tools have changed. `worker`: as
        `connection_of`."""
        self._worker = worker
        self._secrets, self._on_change, self._idle_seconds = secrets, on_change, idle_seconds
        self._kept: dict[tuple[str, str], Lease] = {}
        self._open: set[McpConnection] = set()
        self._turns = WeakValueDictionary[tuple[str, str], asyncio.Lock]()

    def new(self, server: Server) -> "McpConnection":
        from longhaul.activities.mcp.connection import McpConnection  # noqa: PLC0415  needs the extra

        connection = McpConnection(server, self._secrets, lambda: self._on_change(server.key), self._worker)
        self._open.add(connection)
        connection.when_ended(lambda: self._open.discard(connection))
        return connection

    @asynccontextmanager
    async def through(
        self, server: Server, last: str | None, *, once: bool
    ) -> AsyncIterator[tuple["McpConnection", bool]]:
        """As `served_tool.Connecting`. `last`: the connection that the session's newest result came through."""
        if not server.is_stateful:
            kept, is_anew = await self._any_for(server, once=once), False
        else:
            kept, is_anew = await self._kept_for(server, last, once=once)
        kept.in_use += 1
        answered = False
        try:
            yield kept.connection, is_anew
            answered = True
        finally:
            kept.in_use -= 1
            if server.is_stateful:
                self._let_rest(kept, self._idle_seconds)
            else:
                self._keep_answered(server, kept, answered=answered)

    async def _any_for(self, server: Server, *, once: bool) -> Lease:
        """One that no other call uses."""
        kept = self._kept.pop((own_session.key(), server.key), None)
        if kept is not None and await _goes_on(kept, None, once=once):
            return kept
        if kept is not None:
            kept.connection.close()
        connection = self.new(server)
        await connection.opened()
        return Lease(connection, time.monotonic(), None)

    def _keep_answered(self, server: Server, kept: Lease, *, answered: bool) -> None:
        """For the session's next call, if this one came to an answer."""
        key = (own_session.key(), server.key)
        if not answered or kept.connection.is_lost or key in self._kept:
            kept.connection.close()
            return
        self._kept[key] = kept
        self._let_rest(kept, min(STATELESS_SECONDS, self._idle_seconds))

    def _let_rest(self, kept: Lease, seconds: float) -> None:
        kept.used_at = time.monotonic()
        self._make_room(0)  # of many that are begun at once none finds another one to end
        if kept.ending is not None:
            kept.ending.cancel()
        kept.ending = asyncio.get_running_loop().call_later(seconds, self._end_unused, kept)

    async def close(self) -> None:
        """End all, and what they have started."""
        await asyncio.gather(*(connection.closed() for connection in [*self._open]))

    async def _kept_for(self, server: Server, last: str | None, *, once: bool) -> tuple[Lease, bool]:
        key = (own_session.key(), server.key)
        # Calls that are made together share one: each with its own, all but the last would be held by nobody.
        async with self._turns.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is not None and await _goes_on(kept, last, once=once):
                return kept, last not in (None, kept.connection.id)
            if kept is not None:
                kept.connection.close()
                self._kept.pop(key, None)
            self._make_room(1)
            connection = self.new(server)
            await connection.opened()
            self._kept[key] = Lease(connection, time.monotonic(), last)
            return self._kept[key], last is not None or kept is not None

    def _make_room(self, places: int) -> None:
        """End the ones that were not used for longest until so many may be added."""
        if (surplus := len(self._kept) - MOST_KEPT + places) > 0:
            idle = sorted((kept.used_at, key) for key, kept in self._kept.items() if not kept.in_use)
            for _, key in idle[:surplus]:
                self._kept.pop(key).connection.close()

    def _end_unused(self, kept: Lease) -> None:
        if not kept.in_use:
            self._kept = {key: one for key, one in self._kept.items() if one is not kept}
            kept.connection.close()


async def _goes_on(kept: Lease, last: str | None, *, once: bool) -> bool:
    """Whether a call may use it. One that another worker's has gone on without is as good as lost."""
    if kept.connection.is_lost or last not in (None, kept.connection.id, kept.before):
        return False
    if not once and time.monotonic() - kept.used_at < FRESH_SECONDS:
        return True
    kept.in_use += 1
    try:
        return await kept.connection.answers()
    finally:
        kept.in_use -= 1
