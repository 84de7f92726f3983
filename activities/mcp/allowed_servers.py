"""Decides which MCP servers this worker speaks to. Whoever starts a session names servers, and must choose neither what
runs on the worker's machine, nor what its network is asked, nor where its keys go: that is the operator's to say.

Under `[mcp.NAME]` the operator describes servers, which agents name. What agents describe themselves has to be listed.
"""

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.models.profiles import NO_KEY, BadKeyPlaces, KeyPlace, is_among, read_key_places
from longhaul.activities.process.program_output import words_of
from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.shell.environment_variables import dangerous_variable
from longhaul.agent.plain.errors import BadSetup, what_is_wrong
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.plain.values import Many, sparse
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.mcp import (
    HttpMCPConfig,
    MCPClient,
    MCPConfig,
    StdioMCPConfig,
    secrets_in,
    without_query,
)


class NotOffered(Exception):
    """What an agent names is not for agents of this worker."""


class ServerFailure(Exception):
    """A server did not do what it was asked for."""


class ServerUnavailable(ServerFailure):
    """It can't be reached, or does not speak as it should; nothing was asked of it."""


class ServerBusy(ServerFailure):
    """It has not started with the request, and may take it later."""


class ServerLost(ServerFailure):
    """The connection was lost, or gave no answer, after a request had been sent."""


class AnswerTooLong(ServerFailure):
    """It has answered, with what can't be read."""


