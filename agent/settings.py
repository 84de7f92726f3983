"""What a user may set about an agent, with the seed's names, limits and defaults."""

from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from agent.permission.rules import PermissionContext
from agent.values import Value, sparse


class ModelConfig(Value):
    """How a model is called. Credentials are named, never given: they stay on the worker."""

    max_retries: int = sparse(12, ge=0, le=1000)
    """Further attempts after a failure worth retrying: 0.2 s, doubled up to 60 s, or as the provider says."""
    fallback_model: str | None = sparse(None)
    """Takes the call when the first model failed for good."""
    max_output_tokens: int = sparse(8192, ge=1)
    temperature: float | None = sparse(None, ge=0, le=2)
    thinking_budget_tokens: int | None = sparse(None, ge=1024)
    """Anthropic's extended thinking; None = off."""
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = sparse(None)
    """OpenAI's reasoning models; None = the provider's default."""
    base_url: str | None = sparse(None)
    """A compatible server; None = the provider's own environment variable or address."""
    api_key_env: str | None = sparse(None)
    """Name of the worker's environment variable that holds the key; None = the provider's usual one."""
    call_timeout_seconds: float = sparse(1800, gt=0)
    context_length: int | None = sparse(None, ge=1000)
    """Tokens that the model's window holds; None = known from the model's name."""


class ReActConfig(Value):
    max_iters: int = sparse(50, ge=1, le=1_000_000)
    stop_on_reject: bool = sparse(False)
    """A denied call ends the reply instead of letting the model try another way."""
    parallel_tool_calls: bool = sparse(True)
    """False runs the calls of one turn one by one."""


class ContextConfig(Value):
    """When and how a context is made shorter (seed 001). Ratios are of the model's window."""

    trigger_ratio: float = sparse(0.8, gt=0, le=0.9)
    """Above it the context is compressed before the next model call."""
    reserve_ratio: float = sparse(0.1, gt=0, lt=0.9)
    """Newest messages that stay as they are; the system prompt and the tools do not count against it."""
    tool_result_limit: int = sparse(3000, ge=1)
    """Tokens; of a longer result the model gets the beginning and the place of the rest."""
    compression_prompt: str | None = sparse(None)
    """None = our own."""
    summary_template: str | None = sparse(None)
    """With a `{field}` for each field of the schema that is to be shown; None = our own."""
    summary_schema: dict[str, Any] | None = sparse(None)
    """JSON Schema of an object; None = the five fields of the seed."""
    condensers: tuple[str, ...] = sparse(("summary",), min_length=1)
    """`summary`, `drop_oldest`, `mask_observations`, or `module:name` on the worker; the first that makes enough
    room is taken."""

    @model_validator(mode="after")
    def _keeps_less_than_it_triggers_at(self) -> "ContextConfig":
        if self.reserve_ratio >= self.trigger_ratio:
            raise ValueError(
                f"reserve_ratio: {self.reserve_ratio} must be below trigger_ratio ({self.trigger_ratio}), or a "
                "compression would leave too much"
            )
        return self


class Workspace(Value):
    """Where the tools work. `shared`: each worker must see the same files, proven by a marker file."""

    root: str
    """Absolute path on the worker's machines."""
    place: Literal["shared"] = sparse("shared")


class AgentSpec(Value):
    """Everything about an agent that a session records at its start (MISSION A6)."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)
    name: str = Field(default="longhaul", min_length=1, max_length=200)
    system_prompt: str = "You are a careful software agent. Use the tools to find out; do not guess."
    model: str = Field(default="", max_length=1000)
    """`anthropic:NAME`, `openai:NAME` (Responses), `openai-chat:NAME` (Chat Completions), `scripted:FILE`."""
    tools: tuple[str, ...] = ("Bash", "Read", "Write", "Edit", "Grep", "Glob")
    permission: PermissionContext = Field(default_factory=PermissionContext)
    llm_config: ModelConfig = Field(default_factory=ModelConfig, alias="model_config")
    react_config: ReActConfig = Field(default_factory=ReActConfig)
    context_config: ContextConfig = Field(
        default_factory=ContextConfig, exclude_if=lambda config: config == ContextConfig()
    )
    offloader: str = sparse("workspace", max_length=1000)
    """Where dropped text is kept: `workspace`, `redis`, `none`, or `module:name` on the worker."""
    idle_close_seconds: int = sparse(604_800, ge=0)
    """A session without work closes after it; the next message opens it again as it was. 0 = never."""
    workspace: Workspace | None = None
    """None = a folder of the session's own in the worker's data directory."""

    @model_validator(mode="after")
    def _tool_names_are_unique(self) -> "AgentSpec":
        if len(set(self.tools)) != len(self.tools):
            raise ValueError(f"tools: {list(self.tools)} names a tool twice; name each one once")
        return self
