"""The MCP servers of one worker: what they offer, listed once and kept, and the connections that keep state.

All of it is a cache, and can be made anew. Nothing here waits longer than a bound.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.mcp.allowed_servers import OfferedServers, Server
from longhaul.activities.mcp.connections import IDLE_SECONDS, Connections
from longhaul.activities.mcp.failures import NotOffered, ServerBusy, ServerFailure
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.process.output_truncation import words_of
from longhaul.activities.tools.absent import AbsentTool
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.plain.text import visible
from longhaul.agent.values.spec.mcp import MCPClient, server_of

if TYPE_CHECKING:
    import mcp_types as types

log = logging.getLogger(__name__)

LISTING_SECONDS = 20.0
LISTING_PAUSES = (0.2, 1.0)
"""Seconds between tries where a server has no time: a reply waits for them."""
FRESH_SECONDS = 300.0
"""A list that is older is made anew for a reply that begins: few servers can say that theirs has changed."""
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
        boxes = [box for both in found for box in both]
        return toolbox.beside(boxes) if boxes else toolbox

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
        if is_under_way and (lost := next((told for box, told in found if box is None), None)):
            raise failed_for_good("upstream", lost[0])
        boxes = [box for box, _ in found if box is not None]
        return Toolbox(()).beside(boxes), tuple(why for _, told in found for why in told)

    async def newest(self, server: Server) -> tuple[Toolbox | None, tuple[str, ...]]:
        """The same of one server; None where it can't be reached."""
        try:
            found = await self._listed(server, lambda found: time.monotonic() - found.at < FRESH_SECONDS)
        except ServerFailure as error:
            if (known := self._listings.get(server.key)) is None:
                return None, (f"{error}. Its tools are missing until it can be reached.",)
            found = known
        # The reason stands in the log: it may be worded anew each time, and this is said once.
        kept = f"the MCP server {server.name!r} offers other tools now, and gave no list of them: the old one counts"
        return found.toolbox, (*found.misspelt, *([kept] if found.is_stale else []))

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
            return await asyncio.shield(self._listing.get(key) or self._begun(server))
        except ServerFailure:
            if known is not None:
                return known
            raise

    def _begun(self, server: Server) -> asyncio.Task[ToolList]:
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
                listed = await self._asked(server)
            found = [*described(server, listed, self._secrets.masker.masked)]
            toolbox = Toolbox(ServedTool(server, about, self._connections) for about in found)
            told = (*misspelt(server, listed), *left_out(server, listed, len(found)))
            slips = tuple(map(self._secrets.masker.masked, told))
            listing = ToolList(toolbox, time.monotonic(), slips)
        except Exception as error:  # whatever it says, or fails to say, costs its own tools alone
            why = str(error) if isinstance(error, ServerFailure) else self._in_words(server, error)
            log.warning("%s", why)
            now = time.monotonic()
            self._failed[server.key] = (now + FORGIVEN_TIMES * (now - began), why)
            raise ServerFailure(why) from error
        for sentence in listing.misspelt:
            log.warning("%s", sentence)
        self._failed.pop(server.key, None)
        self._listings[server.key] = listing
        while len(self._listings) > MOST_LISTS:
            self._listings.pop(next(iter(self._listings)))
        return listing

    async def _asked(self, server: Server) -> "list[types.Tool]":
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
