"""The MCP servers of one worker: what they offer, listed once and kept, and the connections that keep state.

All of it is a cache, and can be made again. Nothing here waits longer than a bound.

The open connections of one worker, which are leases of sessions: few, ended when nobody uses them, and made again
when they are lost. What a server keeps of a session counts where it is said to keep state, and there alone.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.mcp.allowed_servers import NotOffered, OfferedServers, Server, ServerBusy, ServerFailure
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.process.program_output import words_of
from longhaul.activities.tools.registry import AbsentTool, Toolbox
from longhaul.agent.plain.text import visible
from longhaul.agent.values.spec.mcp import MCPClient, server_of

if TYPE_CHECKING:
    import mcp_types as types

    from longhaul.activities.mcp.connection import McpConnection

IDLE_SECONDS = 600.0
STATELESS_SECONDS = 30.0
"""The same where nothing is kept: to begin a program, or to greet a server, takes longer than most calls."""
FRESH_CONNECTION_SECONDS = 5.0
"""So long a connection that has answered is taken to do so again: a call that may run twice is made again where not."""
MOST_KEPT = 50
"""Beyond them the one that was not used for longest is ended."""


@dataclass
class Lease:
    """A connection of one session."""

    connection: "McpConnection"
    used_at: float
    before: str | None
    """The connection that the session had until this one was started: calls that were made together know of that
    one."""
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
            kept, is_again = await self._any_for(server, once=once), False
        else:
            kept, is_again = await self._kept_for(server, last, once=once)
        kept.in_use += 1
        answered = False
        try:
            yield kept.connection, is_again
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
        self._make_room(0)  # of many that are started at once none finds another one to end
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
    if not once and time.monotonic() - kept.used_at < FRESH_CONNECTION_SECONDS:
        return True
    kept.in_use += 1
    try:
        return await kept.connection.answers()
    finally:
        kept.in_use -= 1


log = logging.getLogger(__name__)

LISTING_SECONDS = 20.0
LISTING_PAUSES = (0.2, 1.0)
"""Seconds between tries where a server has no time: a reply waits for them."""
FRESH_LIST_SECONDS = 300.0
"""A list that is older is made again for a reply that begins: few servers can say that theirs has changed."""
FORGIVEN_TIMES = 3
"""A server that gave no list is not asked for another one so many times as long as that took: where it hangs, few wait
for it, and where it is down at once, nobody does."""
MOST_LISTS, MOST_TOGETHER = 200, 50
"""Kept by this worker: each agent may want another part of what a server offers. And of its tools beside theirs."""


@dataclass
class ToolList:
    """What a server has said, and when."""

    toolbox: Toolbox
    at: float
    misspelt: tuple[str, ...] = ()
    """What is named of the server's tools and is none of them, and that some are left out, in sentences."""
    notes: tuple[str, ...] = ()
    """What is wrong with its list as a whole: for whoever looks after workers, and not for sessions."""
    is_stale: bool = False
    """The server says that it offers something else now."""


