"""What a user may set about an agent, with the seed's names, limits and defaults."""

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from agent.knowledge import Knowledge
from agent.permission.rules import PermissionContext, only_known_keys
from agent.prompt import check_template as check_prompt_template
from agent.prompt import is_template_name
from agent.stuck_config import StuckConfig
from agent.summary_template import DEFAULT_SCHEMA, check_template
from agent.tool_groups import ToolGroup, check_groups, in_groups
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
    interruption_message: str = sparse("", max_length=10_000)
    """What the agent says at the end of a reply that was interrupted; empty: nothing. A middleware's
    `handle_interrupt` that says something stands in its place."""


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
        if self.summary_template is not None:
            check_template(self.summary_template, self.summary_schema or DEFAULT_SCHEMA)
        return self


class AgentContext(Value):
    """What stands around the agent's own prompt in the system prompt of a conversation."""

    system_prefix: str = sparse("")
    system_suffix: str = sparse("")
    prompt_template: str | None = sparse(None, max_length=100_000)
    """Text with {prefix}, {system_prompt}, {skills} and {suffix} where they belong, or the name of such a text on the
    worker; None = one below the other."""
    knowledge: tuple[Knowledge, ...] = sparse((), max_length=50)
    """Texts that follow a request when it names what they are about, and triggers for skills in folders."""
    repo_skills: bool = sparse(False)
    """The workspace's own instructions (AGENTS.md, microagents/repo.md) stand among the skills. Whoever can write to
    the workspace can write them."""

    @model_validator(mode="after")
    def _template_can_be_used(self) -> "AgentContext":
        if self.prompt_template is not None and not is_template_name(self.prompt_template):
            check_prompt_template(self.prompt_template)
        return self


class Secrets(Value):
    """Which of the workers' secrets its tools are given, by name. Values never leave a worker."""

    allow: tuple[str, ...] = sparse((), max_length=100)
    """For every tool."""
    tools: dict[str, tuple[str, ...]] = sparse({})
    """For one tool, beside those."""

    @property
    def names(self) -> tuple[str, ...]:
        every = [*self.allow, *(name for names in self.tools.values() for name in names)]
        return tuple(dict.fromkeys(every))

    def given_to(self, tool: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.allow, *self.tools.get(tool, ()))))


def with_secrets_named(system_prompt: str, secrets: Secrets | None) -> str:
    """The prompt, and what the model has to know about secrets, if there are any."""
    if secrets is None or not secrets.names:
        return system_prompt
    lines = [
        f"- {name}: {'every tool' if name in secrets.allow else ', '.join(_tools_with(name, secrets))}"
        for name in secrets.names
    ]
    return "\n".join((system_prompt, "", SECRETS_NOTE, *lines))


def _tools_with(name: str, secrets: Secrets) -> list[str]:
    return [tool for tool, names in secrets.tools.items() if name in names]


SECRETS_NOTE = (
    "These secrets are environment variables of commands, and known to the tools named here. You never see a value: "
    "in what you read it is replaced by its name. Use the variables; do not print or write down what they hold."
)


class Workspace(Value):
    """Where the tools work. `shared`: each worker must see the same files, proven by a marker file."""

    root: str
    """Absolute path on the worker's machines."""
    place: Literal["shared"] = sparse("shared")


def _named_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(names) or len(set(names)) != len(names):
        raise ValueError("a name is empty or stands twice; name each middleware once")
    return names


Middlewares = Annotated[tuple[str, ...], Field(max_length=50), AfterValidator(_named_once)]


class AgentSpec(Value):
    """Everything about an agent that a session records at its start (MISSION A6)."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)
    name: str = Field(default="longhaul", min_length=1, max_length=200)
    system_prompt: str = "You are a careful software agent. Use the tools to find out; do not guess."
    model: str = Field(default="", max_length=1000)
    """`anthropic:NAME`, `openai:NAME` (Responses), `openai-chat:NAME` (Chat Completions), `scripted:FILE`."""
    tools: tuple[str, ...] = ("Bash", "Read", "Write", "Edit", "Grep", "Glob", "recall")
    tool_groups: dict[str, ToolGroup] = sparse({}, max_length=50)
    """Further tools by group, which the agent itself switches on and off."""
    permission: PermissionContext = Field(default_factory=PermissionContext)
    llm_config: ModelConfig = Field(default_factory=ModelConfig, alias="model_config")
    react_config: ReActConfig = Field(default_factory=ReActConfig)
    context_config: ContextConfig = Field(
        default_factory=ContextConfig, exclude_if=lambda config: config == ContextConfig()
    )
    middlewares: Middlewares = sparse(())
    """Of those that its workers offer, the outermost first."""
    stuck: StuckConfig = sparse(StuckConfig())
    """When it counts as going round in circles."""
    team: str = sparse("", max_length=100)
    """Whose inbox its calls are in: `longhaul inbox --team`."""
    skills: tuple[str, ...] = sparse((), max_length=20)
    """Folders on the worker with a SKILL.md, or with sub-folders that have one. A relative path is in the workspace."""
    agent_context: AgentContext | None = sparse(None)
    secrets: Secrets | None = sparse(None)
    inject_runtime_state: bool = sparse(False)
    """Each reply begins with a hint behind the request: the time, and what is left of a window that is half full."""
    sandbox: Literal["off", "auto", "bwrap"] = sparse("off")
    """Around commands of Bash; what the workers want more strictly holds."""
    sandbox_network: bool | None = sparse(None)
    """Whether a command in a sandbox reaches the network; None = as the workers say."""
    on_doubt: Literal["tell", "ask"] = sparse("tell")
    """When nobody knows whether a call ran: the model is told and goes on, or the reply waits until somebody says."""
    offloader: str = sparse("workspace", max_length=1000)
    """Where dropped text is kept: `workspace`, `redis`, `none`, or `module:name` on the worker."""
    idle_close_seconds: int = sparse(604_800, ge=0)
    """A session without work closes after it; the next message opens it again as it was. 0 = never."""
    workspace: Workspace | None = None
    """None = a folder of the session's own in the worker's data directory."""

    @field_validator("permission", mode="before")
    @classmethod
    def _permission_is_spelt_right(cls, permission: Any) -> Any:
        if not isinstance(permission, dict):
            return permission
        given = cast(dict[str, object], permission)
        for key in given:
            if key not in PermissionContext.model_fields:
                raise ValueError(f"there is no {key!r}; there are: {', '.join(PermissionContext.model_fields)}")
        only_known_keys(given.get("rules"))
        return cast(Any, permission)

    @model_validator(mode="after")
    def _tool_names_are_unique(self) -> "AgentSpec":
        if len(set(self.tools)) != len(self.tools):
            raise ValueError(f"tools: {list(self.tools)} names a tool twice; name each one once")
        check_groups(self.tool_groups, self.tools)
        return self

    @property
    def all_tools(self) -> tuple[str, ...]:
        return (*self.tools, *in_groups(self.tool_groups))
