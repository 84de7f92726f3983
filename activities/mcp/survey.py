"""Asks MCP servers what they offer, where there is no session: for whoever looks after workers."""

import logging
import shlex
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.mcp.allowed_servers import NotOffered, open_servers
from longhaul.activities.mcp.servers import McpServers, log
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.values.spec.mcp import HttpMCPConfig, MCPClient


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What one server has said."""

    name: str
    toolbox: Toolbox | None
    """None: it can't be reached, or may not be named."""
    told: tuple[str, ...] = ()
    """Why, or which names are no tools of it; in sentences."""
    address: str = ""
    """Where it is, or by which command it is started; secrets stand in it by their names."""
    is_stateful: bool = False
    trusted: bool = False
    notes: tuple[str, ...] = ()
    """What is wrong with its list of tools."""


class Survey:
    """The servers of a worker with these settings."""

    def __init__(
        self,
        tables: Mapping[str, Any] | str,
        allowed: str | Iterable[str],
        secrets: Mapping[str, str],
        folder: Path,
        hidden: Iterable[Path],
    ) -> None:
        """As `open_servers`. Raises BadMCPSetting."""
        known = WorkerSecrets(secrets)
        listed = allowed if isinstance(allowed, str) else [*allowed]
        self._offered = open_servers(tables, listed, known, folder, hidden)
        self._servers = McpServers(self._offered, known)

    @property
    def operators(self) -> tuple[MCPClient, ...]:
        """All of the operator's."""
        return tuple(MCPClient(name=name) for name in self._offered.names)

    async def ask(self, client: MCPClient) -> Surveyed:
        """Within `servers.LISTING_SECONDS`."""
        if find_spec("mcp") is None:
            return Surveyed(
                client.name, None, ("`pip install 'longhaul-agents[mcp]'` is needed to speak to MCP servers",)
            )
        try:
            server = self._offered.server(client)
        except NotOffered as error:
            return Surveyed(client.name, None, (str(error),))
        toolbox, told = await self._servers.newest(server)
        config = server.config
        address = config.url if isinstance(config, HttpMCPConfig) else shlex.join((config.command, *config.args))
        return Surveyed(
            client.name,
            toolbox,
            told,
            address,
            server.is_stateful,
            server.trusted,
            self._servers.notes(server),
        )

    async def close(self) -> None:
        await self._servers.close()


@asynccontextmanager
async def surveying(
    tables: Mapping[str, Any] | str,
    allowed: str | Iterable[str],
    secrets: Mapping[str, str],
    folder: Path,
    hidden: Iterable[Path],
) -> AsyncIterator[Survey]:
    """What it starts is ended behind it. Raises BadMCPSetting."""
    survey = Survey(tables, allowed, secrets, folder, hidden)
    level = log.level
    log.setLevel(logging.ERROR)  # whoever asks is told each of its sentences
    try:
        yield survey
    finally:
        log.setLevel(level)
        await survey.close()
