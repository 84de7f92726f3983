"""Settings of client, command line and worker: flags win, then the environment, then `longhaul.toml`."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import TomlConfigSettingsSource as Toml

from workflows.contract import TASK_QUEUE


class Settings(BaseSettings):
    """`LONGHAUL_…` variables. Temporal's own (`TEMPORAL_ADDRESS`, …) are read by its envconfig."""

    model_config = SettingsConfigDict(env_prefix="LONGHAUL_", toml_file="longhaul.toml", extra="ignore")

    task_queue: str = TASK_QUEUE
    data_dir: Path = Field(default_factory=lambda: Path.home() / ".local" / "share" / "longhaul")
    """Workspaces that nobody named, what was offloaded, and the state of `longhaul dev`."""
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
    secrets: str = ""
    """Names of the worker's variables whose values agents may be given, comma-separated."""
    secrets_file: Path | None = None
    """TOML of names and values, readable for its owner alone. And each LONGHAUL_SECRET_NAME is the secret NAME."""
    prompt_templates: Path | None = None
    """Folder with templates of the system prompt that agents may name: `NAME.md`."""
    sandbox: Literal["off", "auto", "bwrap"] = "off"
    """Around commands of Bash: `bwrap` refuses to run without bubblewrap, `auto` is content with limits then."""
    sandbox_network: bool = False
    """Whether a command in a sandbox may reach the network, where its agent wants that too."""
    limit_cpu_seconds: int = Field(default=3_600, ge=1)
    limit_file_mb: int = Field(default=4_096, ge=1)
    limit_processes: int = Field(default=4_096, ge=1)
    limit_memory_mb: int = Field(default=8_192, ge=1)
    """Of commands under `bwrap` or `auto`."""
    redis_url: str = ""
    """For agents whose offloader is `redis`."""
    store: str = "file"
    """Where sessions are written down between their lives: `file` (in `data_dir`), `memory`, redis://…, sqlite:///PATH,
    postgresql://…, mysql://…, or `module:Class`."""
    blobs: str = ""
    """Where large values and older entries are kept: a directory, or redis://…; empty = in `data_dir`."""
    shared: bool = False
    """On where workers of several hosts poll one queue: a store or blobs of one host are refused then."""
    notify: str | list[str] = ""
    """Who is told of calls that wait: https://…, maildir:/PATH?to=ADDRESS, command:PROGRAM …, or a list of these."""
    graceful_shutdown_timeout: float = Field(default=20.0, ge=0, le=86_400)
    """Seconds that running calls get to end when a worker is asked to stop; less than the thirty after which Kubernetes
    kills it, so that what was cut short can still be told."""
    deployment: str = ""
    """On: workers are versioned, and belong to the deployment of this name."""
    build: str = ""
    """Which version; empty: the package's version and a digest of its code."""
    grpc_compression: Literal["none", "gzip"] = "none"
    """Of what is sent to Temporal and comes from there. Gzip takes a tenth of both sides' processor time: it is for
    lines that are narrow or paid for by the byte."""
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
    """TOML with what models cost, for the metric of costs."""
    otel_content: bool = False
    """Whether spans hold what people, models and tools say, secrets masked. What sends them is set by `OTEL_…`."""
    serve_tokens: str = ""
    """Who may ask `longhaul serve`: a file of token hashes, or its lines; empty = `serve-tokens` in `data_dir`."""
    serve_hosts: str = ""
    """Names that `longhaul serve` goes by beside the address it listens on, comma-separated."""
    serve_origins: str = ""
    """Of web pages that may ask `longhaul serve`, comma-separated, as in https://console.example."""
    model: str = ""
    """For `run` and `chat` when no `--model` and no agent file names one."""

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
        return (self.data_dir, *blobs, *([self.secrets_file] if self.secrets_file else []))

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
        return (init_settings, env_settings, Toml(settings_cls))
