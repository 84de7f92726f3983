"""Settings are what a user may say about an agent, with the seed's names, limits and defaults."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    field_validator,
    model_validator,
)

from longhaul.agent.plain.values import NAMES, CodeWithName, Given, Many, Names, Value, sparse, stated
from longhaul.agent.values.budget import Budget
from longhaul.agent.values.conversation.prompt import check_template as check_prompt_template
from longhaul.agent.values.conversation.prompt import is_template_name
from longhaul.agent.values.permission import PermissionContext, only_known_keys
from longhaul.agent.values.plans import with_notebook
from longhaul.agent.values.spec.knowledge import (
    LOADER,
    SKILL_TOOL,
    BaseName,
    Knowledge,
    MemoryMode,
    check_named,
    is_static,
    tools_of,
)
from longhaul.agent.values.spec.known_names import (
    DEFAULT_TOOLS,
    CondenserName,
    Effort,
    FullModelName,
    OffloaderName,
    check_tools,
    misspelt_rule,
    split_model,
)
from longhaul.agent.values.spec.mcp import MCPClient, check_clients, server_of
from longhaul.agent.values.spec.profiles import ModelProfile, check_names
from longhaul.agent.values.spec.summary_template import DEFAULT_SCHEMA, check_template, field_names
from longhaul.agent.values.spec.temporal_tools import (
    MOST_TOOLS,
    TemporalTool,
    check_temporal_tools,
    with_temporal_tools,
)
from longhaul.agent.values.spec.workspace import Sandbox, Seal, Workspace
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.agent.values.subagents import AGENT, LEADS_TOOLS, MOST_AGENTS, MOST_CHILDREN, MOST_LEVELS, named_by_keys
from longhaul.agent.values.tool_groups import ToolGroup, check_groups, in_groups


class ModelConfig(Value):
    """How models are called. Name credentials here, never write them: keys stay on the worker."""

    max_retries: int = sparse(12, ge=0, le=1000)
    """Further attempts after a failure that may pass. The first wait is 0.2 s, doubled up to 60 s, or longer if the
    provider says so."""
    outage_wait_seconds: float = sparse(43_200, ge=0, le=2_592_000)
    """Seconds that a reply waits, beyond `max_retries`, for a provider that can't be reached, is overloaded or limits
    calls. Longhaul tries every two minutes, or later if the provider says so. A fallback model is called first. 0 = do
    not wait."""
    fallback_model: FullModelName | None = sparse(None)
    """Model that takes the call after the first model has failed for good."""
    max_output_tokens: int = sparse(8192, ge=1, le=10**15)
    """Limit of tokens for one answer. A model that is known to think before it answers gets extra tokens for
    thinking."""
    temperature: float | None = sparse(None, ge=0, le=2)
    thinking_budget_tokens: int | None = sparse(None, ge=1024, le=10**15)
    """Tokens for Anthropic's extended thinking; None = off. Newer Claude models set their own budget."""
    reasoning_effort: Effort | None = sparse(None)
    """How much the model thinks. None = the provider's default. If a model lacks this effort, Longhaul asks for the
    nearest one."""
    base_url: str | None = sparse(None, max_length=10_000)
    """Address of a compatible server, for the agent's model and others of the same provider. None = the provider's
    environment variable or address. The workers' operator lists which keys may go there."""
    api_key_env: str | None = sparse(None)
    """Name of the worker's environment variable that holds the key. None = the provider's usual variable."""
    call_timeout_seconds: float = sparse(1800, gt=0, le=10**11)
    """Seconds that one attempt may take in all."""
    silence_seconds: float | None = sparse(None, gt=0, le=10**11)
    """Seconds without data in an answer that has started, after which Longhaul calls the model again. None = 60 if the
    provider is known to send data more often, and 600 if a model may think silently."""
    context_length: int | None = sparse(None, ge=1000, le=10**15)
    """Size of the model's window in tokens. None = known from the model's name."""

    profiles: dict[str, ModelProfile] = sparse({})
    """The agent's own profiles, for a call. Write them under `[models.NAME]`."""

    def for_model(self, model: str, own: str) -> "ModelConfig":
        """As it holds for a model beside the agent's own: another provider's has neither its address nor its key, and a
        profile has those of its own."""
        provider, name = split_model(model)
        if name and provider == split_model(own)[0]:
            return self
        return self.model_copy(update={"base_url": None, "api_key_env": None})

    def called_otherwise(self, given: Mapping[str, Any]) -> "ModelConfig":
        """With other values of these fields; None is the default of one. Raises ValidationError."""
        fields = {**self.model_dump(mode="json"), **given}
        return ModelConfig.model_validate({name: value for name, value in fields.items() if value is not None})