def in_words(error: BaseException) -> str:
    """Of a group of errors the first, in words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return words_of(error, 500)


SETTING = "LONGHAUL_MCP"
LIST = "LONGHAUL_MCP_ALLOW"
_COMMAND = "command:"


class BadMCPSetting(BadSetup):
    """The operator's servers can't be read; the sentence says which one, and what to write."""


class OfferedServer(MCPClient):
    """One of the operator's: what an agent can say of a server, and what it can't."""

    name: str = "offered"
    """Its table has it."""
    trusted: bool = sparse(False)
    """Whether it counts what the server says of its tools: that one only reads, or may run twice."""
    effects: dict[str, Effect] = sparse({})
    """By the server's own names of tools: what happens when a call runs twice. It counts before the server's word."""
    sandbox: bool = sparse(False)
    """Of a program: it runs in one, in which its folder alone can be written."""
    sandbox_network: bool = sparse(False)
    """Whether it reaches the network from there."""
    sandbox_reads: Many[str] = sparse((), max_length=50)
    """Folders that it reads there though they lie in a home folder, as where a program is installed."""


@dataclass(frozen=True)
class Server:
    """One that this worker may speak to, as it is spoken to for one agent."""

    name: str
    config: MCPConfig
    is_stateful: bool
    enable_tools: tuple[Sequence[str], ...]
    """Lists of which each has to name a tool."""
    disable_tools: tuple[str, ...]
    timeout_seconds: float
    trusted: bool = False
    effects: tuple[tuple[str, Effect], ...] = ()
    samples: bool = False
    """It is told that it may have a model asked."""
    sandbox: SandboxPolicy | None = None
    """The sandbox around its program."""
    folder: str = "/"
    """Where its program runs, if it is given none. It may have to be made."""

    @cached_property
    def key(self) -> str:
        """The same for two that are the same: secrets stand in it by their names."""
        config = {"kind": type(self.config).__name__, **self.config.model_dump(mode="json")}
        rest = [self.name, self.is_stateful, self.enable_tools, self.disable_tools, self.timeout_seconds]
        sandbox = None if self.sandbox is None else [self.sandbox.network, *map(str, self.sandbox.shown)]
        said = json.dumps([config, *rest, self.trusted, self.effects, self.samples, sandbox], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()

    def offers(self, tool: str) -> bool:
        return tool not in self.disable_tools and all(tool in names for names in self.enable_tools)


class OfferedServers:
    """The operator's servers by name, and the addresses and commands that agents may describe."""

    def __init__(
        self,
        servers: Mapping[str, OfferedServer] | None = None,
        places: Sequence[KeyPlace] = (),
        commands: Iterable[tuple[str, ...]] = (),
        secrets: WorkerSecrets | None = None,
        folder: Path = Path("/"),
        hidden: Iterable[Path] = (),
    ) -> None:
        """`folder`: where programs run that are given none. `hidden`: files and folders that none in a sandbox sees."""
        self._folder, self._hidden = str(folder), tuple(hidden)
        self._servers = dict(servers or {})
        self._places = tuple(places)
        self._commands = frozenset(commands)
        self._secrets = secrets or WorkerSecrets()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the operator's."""
        return tuple(self._servers)

    def server(self, client: MCPClient) -> Server:
        """What is spoken to for an agent that names this. Raises NotOffered."""
        offered = self._servers.get(client.name)
        if client.mcp_config is None:
            if offered is None or offered.mcp_config is None:
                hint = did_you_mean(client.name, self._servers, "they have")
                raise NotOffered(f"no MCP server is named {client.name!r} on this worker ({SETTING}); {hint}")
            shown = tuple(map(Path, offered.sandbox_reads))
            sandbox = (
                SandboxPolicy("all", offered.sandbox_network, hidden=self._hidden, shown=shown)
                if offered.sandbox
                else None
            )
            made = replace(_narrowed(offered, client, offered.mcp_config), sandbox=sandbox)
        else:
            if offered is not None:
                raise NotOffered(
                    f"the workers have an MCP server {client.name!r} of their own: leave its mcp_config out, or take "
                    "another name"
                )
            self._check(client.name, client.mcp_config)
            enabled = () if client.enable_tools is None else (client.enable_tools,)
            timeout, samples = client.execution_timeout, client.sampling is not None
            made = Server(
                client.name,
                client.mcp_config,
                client.is_stateful,
                enabled,
                client.disable_tools,
                timeout,
                samples=samples,
            )
        if unknown := self._secrets.missing(_secrets_of(made.config)):
            raise NotOffered(
                f"no secret is named {unknown[0]!r} on this worker, which the MCP server {made.name!r} needs"
            )
        # Never where the worker was started: programs look there for code of theirs. And what one in a sandbox leaves
        # must not be code of one outside.
        digest = hashlib.sha256(made.name.encode()).hexdigest()
        return replace(made, folder=f"{self._folder}/boxed/{digest[:16]}" if made.sandbox else self._folder)

    def _check(self, name: str, config: MCPConfig) -> None:
        if isinstance(config, HttpMCPConfig):
            address = without_query(config.url)
            for key in _secrets_of(config) or (NO_KEY,):
                if not is_among(key, address, self._places):
                    raise NotOffered(
                        f"agents may not name the address {address!r} of the MCP server {name!r} on this worker; "
                        f"its operator lists `{key}={address}` in {LIST}, or describes the server in {SETTING}"
                    )
            return
        if (config.command, *config.args) not in self._commands:
            line = shlex.join((config.command, *config.args))
            raise NotOffered(
                f"agents may not name the command of the MCP server {name!r} on this worker; its operator lists "
                f"`{_COMMAND}{line}` in {LIST}, or describes the server in {SETTING}"
            )
        steering = [f"env.{key}" for key in config.env if dangerous_variable(key.upper())]
        secret = [f"the secret {key}" for key in _secrets_of(config)]
        if said := [*steering, *secret, *(["cwd"] if config.cwd is not None else [])]:
            raise NotOffered(
                f"an agent may not give {said[0]} to the command of an MCP server ({name!r}); it is for the workers' "
                f"operator to do so, in {SETTING}"
            )


