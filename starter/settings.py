"""Settings of client, command line and worker: flags win, then the environment, then `longhaul.toml`: that of the
current folder for the little that a folder may say, and the user's own for all of it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.text import did_you_mean, nearest
from longhaul.agent.values.spec.workspace import HOST, LONGEST_HOST, LONGEST_SECONDS, SHORTEST_SECONDS, Sandbox
from longhaul.starter import folder_trust
from longhaul.starter.folder_trust import BadSettingsFile
from longhaul.starter.links import LinkTemplate, WebAddress
from longhaul.workflows.contract import TASK_QUEUE

OF_A_FOLDER = frozenset(
    {
        *("build", "deployment", "graceful_shutdown_timeout", "grpc_compression", "liveness"),
        *("model", "search_attributes", "task_queue"),
    }
)
"""All that a folder's own file may say, when it is trusted. Through none of them code runs, keys or conversations go
elsewhere, or a wall falls: what is not in here is the user's, new settings included."""


PREFIX, SECRET = "LONGHAUL_", "LONGHAUL_SECRET_"
_OTHERS = ("TRUST", "TEMPORAL_CLI", "LOG", "NOTIFY_KEY", "AGENTS", "UID", "GID")
OTHER_VARIABLES = frozenset(f"{PREFIX}{name}" for name in _OTHERS)
"""Read elsewhere, or by the composition alone."""
NEARLY = 0.8
"""As `difflib` measures; so far off is one operation too few, or two in the wrong order."""
Liveness = Annotated[float, Field(ge=SHORTEST_SECONDS, le=LONGEST_SECONDS)]


class BadVariable(BadSetup):
    """A `LONGHAUL_…` variable that is probably misspelt; the sentence names the one that was meant."""


