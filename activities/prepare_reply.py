"""prepare_reply: what this worker finds for a reply: the tools by name, the workspace, the newest rules."""

import asyncio
from datetime import timedelta
from pathlib import Path

from temporalio import activity
from temporalio.api.operatorservice.v1 import ListNexusEndpointsRequest
from temporalio.service import RPCError

from longhaul.activities.attempt.fused_reads import unfused
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.own_session import FoundRules, found
from longhaul.activities.attempt.worker_capabilities import Offered
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.compression.summary_texts import check_config
from longhaul.activities.context.context_cache import prompt_digest, spec_digest
from longhaul.activities.context.system_prompt import Prompted, Prompting
from longhaul.activities.contract import PREPARE_REPLY, PrepareReply
from longhaul.activities.memory import Retrieval
from longhaul.activities.middlewares.session_middlewares import newest_text
from longhaul.activities.models.failures.retry_errors import as_action, failed_for_good
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model_limits import most_written, window_of
from longhaul.activities.models.providers import Providers
from longhaul.activities.telemetry.prices import Prices
from longhaul.activities.tools.registry import Toolbox, describe, why_missing
from longhaul.activities.tools.session_tools import BadAskedSchema, GenerateResponse
from longhaul.activities.tools.target_tools import with_declared
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.decision import BEHAVIOUR
from longhaul.agent.entries import Prepared
from longhaul.agent.plain.text import did_you_mean, nearest
from longhaul.agent.values.budget import Tariff
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.known_names import without_tool
from longhaul.agent.values.spec.summary_template import BadTemplate
from longhaul.agent.values.subagents import AGENT, agents_text
from longhaul.agent.values.tool_groups import described
from longhaul.agent.values.tool_index import CALL_TOOL, FIND_TOOLS, head_of, looked_up
from longhaul.stores.state.store import UserRules

ENCODING_SECONDS = 1.0
"""How long a first reply waits for exact counts; estimates do as well, and are corrected by the provider's report."""
ENDPOINTS_TIMEOUT = timedelta(seconds=3)
AHEAD_SECONDS = 3.0
"""What takes longer beside another activity is left to its own, which has the time."""