def open_servers(
    servers: Mapping[str, Any] | str,
    allowed: str | Sequence[str],
    secrets: WorkerSecrets,
    folder: Path = Path("/"),
    hidden: Iterable[Path] = (),
) -> OfferedServers:
    """From tables `[mcp.NAME]` of `longhaul.toml`, or the same as JSON, and a list of `none=https://HOST/PATH`,
    `SECRET=https://HOST/PATH` and `command:PROGRAM ARGUMENTS`. `folder`, `hidden`: as `OfferedServers`. Raises
    BadMCPSetting."""
    read = _read(servers)
    entries = [part.strip() for part in ([allowed] if isinstance(allowed, str) else allowed) if part.strip()]
    commands: list[tuple[str, ...]] = []
    for entry in entries:
        if not entry.startswith(_COMMAND):
            continue
        try:
            words = tuple(shlex.split(entry.removeprefix(_COMMAND)))
        except ValueError as error:
            raise BadMCPSetting(f"{LIST}: a command can't be read: {error}") from None
        if not words:
            raise BadMCPSetting(f"{LIST}: {_COMMAND} is followed by a program and its arguments")
        commands.append(words)
    try:
        places = [place for entry in entries if not entry.startswith(_COMMAND) for place in read_key_places(entry)]
    except BadKeyPlaces:
        raise BadMCPSetting(
            f"{LIST}: write `none=https://HOST/PATH`, `SECRET=https://HOST/PATH` or `{_COMMAND}PROGRAM ARGUMENTS`, or "
            "a JSON list of these"
        ) from None
    return OfferedServers(read, places, commands, secrets, folder, hidden)


def _read(servers: Mapping[str, Any] | str) -> dict[str, OfferedServer]:
    try:
        tables = json.loads(servers.strip() or "{}") if isinstance(servers, str) else servers
        named = {name: {**table, "name": name} for name, table in tables.items()}
        read = TypeAdapter(dict[str, OfferedServer]).validate_python(named)
    except ValidationError as error:
        raise BadMCPSetting(f"{SETTING}: mcp.{what_is_wrong(error)}") from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise BadMCPSetting(f"{SETTING}: write [mcp.NAME] into longhaul.toml, or the same as JSON") from None
    for name, server in read.items():
        if server.mcp_config is None:
            raise BadMCPSetting(f"{SETTING}: mcp.{name}: mcp_config is missing: a command, or a url")
        if server.sandbox and not isinstance(server.mcp_config, StdioMCPConfig):
            raise BadMCPSetting(f"{SETTING}: mcp.{name}: sandbox is for programs, and this server has a url")
        if (server.sandbox_network or server.sandbox_reads) and not server.sandbox:
            field = "sandbox_network" if server.sandbox_network else "sandbox_reads"
            raise BadMCPSetting(f"{SETTING}: mcp.{name}: {field} is for a server with sandbox = true")
        if odd := next((folder for folder in server.sandbox_reads if not folder.startswith("/")), ""):
            raise BadMCPSetting(f"{SETTING}: mcp.{name}: sandbox_reads: {odd!r} has to be an absolute path")
        if server.sampling is not None:
            raise BadMCPSetting(f"{SETTING}: mcp.{name}: sampling is the agents' to allow: it spends their budgets")
    return read


def _secrets_of(config: MCPConfig) -> tuple[str, ...]:
    if isinstance(config, StdioMCPConfig):
        return secrets_in(config.env.values())
    return secrets_in((config.url, *config.headers.values()))


def _narrowed(offered: OfferedServer, client: MCPClient, config: MCPConfig) -> Server:
    """The operator's word, of which an agent can take less and not more."""
    enabled = tuple(names for names in (offered.enable_tools, client.enable_tools) if names is not None)
    return Server(
        name=client.name,
        config=config,
        is_stateful=offered.is_stateful or client.is_stateful,
        enable_tools=enabled,
        disable_tools=(*offered.disable_tools, *client.disable_tools),
        timeout_seconds=min(offered.execution_timeout, client.execution_timeout),
        trusted=offered.trusted,
        samples=client.sampling is not None,
        effects=tuple(offered.effects.items()),
    )