class Settings(BaseSettings):
    """`LONGHAUL_…` variables. Temporal's own (`TEMPORAL_ADDRESS`, …) are read by its envconfig."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")
    folder_counts: ClassVar[bool] = True

    task_queue: str = TASK_QUEUE
    host: Annotated[str, Field(pattern=rf"^({HOST})?$", max_length=LONGEST_HOST)] = ""
    """Name of this worker's host: sessions whose workspace lies there alone have their work done by workers of it."""
    data_dir: Path = Field(default_factory=lambda: Path.home() / ".local" / "share" / "longhaul")
    """Workspaces that nobody named, what was offloaded, and the state of `longhaul dev`."""
    project: str = ""
    """The folder of this machine that workers in a container, or on other machines, see under the same path."""
    tools: str = ""
    """Modules with further tools, comma-separated."""
    offloaders: str = ""
    """Further offloaders that agents may name, comma-separated: `module:name`."""
    condensers: str = ""
    """Further condensers that agents may name, comma-separated: `module:name`."""
    analyzers: str = ""
    """Further security analyzers that agents may name, comma-separated: `module:name`."""
    hooks: str = ""
    """Functions that may change the system prompt before each model call, in order, comma-separated: `module:name`."""
    middlewares: str = ""
    """Middlewares around every agent, comma-separated: `module:name`; `?module:name` for agents that name it alone."""
    client_hooks: str = ""
    """Functions that register hooks around what clients do, called with them, comma-separated: `module:name`."""
    model_keys: str = ""
    """Where keys of models may go beside their providers' own addresses, comma-separated: `TEAM_KEY=https://HOST/PATH`,
    or `none=http://HOST:PORT/PATH` for a server that wants no key."""
    models: Annotated[dict[str, Any] | str, NoDecode] = ""
    """Profiles of models that agents may name: tables `[models.NAME]`, or the same as JSON. The worker reads them."""
    mcp: Annotated[dict[str, Any] | str, NoDecode] = ""
    """MCP servers that agents may name: tables `[mcp.NAME]`, or the same as JSON."""
    mcp_allow: str | list[str] = ""
    """What agents may describe as an MCP server: none=https://HOST/PATH, SECRET=https://HOST/PATH,
    command:PROGRAM ARGUMENTS, or a list of these."""
    web_search: str = ""
    """The search engine behind the tool WebSearch: the address of one that answers as SearXNG does, with JSON."""
    web_private: str = ""
    """Networks that WebFetch may ask although they are not public, comma-separated: 10.20.0.0/16, 10.20.0.7."""
    web_robots: bool = False
    """On: WebFetch reads no page that a site's robots.txt asks programs to leave alone."""
    secrets: str = ""
    """Names of the worker's variables whose values agents may be given, comma-separated."""
    secrets_file: Path | None = None
    """TOML of names and values, readable for its owner alone. And each LONGHAUL_SECRET_NAME is the secret NAME."""
    prompt_templates: Path | None = None
    """Folder with templates of the system prompt that agents may name: `NAME.md`."""
    sandbox: Sandbox = "proven"
    """Around commands of Bash: those that run unasked, or all. Where there can be none, what was proven harmless asks,
    and under `all` nothing runs. `off` accepts that nothing holds off what a wrong proof lets through."""
    sandbox_network: bool = False
    """Whether a command in a sandbox may reach the network, where its agent wants that too."""
    limit_cpu_seconds: int = Field(default=3_600, ge=1)
    limit_file_mb: int = Field(default=4_096, ge=1)
    limit_processes: int = Field(default=4_096, ge=1)
    limit_memory_mb: int = Field(default=8_192, ge=1)
    """Of each command in a sandbox."""
    images: str = ""
    """Of containers that agents may name for their sandbox, comma-separated: `NAME=podman:IMAGE`, `NAME=docker:IMAGE`.
    They have to be there: none is fetched."""
    redis_url: str = ""
    """For agents whose offloader is `redis`."""
    store: str = "file"
    """Where sessions are written down between their lives: `file` (in `data_dir`), `memory`, redis://…, sqlite:///PATH,
    postgresql://…, mysql://…, or `module:Class`."""
    blobs: str = ""
    """Where large values and older entries are kept: a directory, or redis://…; empty = in `data_dir`."""
    master_key: SecretStr = SecretStr("")
    """On: what sessions say is encrypted, each with a key of its own, and those keys with this one. NAME:KEY,NAME:KEY,
    aws-kms:KEY, vault:KEY, provider:module:Class, the first for new ones, or file:/PATH; the same for workers and
    clients."""
    keys: str = ""
    """Where the keys of sessions are kept: sqlite:///PATH, or redis://…; empty = `keys.db` in `data_dir`."""
    codec: str = ""
    """The operator's own, around what sessions send: `module:name` of a PayloadCodec of Temporal's SDK, or of a
    DataConverter with codec and failure converter; the same for workers and clients."""
    memory: str = "sqlite"
    knowledge: str = "sqlite"
    """Where memories, and knowledge bases, are kept: `sqlite` (in `data_dir`), sqlite:///PATH, or `module:Class`."""
    embeddings: str = ""
    retrieval: Literal["hybrid", "vectors"] = "hybrid"
    """What makes vectors of both, for finding by words and vectors or by `vectors` alone: openai:NAME, or a profile."""
    shared: bool = False
    """On where workers of several hosts poll one queue: a store or blobs of one host are refused then."""
    notify: str | list[str] = ""
    """Channels for calls that wait: https://…, maildir:/PATH?to=ADDRESS, command:PROGRAM …, or a list of these."""
    liveness: Literal["", "fast", "cheap"] | Liveness = ""
    """How soon a dead worker is noticed: `fast` is two seconds, `cheap` thirty, for heartbeats are billed; or seconds.
    Empty: cheap where the server is reached with TLS or an API key. Clients ask a session that is silent more seldom
    where it is cheap."""
    graceful_shutdown_timeout: float = Field(default=20.0, ge=0, le=86_400)
    """Seconds that running calls get to end when a worker is asked to stop; less than the thirty after which Kubernetes
    kills it, so that what was cut short can still be told."""
    activity_slots: int = Field(default=100, ge=1, le=10_000)
    """Activities that a worker runs at once: model calls, tools, and commands in the background. Reads that are made
    within a workflow task are not among them."""
    target_cpu: float = Field(default=0, ge=0, le=1)
    target_memory: float = Field(default=0, ge=0, le=1)
    """Shares of the machine, or of the container: a worker takes another activity only while less is in use, and never
    more than `activity_slots`; 0 = whatever is in use."""
    activity_pollers: int = Field(default=5, ge=0, le=1_000)
    """Polls by which a worker asks for activities; 0 = as many as there is work for."""
    activities_per_second: float = Field(default=0, ge=0, le=1_000_000)
    queue_activities_per_second: float = Field(default=0, ge=0, le=1_000_000)
    """That one worker begins, and that the server hands out to all workers of the queue; 0 = no limit. All workers of a
    queue need the same limit of the queue."""
    deployment: str = ""
    """On: workers are versioned, and belong to the deployment of this name."""
    build: str = ""
    """Which version; empty: the package's version and a digest of its code."""
    grpc_compression: Literal["none", "gzip"] = "none"
    """Of what is sent to Temporal and comes from there. Gzip takes a tenth of both sides' processor time."""
    search_attributes: bool = True
    """Off where the server does not let the worker register them; `inbox` then has to look into each session."""
    opaque_ids: bool = False
    """On: ids and search attributes, which no codec can encrypt, name sessions and users by hashes with `id_key`."""
    id_key: SecretStr = SecretStr("")
    """The same for all clients; under another one, sessions are not found again."""
    approval_key: SecretStr = SecretStr("")
    """Keys of signed decisions, `id:secret,id:secret`: clients sign with the first, workers take all of them."""
    metrics: str = ""
    """Address and port at which a worker serves its metrics for Prometheus: 127.0.0.1:9464; empty: nowhere."""
    prices: Path | None = None
    """TOML with what models cost, for budgets and the metric of costs; `genai-prices`: what that package says."""
    otel_content: bool = False
    """Whether spans hold what people, models and tools say, secrets masked. What sends them is set by `OTEL_…`."""
    serve_tokens: str = ""
    """Who may ask `longhaul serve`: a file of token hashes, or its lines; empty = `serve-tokens` in `data_dir`."""
    serve_hosts: str = ""
    """Names that `longhaul serve` goes by beside the address it listens on, comma-separated."""
    serve_origins: str = ""
    """Of web pages that may ask `longhaul serve`, comma-separated, as in https://console.example."""
    web_ui: WebAddress = ""
    """Of Temporal's Web UI, as in http://127.0.0.1:8233: the console and `show` link to a session's page there."""
    trace_url: LinkTemplate = ""
    """Of the page that finds a session's traces. `{conversation}` is what spans call it; {session}, {user}, {agent},
    {namespace} and {workflow_id} may stand there too."""
    model: str = ""
    """For `run` and `chat` when no `--model` and no agent file names one."""
    notifications: Literal["auto", "osc9", "osc777", "off"] = "auto"
    """How `chat` and `run` have the terminal tell the desktop that a call waits: `auto` where it is known to, by the
    sequence that it is known to take; off."""
    player: str = ""
    """Of sound, for `--play`: a command, to which the file is added; empty: the first of the usual ones on PATH."""

    @property
    def limits(self) -> tuple[int, int, int, int]:
        """Of commands: CPU seconds, MB of a file, processes, MB of memory."""
        return (self.limit_cpu_seconds, self.limit_file_mb, self.limit_processes, self.limit_memory_mb)

    @property
    def own_places(self) -> tuple[Path, ...]:
        """Files and folders of the worker's own, which no command has to see."""
        blobs = [Path(self.blobs)] if self.blobs and "://" not in self.blobs else []
        lasting = [Path(at[9:]) for at in (self.memory, self.knowledge, self.keys) if at.startswith("sqlite:///")]
        master = self.master_key.get_secret_value()
        files = [Path(master[5:])] if master.startswith("file:") else []
        return (self.data_dir, *blobs, *lasting, *files, *([self.secrets_file] if self.secrets_file else []))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        known = settings_cls.model_fields
        # Raises BadVariable for a name that is no setting's, but nearly. Others of that beginning may be anybody's own.
        names = {f"{PREFIX}{name}".upper() for name in known} | OTHER_VARIABLES
        for variable in os.environ:
            name = variable.upper()
            if not name.startswith(PREFIX) or name in names or name.startswith(SECRET):
                continue
            if near := nearest(name.removeprefix(PREFIX), (one.removeprefix(PREFIX) for one in names), NEARLY):
                raise BadVariable(f"{variable} is no setting; did you mean {PREFIX}{near}?")
        folder = _said_by_the_folder(known) if cls.folder_counts else {}
        own = _said_by_the_user(known)
        return (
            init_settings,
            env_settings,
            InitSettingsSource(settings_cls, folder),
            InitSettingsSource(settings_cls, own),
        )