class McpServers:
    def __init__(
        self,
        offered: OfferedServers | None = None,
        secrets: WorkerSecrets | None = None,
        idle_seconds: float = IDLE_SECONDS,
        worker: str = "",
    ) -> None:
        """`idle_seconds`: so long a server that keeps state is kept while nobody uses it. `worker`: by which queue of
        its own this one is asked for what it holds."""
        self.worker = worker
        self._offered = offered or OfferedServers()
        self._secrets = secrets or WorkerSecrets()
        # A step asks more than once for each.
        self._spoken_to = lru_cache(MOST_LISTS)(lambda said: self._offered.server(MCPClient.model_validate_json(said)))
        self._together = lru_cache(MOST_TOGETHER)(Toolbox.beside)
        self._listings: dict[str, ToolList] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        self._listing: dict[str, asyncio.Task[ToolList]] = {}
        self._connections = Connections(self._secrets, self._outdated, idle_seconds, worker)

    async def beside(
        self, toolbox: Toolbox, clients: Iterable[MCPClient], named: Mapping[str, str] | None = None
    ) -> Toolbox:
        """The worker's tools and those of these servers, as they were listed. `named`: tools that have to be there, by
        the digests that were recorded of them (empty: any); one that is not stands there with the reason. Raises
        NotHere for a server that agents of this worker may not use."""
        found = await asyncio.gather(*(self._of_one(client, named or {}) for client in clients))
        sandboxes = [sandbox for both in found for sandbox in both]
        return toolbox.beside(sandboxes) if sandboxes else toolbox

    async def _of_one(self, client: MCPClient, named: Mapping[str, str]) -> list[Toolbox]:
        server = self._server(client)
        own = {name: digest for name, digest in named.items() if server_of(name) == client.name}
        try:
            listing = await self._listed(server, lambda found: found.toolbox.has(own))
        except ServerFailure as error:
            return [Toolbox(AbsentTool(name, str(error)) for name in own)]
        lacking = [name for name in own if not listing.toolbox.has({name: own[name]})]
        return [listing.toolbox, Toolbox(AbsentTool(name, _why(listing.toolbox, name)) for name in lacking)]

    async def for_call(self, toolbox: Toolbox, client: MCPClient | None, name: str, digest: str) -> Toolbox:
        """The same for one call of an activity; `client`: the server that brings its tool."""
        if client is None:
            return toolbox
        known = self._listings.get(self._server(client).key)
        if known is not None and not known.is_stale and known.toolbox.has({name: digest}):
            return self._together(toolbox, (known.toolbox,))
        async with beating():
            return await self.beside(toolbox, (client,), {name: digest})

    def known_beside(self, toolbox: Toolbox, clients: Iterable[MCPClient], called: Iterable[str]) -> Toolbox:
        """The same for the tools of these names, as far as it is known without asking anybody."""
        needed = set(map(server_of, called))
        servers = [self._server_or_none(client) for client in clients if client.name in needed]
        known = [self._listings.get(server.key) for server in servers if server]
        return self._together(toolbox, tuple(listing.toolbox for listing in known if listing))

    async def for_reply(
        self, clients: Iterable[MCPClient], outdated: Iterable[str] = (), *, is_under_way: bool = False
    ) -> tuple[Toolbox, tuple[str, ...]]:
        """The tools of these servers as they are now, and a sentence about each that can't be reached, and each tool
        that is named and that none has. A list that was made before counts where no new one can be had, or where it is
        young and nobody has called it `outdated`. Raises NotHere as `beside`, and what is final where a reply that
        `is_under_way` would be left without tools that it has."""
        servers = [self._server(client) for client in clients]
        for server in servers:
            if server.name in outdated:
                self._outdated(server.key)
        found = await asyncio.gather(*map(self.newest, servers))
        if is_under_way and (lost := next((told for sandbox, told in found if sandbox is None), None)):
            raise failed_for_good("upstream", lost[0])
        sandboxes = [sandbox for sandbox, _ in found if sandbox is not None]
        return Toolbox(()).beside(sandboxes), tuple(why for _, told in found for why in told)

    async def newest(self, server: Server) -> tuple[Toolbox | None, tuple[str, ...]]:
        """The same of one server; None where it can't be reached."""
        try:
            found = await self._listed(server, lambda found: time.monotonic() - found.at < FRESH_LIST_SECONDS)
        except ServerFailure as error:
            if (known := self._listings.get(server.key)) is None:
                return None, (f"{error}. Its tools are missing until it can be reached.",)
            found = known
        # The reason stands in the log: it may be worded again each time, and this is said once.
        kept = f"the MCP server {server.name!r} offers other tools now, and gave no list of them: the old one counts"
        return found.toolbox, (*found.misspelt, *([kept] if found.is_stale else []))

    def notes(self, server: Server) -> tuple[str, ...]:
        """What was wrong with its newest list."""
        known = self._listings.get(server.key)
        return known.notes if known else ()

    async def close(self) -> None:
        """End all connections, and what they have started."""
        for task in self._listing.values():
            task.cancel()
        await self._connections.close()

    def _outdated(self, key: str) -> None:
        if key in self._listings:
            self._listings[key].is_stale = True

    def _server(self, client: MCPClient) -> Server:
        if find_spec("mcp") is None:
            raise not_here("this worker can't speak to MCP servers: pip install 'longhaul-agents[mcp]'")
        try:
            return self._spoken_to(client.model_dump_json())
        except NotOffered as error:
            raise not_here(str(error)) from None

    def _server_or_none(self, client: MCPClient) -> Server | None:
        with suppress(NotOffered):
            return self._spoken_to(client.model_dump_json())
        return None

    async def _listed(self, server: Server, is_enough: Callable[[ToolList], bool]) -> ToolList:
        """The list that is there, or a new one where it is not enough; of a server that fails, the old one. Raises
        ServerFailure."""
        key = server.key
        known = self._listings.get(key)
        if known is not None and not known.is_stale and is_enough(known):
            return known
        until, why = self._failed.get(key, (0.0, ""))
        if time.monotonic() < until:
            if known is None:
                raise ServerFailure(why)
            return known
        try:
            return await asyncio.shield(self._listing.get(key) or self._started(server))
        except ServerFailure:
            if known is not None:
                return known
            raise

    def _started(self, server: Server) -> asyncio.Task[ToolList]:
        """One for all that wait for it; whoever stops waiting does not end it."""
        task = self._listing[server.key] = asyncio.create_task(self._list(server))

        def ended(task: asyncio.Task[ToolList]) -> None:
            self._listing.pop(server.key, None)
            if not task.cancelled():
                task.exception()  # looked at: nobody may wait for it any more

        task.add_done_callback(ended)
        return task

    async def _list(self, server: Server) -> ToolList:
        """Raises ServerFailure, and remembers it."""
        from longhaul.activities.mcp.tool_calls import ServedTool  # noqa: PLC0415
        from longhaul.activities.mcp.tool_descriptors import described, left_out, misspelt  # noqa: PLC0415  needs the extra

        began = time.monotonic()
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                listed, notes = await self._list_again(server)
            found = [*described(server, listed, self._secrets.masker.masked)]
            toolbox = Toolbox(ServedTool(server, about, self._connections) for about in found)
            told = (*misspelt(server, listed), *left_out(server, listed, len(found)))
            slips = tuple(map(self._secrets.masker.masked, told))
            listing = ToolList(toolbox, time.monotonic(), slips, notes)
        except Exception as error:  # whatever it says, or fails to say, costs its own tools alone
            why = str(error) if isinstance(error, ServerFailure) else self._in_words(server, error)
            log.warning("%s", why)
            now = time.monotonic()
            self._failed[server.key] = (now + FORGIVEN_TIMES * (now - began), why)
            raise ServerFailure(why) from error
        for sentence in listing.misspelt:
            log.warning("%s", sentence)
        for note in notes:
            log.info("MCP server %s: %s", server.name, note)
        self._failed.pop(server.key, None)
        self._listings[server.key] = listing
        while len(self._listings) > MOST_LISTS:
            self._listings.pop(next(iter(self._listings)))
        return listing

    async def _list_again(self, server: Server) -> "tuple[list[types.Tool], tuple[str, ...]]":
        """Once more, and again, while it says that it has no time. Raises ServerFailure, MCPError."""
        for pause in (*LISTING_PAUSES, None):
            connection = self._connections.new(server)
            try:
                await connection.opened()
                return await connection.list_tools()
            except ServerBusy:
                if pause is None:
                    raise
            finally:
                connection.close()
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _in_words(self, server: Server, error: Exception) -> str:
        said = visible(self._secrets.masker.masked(words_of(error, 500)))
        return f"the MCP server {server.name!r} gave no list of its tools: {said}"


def _why(toolbox: Toolbox, name: str) -> str:
    if toolbox.get(name) is None:
        return f"the MCP server {server_of(name)!r} does not offer {name!r} any more"
    return f"the MCP server {server_of(name)!r} has changed {name!r} since this reply began"