def check_config(model: str, config: ModelConfig) -> None:
    """Raise ValueError where an agent with this model can't be called so."""
    if config.profiles:
        raise ValueError("model_config.profiles: write each profile under [models.NAME]")
    own = {"base_url": config.base_url, "api_key_env": config.api_key_env}
    if model and ":" not in model and (said := [name for name, value in own.items() if value is not None]):
        raise ValueError(f"model_config.{said[0]}: {model!r} is a profile and has its own; leave it out")


class ReActConfig(Value):
    max_iters: int = sparse(50, ge=1, le=1_000_000)
    """Most rounds of a reply; a round is a model call and the tool calls in its answer. After the last round the model
    says what is done and what is not."""
    stop_on_reject: bool = sparse(False)
    """A denied call ends the reply. Off: the model may try another way."""
    max_continuations: int = sparse(3, ge=0, le=100)
    """How often in a row a model is asked to continue an incomplete message: one that reached the limit of output
    tokens or of the window, or that the provider paused. Then the reply ends as `incomplete`."""
    structured_output_grace_iters: int = sparse(5, ge=1, le=1_000)
    """Extra rounds beyond `max_iters` for a structured answer; then the reply ends as `exceed_max_iters`. Also how
    often the model may answer in text instead; then the reply ends as `unstructured`."""
    parallel_tool_calls: bool = sparse(True)
    """The calls of one turn run at once. `false`: one after the other."""
    interruption_message: str = sparse("", max_length=10_000)
    """What the agent says at the end of an interrupted reply. Empty: nothing. Text from a middleware's
    `handle_interrupt` takes its place."""


class ContextConfig(Value):
    """When and how Longhaul compresses the context. Ratios are shares of the model's window."""

    trigger_ratio: float = sparse(0.8, gt=0, le=0.9)
    """Above this share, Longhaul compresses the context before the next model call."""
    reserve_ratio: float = sparse(0.1, gt=0, lt=0.9)
    """Share of the window for the newest messages, which stay unchanged. The system prompt and the tools do not
    count."""
    tool_result_limit: int = sparse(3000, ge=1, le=10**15)
    """Limit in tokens for one tool result. Of a longer result the model reads the beginning, and where the rest is."""
    compression_prompt: str | None = sparse(None)
    """Prompt for the summary. None = Longhaul's own."""
    summary_template: str | None = sparse(None)
    """Text of the summary, with a `{field}` for each field of the schema to show. None = Longhaul's own."""
    summary_schema: dict[str, Any] | None = sparse(None)
    """JSON Schema of the summary, an object. None = Longhaul's five fields."""
    condensers: Many[CondenserName] = sparse(("summary",), min_length=1)
    """Condensers in the order in which they are tried; the first that makes enough room is used. `summary`,
    `drop_oldest`, `mask_observations`, or `module:name` on the worker."""

    @model_validator(mode="after")
    def _keeps_less_than_it_triggers_at(self) -> "ContextConfig":
        if self.reserve_ratio >= self.trigger_ratio:
            raise ValueError(
                f"reserve_ratio: {self.reserve_ratio} must be below trigger_ratio ({self.trigger_ratio}), or a "
                "compression would leave too much"
            )
        if self.summary_schema is not None:
            field_names(self.summary_schema)
        if self.summary_template is not None:
            check_template(self.summary_template, self.summary_schema or DEFAULT_SCHEMA)
        return self


