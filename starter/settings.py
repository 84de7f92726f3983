"""Settings of client, command line and worker: flags win, then the environment, then `longhaul.toml`: that of the
current folder for the little that a folder may say, and the user's own for all of it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticUndefined
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from longhaul.agent.plain.errors import BadSetup, shortened
from longhaul.agent.plain.text import did_you_mean, nearest
from longhaul.agent.values.spec.workspace import HOST, LONGEST_HOST, Sandbox
from longhaul.starter import folder_trust
from longhaul.starter.folder_trust import BadSettingsFile
from longhaul.starter.links import LinkTemplate, WebAddress
from longhaul.workflows.contract import TASK_QUEUE

OF_A_FOLDER = frozenset(
    {
        *("build", "deployment", "graceful_shutdown_timeout", "grpc_compression"),
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


class BadVariable(BadSetup):
    """A `LONGHAUL_…` variable is probably misspelt, or a setting has a value that it can't have. The sentence names the
    variable, and the one that was probably meant or the value."""


class Settings(BaseSettings):
    """Settings from `LONGHAUL_…` variables. Temporal's SDK reads its own variables (`TEMPORAL_ADDRESS`, …) itself."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")
    folder_counts: ClassVar[bool] = True

    task_queue: str = TASK_QUEUE
    """Temporal task queue of clients and workers."""
    host: Annotated[str, Field(pattern=rf"^({HOST})?$", max_length=LONGEST_HOST)] = ""
    """Name of this worker's host. Only workers of a host do the work of sessions whose workspace is on that host
    alone."""
    data_dir: Path = Field(default_factory=lambda: Path.home() / ".local" / "share" / "longhaul")
    """Folder for workspaces without a name, offloaded text, and the state of `longhaul dev`."""
    project: str = ""
    """Folder of this machine that workers in a container, or on other machines, see under the same path."""
    tools: str = ""
    """Python modules with further tools, comma-separated."""
    offloaders: str = ""
    """Further offloaders that agents may name, comma-separated: `module:name`."""
    condensers: str = ""
    """Further condensers that agents may name, comma-separated: `module:name`."""
    analyzers: str = ""
    """Further security analyzers that agents may name, comma-separated: `module:name`."""
    hooks: str = ""
    """Functions that may change the system prompt before each model call, comma-separated: `module:name`. They run in
    this order."""
    middlewares: str = ""
    """Middlewares for all agents, comma-separated: `module:name`. With `?module:name`, only for agents that name it."""
    client_hooks: str = ""
    """Functions that register hooks for what clients do, comma-separated: `module:name`. Each is called with the
    client's hooks."""
    model_keys: str = ""
    """Addresses that keys of models may go to, besides their providers' own, comma-separated:
    `TEAM_KEY=https://HOST/PATH`, or `none=http://HOST:PORT/PATH` for a server that needs no key."""
    models: Annotated[dict[str, Any] | str, NoDecode] = ""
    """Model profiles that agents may name: tables `[models.NAME]`, or the same as JSON. The worker reads them."""
    mcp: Annotated[dict[str, Any] | str, NoDecode] = ""
    """MCP servers that agents may name: tables `[mcp.NAME]`, or the same as JSON."""
    mcp_allow: str | list[str] = ""
    """MCP servers that agents may describe themselves: none=https://HOST/PATH, SECRET=https://HOST/PATH,
    command:PROGRAM ARGUMENTS, or a list of these."""
    web_search: str = ""
    """Search engine of the tool WebSearch: the address of a server that answers in JSON as SearXNG does."""
    web_private: str = ""
    """Networks that are not public but that WebFetch may read, comma-separated: 10.20.0.0/16, 10.20.0.7."""
    web_robots: bool = False
    """WebFetch obeys robots.txt: it reads no page that a site's robots.txt closes to programs."""
    secrets: str = ""
    """Names of the worker's environment variables whose values agents may get as secrets, comma-separated."""
    secrets_file: Path | None = None
    """TOML file of names and values; only its owner may read it. Each variable LONGHAUL_SECRET_NAME is the secret NAME
    too."""
    prompt_templates: Path | None = None
    """Folder with templates of the system prompt, `NAME.md`, that agents may name."""
    sandbox: Sandbox = "proven"
    """Run Bash commands in a sandbox: `proven` for those that run without approval, or `all`. If no sandbox is
    possible, `proven` asks about commands found harmless, and `all` runs nothing. With `off`, nothing stops a command
    that Longhaul wrongly took for harmless."""
    sandbox_network: bool = False
    """A command in a sandbox may reach the network, if its agent's setting says so too."""
    limit_cpu_seconds: int = Field(default=3_600, ge=1)
    """Seconds of processor time for each command in a sandbox."""
    limit_file_mb: int = Field(default=4_096, ge=1)
    """Megabytes of one file that a command in a sandbox writes."""
    limit_processes: int = Field(default=4_096, ge=1)
    """Processes of the worker's user, for each command in a sandbox."""
    limit_memory_mb: int = Field(default=8_192, ge=1)
    """Megabytes of memory for each command in a sandbox."""
    images: str = ""
    """Container images that agents may name for their sandbox, comma-separated: `NAME=podman:IMAGE`,
    `NAME=docker:IMAGE`. They must be on the worker; Longhaul fetches none."""
    redis_url: str = ""
    """Address of Redis, for agents with the offloader `redis`."""
    store: str = "file"
    """State store, which keeps sessions between their incarnations: `file` (in `data_dir`), `memory`, redis://…,
    sqlite:///PATH, postgresql://…, mysql://…, or `module:Class`."""
    blobs: str = ""
    """Blob store, for large values and older entries: a directory, or redis://…. Empty = in `data_dir`."""
    master_key: SecretStr = SecretStr("")
    """Turns encryption on: each session's data is encrypted with the session's own key, and that key with this one.
    NAME:KEY,NAME:KEY (the first for new keys), aws-kms:KEY, vault:KEY, provider:module:Class, or file:/PATH. Clients
    and workers need the same."""
    keys: str = ""
    """Where the keys of sessions are stored: sqlite:///PATH, or redis://…. Empty = `keys.db` in `data_dir`."""
    codec: str = ""
    """Your own codec around Longhaul's data: `module:name` of a PayloadCodec of Temporal's SDK, or of a DataConverter
    with codec and failure converter. Clients and workers need the same."""
    memory: str = "sqlite"
    """Where memories are stored: `sqlite` (in `data_dir`), sqlite:///PATH, or `module:Class`."""
    knowledge: str = "sqlite"
    """Where knowledge bases are stored: `sqlite` (in `data_dir`), sqlite:///PATH, or `module:Class`."""
    embeddings: str = ""
    """Model that computes vectors of memories and passages: openai:NAME, or a profile. Empty: no vectors."""
    retrieval: Literal["hybrid", "vectors"] = "hybrid"
    """How memories and passages are found: by words and vectors (`hybrid`), or by vectors alone."""
    shared: bool = False
    """Turn it on if workers on several hosts poll one queue. Longhaul then refuses a state store or blob store of one
    host."""
    notify: str | list[str] = ""
    """Channels that notify people of waiting calls: https://…, maildir:/PATH?to=ADDRESS, command:PROGRAM …, or a list
    of these."""
    graceful_shutdown_timeout: float = Field(default=20.0, ge=0, le=86_400)
    """Seconds in which running calls may end after a worker is asked to stop. Keep it below Kubernetes' 30 seconds, so
    that the worker can still report interrupted calls."""
    activity_slots: int = Field(default=100, ge=1, le=10_000)
    """Activities that a worker runs at once: model calls, tools, and background commands. Local reads run within a
    workflow task and do not count."""
    target_cpu: float = Field(default=0, ge=0, le=1)
    """Like `target_memory`, for processor time."""
    target_memory: float = Field(default=0, ge=0, le=1)
    """Share of the machine's or container's memory. A worker takes another activity only while less is in use, and
    never more than `activity_slots` at once. 0 = no limit."""
    activity_pollers: int = Field(default=5, ge=0, le=1_000)
    """Polls at once by which a worker asks for activities. 0 = as many as there is work for."""
    activities_per_second: float = Field(default=0, ge=0, le=1_000_000)
    """Activities per second that one worker starts. 0 = no limit."""
    queue_activities_per_second: float = Field(default=0, ge=0, le=1_000_000)
    """Activities per second that the server hands out to all workers of the queue. 0 = no limit. All workers of a queue
    need the same value."""
    deployment: str = ""
    """Turns worker versioning on: name of the deployment that the workers belong to."""
    build: str = ""
    """Version of the worker. Empty: the package's version and a digest of its code."""
    grpc_compression: Literal["none", "gzip"] = "none"
    """Compression of data to and from Temporal. Gzip takes a tenth of both sides' processor time."""
    search_attributes: bool = True
    """Turn it off if the server does not let the worker register search attributes. `inbox` then has to ask each
    session."""
    opaque_ids: bool = False
    """Ids and search attributes, which no codec can encrypt, contain hashes of session and user names, computed with
    `id_key`."""
    id_key: SecretStr = SecretStr("")
    """Key of the hashes, the same for all clients. With a different key, a client does not find the sessions."""
    approval_key: SecretStr = SecretStr("")
    """Keys of signed decisions, `id:secret,id:secret`: clients sign with the first, workers accept all."""
    metrics: str = ""
    """Address and port at which a worker serves Prometheus metrics: 127.0.0.1:9464. Empty: no metrics."""
    prices: Path | None = None
    """TOML file with prices of models, for budgets and the metric of costs, or `genai-prices` for the prices of that
    package."""
    otel_content: bool = False
    """Spans contain what people, models and tools say, with secrets masked. `OTEL_…` variables set where spans go."""
    serve_tokens: str = ""
    """Who may call `longhaul serve`: a file of token hashes, or its lines. Empty = `serve-tokens` in `data_dir`."""
    serve_hosts: str = ""
    """Host names of `longhaul serve`, besides the address that it listens on, comma-separated."""
    serve_origins: str = ""
    """Origins of web pages that may call `longhaul serve`, comma-separated, such as https://console.example."""
    web_ui: WebAddress = ""
    """Address of Temporal's Web UI, such as http://127.0.0.1:8233. The console and `show` link to a session's page
    there."""
    trace_url: LinkTemplate = ""
    """Address of the page with a session's traces. It may contain {session}, {user}, {agent}, {namespace},
    {workflow_id} and `{conversation}`, the session's name in spans."""
    model: str = ""
    """Model of `run` and `chat` if no `--model` and no agent file names one."""
    notifications: Literal["auto", "osc9", "osc777", "off"] = "auto"
    """How `chat` and `run` let the terminal show a desktop notification for a waiting call: with this escape sequence,
    or not at all. `auto`: with the sequence that the terminal is known to support, if any."""
    player: str = ""
    """Command that plays sound, for `--play`; the file is added to it. Empty: the first usual player on PATH."""

    @model_validator(mode="wrap")
    @classmethod
    def _named_as_it_was_set(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Raises BadVariable."""
        try:
            return handler(given)
        except ValidationError as error:
            raise BadVariable(_wrong_value(cls, error)) from None

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


def _wrong_value(settings: type[Settings], error: ValidationError) -> str:
    """What is wrong with the first setting that is, by the name under which it was set, and what else it may be."""
    complaints = error.errors(include_url=False)
    name = str(complaints[0]["loc"][0])
    variable = f"{PREFIX}{name}".upper()
    given = next((value for key, value in os.environ.items() if key.upper() == variable), None)
    field = settings.model_fields[name]
    about = [one for one in complaints if one["loc"][0] == name]
    # One for each kind that the setting may be.
    why = ", or ".join(dict.fromkeys(one["msg"].removeprefix("Value error, ") for one in about))
    is_secret = field.annotation is SecretStr
    value = "" if is_secret else f" (it is {shortened(about[0]['input'])})"
    is_told = not is_secret and field.default not in (PydanticUndefined, None, "")
    default = f", which is {field.default!r}" if is_told else ""
    remedy = f"set another value, or leave it out for the default{default}"
    return f"{name if given is None else variable}: {why}{value}; {remedy}"


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