class Preparation:
    def __init__(  # noqa: PLR0913  what a worker says of itself to each reply
        self,
        parts: WorkerParts,
        prompting: Prompting | None = None,
        *,
        rules: UserRules | None = None,
        indexed: int = 1,
        providers: Providers | None = None,
        offered: Offered | None = None,
        prices: Prices | None = None,
        retrieval: Retrieval | None = None,
    ) -> None:
        self._toolbox, self._workspaces, self._specs = parts.toolbox, parts.workspaces, parts.specs
        self._counter, self._secrets = parts.counter, parts.secrets
        self._wrapping, self._mcp = parts.wrapping, parts.mcp
        self._prompting, self._rules, self._providers = prompting or Prompting(), rules, providers
        self._indexed = indexed
        self._offered, self._prices, self._retrieval = offered or Offered(), prices or Prices({}), retrieval

    @activity.defn(name=PREPARE_REPLY)
    async def prepare_reply(self, ask: PrepareReply) -> Prepared:
        """Raises NotHere when what the agent names is missing here: another worker may have it; and ModelFailed
        for a model that this worker's operator does not let agents call, or a schema that is none."""
        async with beating():
            return await self._prepare(ask)

    async def ahead(self, ask: PrepareReply) -> Prepared | None:
        """The same in an activity that has done its own work already; None when it is better left to one of its own."""
        try:
            if self._wrapping.of_reply(ask).adds_reminders:
                return None  # they may ask the session, which has not started the reply
            async with asyncio.timeout(AHEAD_SECONDS):
                return await self._prepare(ask)
        except Exception:  # noqa: BLE001  whatever it is, the activity of its own says it, and is tried again
            return None

    async def _prepare(self, ask: PrepareReply) -> Prepared:
        toolbox = with_declared(self._toolbox, ask.spec.temporal_tools)
        self._check_names(ask.spec, toolbox)
        await _check_endpoints(ask.spec)
        plain = toolbox.descriptors(ask.spec.all_tools)
        served, unreachable = await self._mcp.for_reply(ask.spec.mcps, ask.outdated, is_under_way=ask.is_under_way)
        tools = (
            *(_as_told(tool, ask.spec) for tool in plain),
            # In an order of ours: many servers list their tools in another one each time, and a provider's cache of
            # the prompt begins with the tools.
            *served.descriptors(sorted(name for name in served.names if toolbox.get(name) is None)),
            *_finish_function(ask),
        )
        # By CALL_TOOL the model also calls tools of a group that it activates late.
        more = (FIND_TOOLS, CALL_TOOL) if looked_up(tools) else (CALL_TOOL,) if ask.spec.tool_groups else ()
        known = {tool.name for tool in tools}
        tools += self._toolbox.descriptors([name for name in more if name not in known])
        root, nonce = await self._bind(ask)
        of_user = await found(self._rules, ask.user_id, ask.user_rules_digest)
        window = self._window(ask.spec)
        hints = () if ask.is_under_way else (*await self._hints(ask), *await self._retrieved(ask))
        await self._counter.prepare(ask.spec.model, ENCODING_SECONDS)
        told, fixed = await asyncio.to_thread(self._prompt, ask, Path(root), window, tools)
        before, now = ask.prompt_digest or prompt_digest(ask.spec.system_prompt), prompt_digest(told.system_prompt)
        return Prepared(
            behaviour=BEHAVIOUR,
            indexed=self._indexed,
            spec_digest=self._specs.keep(told.system_prompt, tools),
            tools=None if spec_digest(before, tools) == ask.tools_digest else tools,
            system_prompt=None if now == before else told.system_prompt,
            prompt_digest="" if now == before else now,
            wrapped=self._wrapping.middlewares.for_everybody,
            hooked_interrupts=bool(ask.spec.custom_agent) or self._wrapping.of_reply(ask).hears_interrupts,
            hints=(
                *(() if ask.is_under_way else told.hints),
                *hints,
                *(hint_message(why, "mcp") for why in unreachable),
            ),
            workspace_root=root,
            workspace_nonce=nonce,
            user_rules=of_user.rules,
            user_rules_digest=of_user.digest,
            no_tool=self._no_tool(ask, of_user, served.names),
            fixed_tokens=fixed,
            context_length=window,
            tariffs=self._tariffs(ask.spec),
            left_out=told.left_out,
        )

    def _no_tool(self, ask: PrepareReply, of_user: FoundRules, served: tuple[str, ...]) -> tuple[str, ...]:
        """What nobody has heard of, once: of the agent's rules when it begins, of the user's when they are new."""
        own = () if ask.tools_digest else ask.spec.permission.rules
        named = (rule.tool_name for rule in (*own, *(of_user.rules or ())))
        return without_tool(named, (*ask.spec.all_tools, *self._toolbox.names, *served))

    def _check_names(self, spec: AgentSpec, toolbox: Toolbox) -> None:
        """Raises NotHere for what another worker may have, and ModelFailed for what none can be right about."""
        missing = [name for name in spec.all_tools if toolbox.get(name) is None]
        if missing:
            hint = why_missing(missing[0]) or did_you_mean(missing[0], self._toolbox.names, "they have")
            raise not_here(f"no tool is named {missing[0]!r} on the workers that were asked; {hint}")
        if unknown := self._secrets.missing(spec.secrets.names if spec.secrets else ()):
            meant = nearest(unknown[0], self._secrets.names)
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise not_here(f"no secret is named {unknown[0]!r} on the workers that were asked{hint}")
        self._offered.check(spec)
        try:
            if self._providers is not None:
                self._providers.check(spec)
            if spec.context_config.summary_schema is not None:
                check_config(spec.context_config)
        except SetupError as error:
            raise as_action(error) from None
        except BadTemplate as error:
            raise failed_for_good("setup", str(error)) from None

    def _tariffs(self, spec: AgentSpec) -> dict[str, Tariff]:
        """What calls of its models may take, for an agent with a budget. Raises ModelFailed where that is of money and
        a model has no price: what it costs is not guessed."""
        if spec.budget is None:
            return {}
        tariffs = {model: self._tariff(model, spec) for model in spec.named_models}
        if spec.budget.max_cost is not None and (
            unknown := [model for model, tariff in tariffs.items() if tariff.price is None]
        ):
            raise failed_for_good(
                "setup",
                f"budget.max_cost: the workers have no price for {unknown[0]!r}, and what it costs is not guessed. "
                "Their operator writes it under [models.NAME.prices], or into the file of LONGHAUL_PRICES; or leave "
                "max_cost out and limit tokens.",
            )
        return tariffs

    def _tariff(self, model: str, spec: AgentSpec) -> Tariff:
        config = spec.call_config.for_model(model, spec.model)
        called = None if self._providers is None else self._providers.look_up(model, config)
        name = model.partition(":")[2] if called is None else called.name.name
        price = self._prices.of(name)
        if price is not None and not (called is not None and called.profile and called.profile.cache_ttl == "1h"):
            # Else room would be kept for what is written for an hour, which nobody asks for.
            price = price.model_copy(update={"cache_write_1h": None})
        return Tariff(output_tokens=most_written(called, config), price=price)

    def _window(self, spec: AgentSpec) -> int:
        config = spec.call_config.for_model(spec.model, spec.model)
        called = None if self._providers is None else self._providers.look_up(spec.model, config)
        return window_of(spec.model, config, called)

    async def _hints(self, ask: PrepareReply) -> tuple[Msg, ...]:
        """What middlewares add to the request. Raises NotHere for one that this worker does not have."""
        wrapped = self._wrapping.of_reply(ask)
        if not wrapped.adds_reminders:
            return ()
        if activity.info().is_local:
            raise unfused("middlewares add to the request, which may ask its session")
        return self._secrets.out_of_messages(await wrapped.hints(ask.request or await newest_text()))

    async def _retrieved(self, ask: PrepareReply) -> tuple[Msg, ...]:
        if self._retrieval is None:
            return ()
        return self._secrets.out_of_messages(await self._retrieval.hints(ask))

    def _prompt(
        self, ask: PrepareReply, root: Path, window: int, tools: tuple[ToolDescriptor, ...]
    ) -> tuple[Prompted, int]:
        """With the tokens that come with every call. Blocking. Files of the workspace may stand in the prompt, and a
        secret may stand in them."""
        told = self._prompting.prompt_for(ask, root, window)
        prompt = self._secrets.masker.masked(told.system_prompt)
        fixed = self._counter.count_fixed(prompt, head_of(tools), ask.spec.model)
        left_out = tuple(map(self._secrets.masker.masked, told.left_out))
        return Prompted(prompt, self._secrets.out_of_messages(told.hints), left_out), fixed

    async def _bind(self, ask: PrepareReply) -> tuple[str, str]:
        if ask.place is not None:
            await self._workspaces.find(ask.place)
            return ask.place.root, ask.place.nonce
        root, nonce = await asyncio.to_thread(self._workspaces.bind, ask.spec.workspace, ask.session_key)
        return str(root), nonce