class AgentContext(Value):
    """What the system prompt contains around the agent's own prompt."""

    system_prefix: str = sparse("")
    """Text before the agent's own prompt."""
    system_suffix: str = sparse("")
    """Text after the agent's own prompt and its skills."""
    prompt_template: str | None = sparse(None, max_length=100_000)
    """Template of the system prompt: text with {prefix}, {system_prompt}, {skills} and {suffix}, or the name of a
    template on the worker. None = these four parts in this order."""
    knowledge: Many[Knowledge] = sparse((), max_length=50)
    """Texts that Longhaul adds to a request that names their subject, and triggers for skills in folders."""
    repo_skills: bool = sparse(False)
    """Add the workspace's own instructions (AGENTS.md, microagents/repo.md) to the skills. Anybody who can write to the
    workspace can write these instructions."""

    @model_validator(mode="after")
    def _template_can_be_used(self) -> "AgentContext":
        if self.prompt_template is not None and not is_template_name(self.prompt_template):
            check_prompt_template(self.prompt_template)
        return self


class Secrets(Value):
    """The workers' secrets that the agent's tools get, by name. Values never leave a worker."""

    allow: Many[str] = sparse((), max_length=100)
    """Secrets for every tool."""
    tools: Given[dict[str, tuple[str, ...]], Mapping[str, Sequence[str]]] = sparse({})
    """Further secrets for one tool, by the tool's name."""
    mark: bool = sparse(False)
    """Longhaul records `[secret NAME]` instead of a value that a model writes. A worker inserts the value when a tool
    runs that gets the secret. Off: the session stores what runs next to what is shown."""

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
    return "\n".join((system_prompt, "", f"{SECRETS_NOTE}{MARKS_NOTE if secrets.mark else ''}", *lines))


def _tools_with(name: str, secrets: Secrets) -> list[str]:
    return [tool for tool, names in secrets.tools.items() if name in names]


SECRETS_NOTE = (
    "These secrets are environment variables of commands, and known to the tools named here. You never see a value: "
    "in what you read it is replaced by its name. Use the variables; do not print or write down what they hold."
)
MARKS_NOTE = " In the arguments of a tool that knows it, `[secret NAME]` stands for the value of NAME."


def _named_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(names) or len(set(names)) != len(names):
        raise ValueError("a name is empty or stands twice; name each middleware once")
    return names


Middlewares = Annotated[tuple[str, ...], NAMES, Field(max_length=50), AfterValidator(_named_once)]


