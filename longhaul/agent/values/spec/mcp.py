"""The leave of an MCP server to have a model asked in its name (sampling), and what that has taken.

The MCP servers of an agent: by a name that its workers' operator has given, or described, where the operator lets
agents do that. Words of the seed; `activities.mcp` speaks to them.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from longhaul.agent.plain.errors import not_repeated
from longhaul.agent.plain.values import Given, Many, OpenValue, Value, sparse
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.known_names import MCP, FullModelName


class Sampling(Value):
    """Limits for model calls that the server may request during one tool call. All of them count towards the session's
    budget."""

    model: FullModelName = sparse("", max_length=1_000)
    """Model that is called. Empty: the agent's model."""
    max_calls: int = sparse(5, ge=1, le=100)
    max_tokens: int = sparse(20_000, ge=1, le=10_000_000)
    """Input and output tokens of all these model calls."""


class Sampled(OpenValue):
    """What a model was asked in the name of a server, while one call ran."""

    model: str
    """As the agent names it."""
    calls: int
    usage: Usage


Words = Annotated[tuple[str, ...], Field(max_length=100)]

_NAME = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
"""No two `_` beside each other, for these end the name within a tool's; and none at the ends."""
_HOLDER = re.compile(r"[0-9a-f]{12}")
"""As a worker names itself."""
_SECRET = re.compile(r"\[secret ([A-Za-z_][A-Za-z0-9_]*)\]")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+(/[^\s?#@%\\]*)?")
_PAIR = re.compile(
    r"([A-Za-z0-9._~%+-]{1,200})=((?:\[secret [A-Za-z_][A-Za-z0-9_]*\]|[A-Za-z0-9._~%+!$'()*,;:@/?=-])*)"
)
"""Of a query: a name, and a value in which marks may stand."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_KEY_WORDS = frozenset(
    {
        *("key", "apikey", "accesskey", "secretkey", "token", "accesstoken", "authtoken", "secret", "clientsecret"),
        *("password", "passwd", "pwd", "passphrase", "auth", "authorization", "authentication", "bearer", "jwt"),
        *("credential", "credentials", "sig", "signature", "pat"),
    }
)
LONGEST_ADDRESS = 1_000
_KEY_LENGTH = 20
"""What is shorter, and not named as a key, is taken for a setting."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEADER = re.compile(r"[A-Za-z0-9!#$&'*+.^_`|~-]{1,100}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})
_OF_THE_CONNECTION = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "te"),
        *("upgrade", "trailer", "keep-alive", "expect", "accept", "accept-encoding", "last-event-id"),
    }
)


def secrets_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the secrets whose marks (`[secret NAME]`) stand in these."""
    return tuple(dict.fromkeys(name for text in texts for name in _SECRET.findall(text)))


def with_secrets(text: str, values: dict[str, str]) -> str:
    """The text with the values of its marks."""
    return _SECRET.sub(lambda found: values[found[1]], text)


def without_query(url: str) -> str:
    """The address alone, by which servers are listed."""
    return url.partition("?")[0]


def _check_query(query: str) -> None:
    """Raise ValueError for one that can't be read, or that holds a key which is written out."""
    for part in query.split("&"):
        pair = _PAIR.fullmatch(part)
        if pair is None:
            raise not_repeated(
                "its query can't be read: write NAME=VALUE&NAME=VALUE, with %XX for what is no letter or digit, and "
                "with `[secret NAME]` for a key"
            )
        name, value = _unquoted(pair[1]), _unquoted(pair[2].replace("+", " "))
        beside = _SECRET.sub("", value)
        if _looks_like_key(beside) or (beside == value and value and _is_named_as_key(name)):
            raise not_repeated(
                f"{name[:50]!r} in its query holds a key, which would stand in the session's history: write "
                f"`{pair[1][:50]}=[secret NAME]`, and workers put in the secret of that name"
            )


def _unquoted(text: str) -> str:
    return re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), text)