async def _check_endpoints(spec: AgentSpec) -> None:
    """Raises NotHere for a Nexus endpoint that the server does not have. A server that does not say (RPCError) is
    believed to have it."""
    targets = [tool.runs for tool in spec.temporal_tools.values()]
    for name in dict.fromkeys(target.endpoint for target in targets if target.kind == "nexus"):
        ask = ListNexusEndpointsRequest(name=name)
        try:
            found = await activity.client().operator_service.list_nexus_endpoints(ask, timeout=ENDPOINTS_TIMEOUT)
        except RPCError:
            return
        if not found.endpoints:
            raise not_here(
                f"the server has no Nexus endpoint {name!r}; create it with `temporal operator nexus endpoint create`"
            )


def _finish_function(ask: PrepareReply) -> tuple[ToolDescriptor, ...]:
    """Of a reply that is asked for in a form. Raises ModelFailed for a schema that is none."""
    try:
        return () if ask.structured_schema is None else (describe(GenerateResponse(ask.structured_schema)),)
    except BadAskedSchema as error:
        raise failed_for_good("invalid_request", str(error)) from None


def _as_told(tool: ToolDescriptor, spec: AgentSpec) -> ToolDescriptor:
    """The descriptor as this agent's model gets it: with its groups, or with the agents that it may start."""
    if tool.name != AGENT:
        return described(tool, spec.tool_groups)
    agents = {name: agent.description for name, agent in spec.agents.items()}
    text = agents_text(agents, spec.max_children, spec.levels - 1)
    return tool.model_copy(update={"description": f"{tool.description}\n{text}"})