class SettingsOfTheUser(Settings):
    """The same without anything that the current folder says."""

    folder_counts: ClassVar[bool] = False


def users_file() -> Path:
    """Where the user's own settings stand."""
    home = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (home if home.is_absolute() else Path.home() / ".config") / "longhaul" / folder_trust.SETTINGS


def _said_by_the_user(known: Mapping[str, object]) -> dict[str, Any]:
    """Raises BadSettingsFile."""
    path = users_file()
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadSettingsFile(f"{str(path)!r} can't be read: {error.strerror}") from error
    table = folder_trust.table_of(path, content)
    for key in table:
        if key not in known:
            raise _unknown(path, key, known)
    return table


def _said_by_the_folder(known: Mapping[str, object]) -> dict[str, Any]:
    """Raises BadSettingsFile, and Untrusted."""
    if folder_trust.is_left_out() or not Path(folder_trust.SETTINGS).is_file():
        return {}
    path = Path.cwd() / folder_trust.SETTINGS
    if path == users_file().resolve():
        return {}
    found = folder_trust.look(path.parent)
    table = folder_trust.table_of(path, found.files.get(folder_trust.SETTINGS, b""))
    for key in table:
        if key.lower() in known and key not in OF_A_FOLDER:
            raise BadSettingsFile(
                f"{str(path)!r} sets {key!r}, which no folder may set; if you want it, put it into "
                f"{str(users_file())!r} or set LONGHAUL_{key.upper()}, and remove it there"
            )
        if key not in known:
            raise _unknown(path, key, OF_A_FOLDER)
    if not found.is_trusted:
        raise folder_trust.Untrusted(found)
    return table


def _unknown(path: Path, key: str, known: Iterable[str]) -> BadSettingsFile:
    return BadSettingsFile(f"{str(path)!r}: there is no setting {key!r}; {did_you_mean(key, known, 'it may set')}")