class AgentSpec(Value):
    """An agent's settings. A session records them at its start."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, hide_input_in_errors=True)
    name: str = Field(default="longhaul", min_length=1, max_length=200)
    """Name of the agent, by which sessions are found. In an agent file the default is the file's name."""
    system_prompt: str = "You are a careful software agent. Use the tools to find out; do not guess."
    """Instructions for the model."""
    custom_agent: str = sparse("", max_length=100)
    """Name of your code on the workers that makes the replies instead of a model. Empty: a model reasons and acts. If
    the code calls a model, it calls `model`, which may be empty otherwise."""
    custom_agent_config: dict[str, bool | int | float | str] = sparse({}, max_length=50)
    """Settings for that code, which it reads as `CustomAgentSession.config`."""
    model: FullModelName = Field(default="", max_length=1000)
    """`anthropic:NAME`, `openai:NAME` (Responses), `openai-chat:NAME` (Chat Completions), `scripted:FILE`, or the name
    of a profile in `models` or in the workers' settings."""
    models: dict[str, ModelProfile] = sparse({}, max_length=50)
    """The agent's own model profiles, by name."""
    tools: Given[Names, Sequence[str | CodeWithName]] = stated(DEFAULT_TOOLS)
    """Tools that the agent may call, by name: Longhaul's, those in modules of the workers, and Temporal tools by their
    target."""
    temporal_tools: dict[str, TemporalTool] = sparse({}, max_length=MOST_TOOLS)
    """Temporal tools among `tools`, by name: activities, workflows and Nexus operations of your own workers."""
    tool_groups: dict[str, ToolGroup] = sparse({}, max_length=50)
    """Further tools in groups, which the agent switches on and off. `plan_related` is the plan notebook, if it names no
    other tools."""
    mcps: Many[MCPClient] = sparse((), max_length=20)
    """MCP servers whose tools the agent has too."""
    postprocess: dict[str, str] = sparse({}, max_length=200)
    """Functions on the workers that change a tool's result before it is shortened, by the tool's name. Tools of MCP
    servers count too."""
    agents: dict[str, "AgentSpec"] = sparse({}, max_length=MOST_AGENTS)
    """Sub-agents that the agent may start, by name. The agent then has the tool `Agent`."""
    description: str = sparse("", max_length=2_000)
    """What the agent is for. The lead of a sub-agent reads this, and other agents read it in its A2A card."""
    max_children: int = sparse(20, ge=1, le=MOST_CHILDREN)
    """Most sub-agents that the agent may start in one reply."""
    permission: PermissionContext = Field(default_factory=PermissionContext)
    """How much the agent may do without approval."""
    llm_config: ModelConfig = Field(default_factory=ModelConfig, alias="model_config")
    """How models are called."""
    react_config: ReActConfig = Field(default_factory=ReActConfig)
    """How many rounds a reply has, and when it ends early."""
    context_config: ContextConfig = Field(
        default_factory=ContextConfig, exclude_if=lambda config: config == ContextConfig()
    )
    """When and how Longhaul compresses the context."""
    middlewares: Given[Middlewares, Sequence[str | CodeWithName]] = sparse(())
    """Middlewares by name, of those that the workers offer; the first is the outermost."""
    stuck: StuckConfig = sparse(StuckConfig())
    """When a reply counts as going in circles."""
    budget: Budget | None = sparse(None)
    """What one session may spend, over all of its replies. None: no limit."""
    team: str = sparse("", max_length=100)
    """Team whose inbox shows the agent's calls: `longhaul inbox --team`."""
    priority: int | None = sparse(None, ge=1, le=5)
    """Order in which waiting tasks go to a worker: priority 1 first, 5 last. None = 3, or the priority of the workflow
    that asks. Temporal's server keeps the order."""
    fairness_key: str = sparse("", max_length=64)
    """Sessions with the same key share one turn at the workers. Empty: the key is the session's user, or its team if it
    has no user."""
    skills: Many[str] = sparse((), max_length=20)
    """Folders on the worker with a SKILL.md, or with sub-folders that have one. A relative path is in the workspace.
    `loader:NAME` names code on the workers that loads skills; the agent then has the tool Skill."""
    agent_context: AgentContext | None = sparse(None)
    """What the system prompt contains around the agent's own prompt."""
    secrets: Secrets | None = sparse(None)
    """The workers' secrets that the agent's tools get."""
    long_term_memory_mode: MemoryMode | None = sparse(None)
    """How the agent remembers its user after a session ends: by tools, automatically before and after each reply, or
    both. None: not at all."""
    knowledge_bases: Many[BaseName] = sparse((), max_length=20)
    """Knowledge bases of the workers whose passages the agent may read."""
    knowledge_mode: MemoryMode = sparse("static_control")
    """How the agent reads them: matching passages come after each request, by a tool, or both."""
    inject_runtime_state: bool = sparse(False)
    """Add a reminder after each request: the time, and the room that is left once the window is half full."""
    sandbox: Sandbox = sparse("off")
    """Run Bash commands in a sandbox: `proven` for those that run without approval, or `all`. If the workers' setting
    is stricter, it counts."""
    sandbox_network: bool | None = sparse(None)
    """A command in a sandbox may reach the network. None = as the workers' setting says."""
    on_unknown_outcome: Literal["tell", "ask"] = sparse("tell")
    """For a call of unknown outcome: `tell` continues and tells the model, `ask` waits for a person."""
    offloader: OffloaderName = sparse("workspace", max_length=1000)
    """Where dropped text is stored: `workspace`, `redis`, `none`, or `module:name` on the worker."""
    idle_close_seconds: int = sparse(604_800, ge=0, le=10**11)
    """Seconds without work after which a session closes. The next message opens it again as it was. 0 = never."""
    task_seconds: float | None = sparse(None, gt=0, le=1e9, allow_inf_nan=False)
    """Seconds after which a sub-agent's task ends, whatever it is doing, counted from when the task is given. None =
    never."""
    workspace: Workspace | None = None
    """Folder in which the tools work. None = the session's own folder in the worker's data directory."""

    @model_validator(mode="before")
    @classmethod
    def _targets_have_names(cls, given: Any) -> Any:
        return with_temporal_tools(cast(Mapping[str, Any], given)) if isinstance(given, Mapping) else given

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

    _named = field_validator("agents", mode="before")(named_by_keys)
    _with_notebook = field_validator("tool_groups", mode="before")(with_notebook)

    @model_validator(mode="after")
    def _kind_is_there_to_be_set(self) -> "AgentSpec":
        if self.custom_agent_config and not self.custom_agent:
            raise ValueError("custom_agent_config: the code of a custom agent reads it, and `custom_agent` names none")
        return self

    @model_validator(mode="after")
    def _agents_are_within_bounds(self) -> "AgentSpec":
        if AGENT in self.tools and not self.agents:
            raise ValueError(f"tools: {AGENT!r} is for an agent that names others, under [agents.NAME]")
        if self.levels > MOST_LEVELS:
            raise ValueError(f"agents: they stand {self.levels} levels deep within each other, and {MOST_LEVELS} go")
        return self

    @model_validator(mode="after")
    def _tools_are_named_once_and_there(self) -> "AgentSpec":
        if len(set(self.tools)) != len(self.tools):
            raise ValueError(f"tools: {list(self.tools)} names a tool twice; name each one once")
        check_named((*self.tools, *in_groups(self.tool_groups)))
        check_groups(self.tool_groups, self.tools)
        check_clients(self.mcps)
        of_tools = self.secrets.tools if self.secrets else dict[str, tuple[str, ...]]()
        check_temporal_tools(self.temporal_tools, self.all_tools, of_tools, self.postprocess)
        deadline, there = self.permission.deadline, self.all_tools
        check_tools("permission.tools", self.permission.tools, there)
        check_tools("permission.deadline.tools", deadline.tools if deadline else (), there)
        check_tools("secrets.tools", of_tools, there)
        check_tools("postprocess", self.postprocess, there)
        check_tools("stuck.polling", self.stuck.polling, there)
        if why := misspelt_rule((rule.tool_name for rule in self.permission.rules), there):
            raise ValueError(f"permission.{why}")
        return self

    @model_validator(mode="after")
    def _profiles_stand_for_themselves(self) -> "AgentSpec":
        check_names(self.models)
        for name, profile in self.models.items():
            if profile.prices is not None:
                raise ValueError(
                    f"models.{name}.prices: the workers' operator alone says what models cost; leave it out"
                )
        check_config(self.model, self.llm_config)
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _looked_at_once(cls, given: Any, look: ModelWrapValidatorHandler["AgentSpec"]) -> "AgentSpec":
        """One that is put into another value has been looked at when it was made; of a changed copy, whoever changed
        it says so (`agents.checked`)."""
        return given if isinstance(given, AgentSpec) else look(given)

    @property
    def call_config(self) -> ModelConfig:
        """How its models are called, with its own profiles."""
        return self.llm_config.model_copy(update={"profiles": self.models}) if self.models else self.llm_config

    @property
    def named_models(self) -> tuple[str, ...]:
        """All that it may have called, by its own names."""
        of_servers = [client.sampling.model for client in self.mcps if client.sampling]
        named = (self.model, self.llm_config.fallback_model, self.permission.analyzer_model, *of_servers)
        return tuple(name for name in named if name)

    def mcp_of(self, tool: str) -> MCPClient | None:
        """The server that brings a tool of this name; None for any other tool."""
        name = server_of(tool)
        return next((client for client in self.mcps if client.name == name), None)

    @property
    def all_tools(self) -> tuple[str, ...]:
        starts = [name for name in LEADS_TOOLS if name not in self.tools] if self.agents else []
        known = tools_of(self.long_term_memory_mode, self.knowledge_bases, self.knowledge_mode)
        named = (*self.tools, *in_groups(self.tool_groups))
        loads = any(name.startswith(LOADER) for name in self.skills) and SKILL_TOOL not in named
        return (*named, *starts, *known, *((SKILL_TOOL,) if loads else ()))

    @property
    def host(self) -> str:
        """The only one whose workers see its workspace; empty: all do."""
        return self.workspace.host if self.workspace is not None else ""

    @property
    def seal(self) -> Seal | None:
        """The sandbox that its tools work in; None: they work as the worker does."""
        workspace = self.workspace
        return workspace.seal if workspace is not None and workspace.place == "sandbox" else None

    @property
    def retrieves(self) -> bool:
        """Whether memories or passages are looked for before each reply."""
        return is_static(self.long_term_memory_mode) or (bool(self.knowledge_bases) and is_static(self.knowledge_mode))

    @property
    def levels(self) -> int:
        """Of agents within agents below this one."""
        return 1 + max(agent.levels for agent in self.agents.values()) if self.agents else 0