def _is_named_as_key(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    return bool(words) and (words[-1] in _KEY_WORDS or "".join(words[-2:]) in _KEY_WORDS)


def _looks_like_key(value: str) -> bool:
    """Long, of letters and digits mixed, and no UUID, by which workspaces and projects are named."""
    runs = re.findall(r"[A-Za-z0-9_+/=-]+", "" if _UUID.fullmatch(value) else value)
    return any(len(run) >= _KEY_LENGTH and re.search("[0-9]", run) and re.search("[A-Za-z]", run) for run in runs)


def server_of(tool: str) -> str:
    """The name of the server that brings a tool of this name; empty when none does."""
    return tool[len(MCP) :].partition("__")[0] if tool.startswith(MCP) else ""


CONNECTION = "mcp_connection"
"""In the metadata of an MCP tool's result: which process, or session of the server, it came through."""

TOOLS_CHANGED = "mcp_tools_changed"
"""The same, where its server has said that it offers other tools now."""


def connection_of(worker: str, number: str) -> str:
    """Its name. `worker`: the one that holds it, by its own queue; empty: it has none."""
    return f"{worker}.{number}" if worker else number


def holder_of(connection: str | None) -> str:
    """The worker that holds a connection of this name; empty: nobody can be asked for it. The name may be anybody's
    word, and the server refuses long names of queues."""
    holder = (connection or "").rpartition(".")[0]
    return holder if _HOLDER.fullmatch(holder) else ""


def worker_queue(task_queue: str, worker: str) -> str:
    """Name of the task queue of one worker alone."""
    return f"{task_queue}~{worker}"


class StdioMCPConfig(Value):
    """A program on the worker's machine. The worker talks to it through standard input and output."""

    command: str = Field(min_length=1, max_length=1_000)
    args: Given[Words, Sequence[str]] = sparse(())
    env: dict[str, str] = sparse({}, max_length=50)
    """Environment variables, besides the few that every command has. `[secret NAME]` stands for a secret of the
    worker."""
    cwd: str | None = sparse(None, max_length=1_000)
    """Working directory, an absolute path. None = a folder of the worker's own."""

    @model_validator(mode="after")
    def _can_be_started(self) -> "StdioMCPConfig":
        for text in (self.command, *self.args, *self.env.values(), self.cwd or ""):
            if "\0" in text or len(text) > 10_000:
                raise ValueError("a word of the command has a NUL, or more than 10,000 characters")
        if bad := [name for name in self.env if not _VARIABLE.fullmatch(name)]:
            raise ValueError(f"env: {bad[0][:100]!r} is no name of a variable")
        if self.cwd is not None and not self.cwd.startswith("/"):
            raise ValueError("cwd: it has to be an absolute path: workers run in folders of their own")
        return self


class HttpMCPConfig(Value):
    """A server by its address: Streamable HTTP, or SSE if the path ends in `/sse`."""

    model_config = ConfigDict(hide_input_in_errors=True)  # a key may be written out where its mark belongs

    url: str
    """Address, at most 1,000 characters. In query values `[secret NAME]` stands for a secret of the worker."""
    headers: dict[str, str] = sparse({}, max_length=20)
    """HTTP headers. `[secret NAME]` stands for a secret of the worker; any other value is stored in the session's
    history."""
    timeout: float = sparse(30.0, gt=0, le=600)
    """Seconds for a connection, and until an immediate answer begins."""

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if len(url) > LONGEST_ADDRESS:
            raise not_repeated(f"it has more than {LONGEST_ADDRESS:,} characters")
        address, mark, query = url.partition("?")
        if not (address.isascii() and _ADDRESS.fullmatch(address)):
            raise not_repeated(
                "it has to be an address: https://HOST/PATH or http://HOST:PORT/PATH, and behind it `?NAME=VALUE`, "
                "with `[secret NAME]` for a key"
            )
        if mark:
            _check_query(query)
        return url

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name[:100]!r} is no name of a header")
            if name.lower() in _OF_THE_CONNECTION or name.lower().startswith("mcp-"):
                raise ValueError(f"{name} is made with each request; leave it out")
            if not (value.isascii() and value.isprintable()) or len(value) > 1_000:
                raise ValueError(f"{name}: a value has at most 1,000 characters of plain text")
            if name.lower() in _CREDENTIALS and not _SECRET.search(value):
                raise not_repeated(f"{name} holds a credential: write `[secret NAME]` in its place, which workers know")
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("a header stands there twice")
        return headers


def _kind(given: Any) -> str:
    if isinstance(given, dict):
        return "http" if "url" in given else "stdio"
    return "http" if isinstance(given, HttpMCPConfig) else "stdio"


MCPConfig = Annotated[
    Annotated[StdioMCPConfig, Tag("stdio")] | Annotated[HttpMCPConfig, Tag("http")], Discriminator(_kind)
]


class MCPClient(Value):
    """One MCP server. The agent has its tools under the names `mcp__NAME__TOOL`."""

    model_config = ConfigDict(hide_input_in_errors=True)

    name: str = Field(min_length=1, max_length=30)
    is_stateful: bool = sparse(False)
    """One process, or one server session, for all calls of a session. Off: each call has its own."""
    mcp_config: MCPConfig | None = sparse(None)
    """Where the server is. None = as the workers' settings say for this name."""
    enable_tools: Given[Words | None, Sequence[str] | None] = sparse(None)
    """Tools that the agent has, by the server's own names. None = all."""
    disable_tools: Many[str] = sparse((), max_length=1_000)
    execution_timeout: float = sparse(600.0, gt=0, le=86_400)
    """Seconds that one call may take."""
    sampling: Sampling | None = sparse(None)
    """Whether and how much the server may request model calls. None: not at all."""

    @field_validator("name")
    @classmethod
    def _stands_within_tool_names(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("it takes letters, digits, `-` and single `_` within: tools are named mcp__NAME__TOOL")
        return name


def check_clients(clients: Iterable[MCPClient]) -> None:
    """Raise ValueError for two servers of one name: their tools could not be told apart."""
    names = [client.name for client in clients]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ValueError(f"mcps: two servers have the name {twice!r}; give each one of its own")
