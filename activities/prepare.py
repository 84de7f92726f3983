"""prepare_reply: what this worker finds for a reply: the tools by name, the workspace, the newest rules."""

import asyncio
from pathlib import Path

from temporalio import activity

from activities.contract import PREPARE_REPLY, PrepareReply
from activities.heartbeat import beating
from activities.middlewares.wrapping import Wrapping, newest_text
from activities.models.context_windows import context_length
from activities.prompting import Prompted, Prompting
from activities.secrets import Secrets
from activities.specs import Specs, prompt_digest, spec_digest
from activities.stores.user_rules import UserRules
from activities.tokens import TokenCounter
from activities.tools.registry import Toolbox
from activities.user_rules import found
from activities.workspaces import Workspaces, not_here
from agent.decision import BEHAVIOUR
from agent.entries import Prepared
from agent.messages import Msg
from agent.tool_groups import described

ENCODING_SECONDS = 1.0
"""How long a first reply waits for exact counts; estimates do as well, and are corrected by the provider's report."""
AHEAD_SECONDS = 3.0
"""What takes longer beside another activity is left to its own, which has the time."""


class Preparation:
    def __init__(  # noqa: PLR0913  what a worker has
        self,
        toolbox: Toolbox,
        workspaces: Workspaces,
        specs: Specs,
        counter: TokenCounter,
        prompting: Prompting | None = None,
        secrets: Secrets | None = None,
        *,
        rules: UserRules | None = None,
        indexed: int = 1,
        wrapping: Wrapping | None = None,
    ) -> None:
        self._wrapping = wrapping or Wrapping()
        self._rules = rules
        self._secrets = secrets or Secrets()
        self._counter = counter
        self._indexed = indexed
        self._toolbox = toolbox
        self._workspaces = workspaces
        self._specs = specs
        self._prompting = prompting or Prompting()

    @activity.defn(name=PREPARE_REPLY)
    async def prepare_reply(self, ask: PrepareReply) -> Prepared:
        """Raises NotHere when a tool or the workspace is missing here: another worker may have it."""
        async with beating():
            return await self._prepare(ask)

    async def ahead(self, ask: PrepareReply) -> Prepared | None:
        """The same in an activity that has done its own work already; None when it is better left to one of its own."""
        try:
            if self._wrapping.of_reply(ask).adds_hints:
                return None  # they may ask the session, which has not begun the reply
            async with asyncio.timeout(AHEAD_SECONDS):
                return await self._prepare(ask)
        except Exception:  # noqa: BLE001  whatever it is, the activity of its own says it, and is tried again
            return None

    async def _prepare(self, ask: PrepareReply) -> Prepared:
        missing = [name for name in ask.spec.all_tools if self._toolbox.get(name) is None]
        if missing:
            known = ", ".join(sorted(self._toolbox.names))
            raise not_here(f"no tool is named {missing[0]!r} on the workers that were asked; they have: {known}")
        if unknown := self._secrets.missing(ask.spec.secrets.names if ask.spec.secrets else ()):
            raise not_here(f"no secret is named {unknown[0]!r} on the workers that were asked")
        plain = self._toolbox.descriptors(ask.spec.all_tools)
        tools = tuple(described(tool, ask.spec.tool_groups) for tool in plain)
        root, nonce = await self._bind(ask)
        of_user = await found(self._rules, ask.user_id, ask.user_rules_digest)
        window = ask.spec.llm_config.context_length or context_length(ask.spec.model)
        hints = await self._hints(ask)
        told = await asyncio.to_thread(self._told, ask, Path(root), window)
        await self._counter.prepare(ask.spec.model, ENCODING_SECONDS)
        fixed = await asyncio.to_thread(self._counter.count_fixed, told.system_prompt, tools, ask.spec.model)
        before, now = ask.prompt_digest or prompt_digest(ask.spec.system_prompt), prompt_digest(told.system_prompt)
        return Prepared(
            behaviour=BEHAVIOUR,
            indexed=self._indexed,
            spec_digest=self._specs.keep(told.system_prompt, tools),
            tools=None if spec_digest(before, tools) == ask.tools_digest else tools,
            system_prompt=None if now == before else told.system_prompt,
            prompt_digest="" if now == before else now,
            wrapped=self._wrapping.middlewares.for_everybody,
            hooked_interrupts=self._wrapping.of_reply(ask).hears_interrupts,
            hints=(*told.hints, *hints),
            workspace_root=root,
            workspace_nonce=nonce,
            user_rules=of_user.rules,
            user_rules_digest=of_user.digest,
            fixed_tokens=fixed,
            context_length=window,
        )

    async def _hints(self, ask: PrepareReply) -> tuple[Msg, ...]:
        """What middlewares add to the request. Raises NotHere for one that this worker does not have."""
        wrapped = self._wrapping.of_reply(ask)
        if not wrapped.adds_hints:
            return ()
        return self._secrets.out_of_messages(await wrapped.hints(ask.request or await newest_text()))

    def _told(self, ask: PrepareReply, root: Path, window: int) -> Prompted:
        """Blocking. Files of the workspace may stand in the prompt, and a secret may stand in them."""
        told = self._prompting.prompt_for(ask, root, window)
        return Prompted(self._secrets.masker.masked(told.system_prompt), self._secrets.out_of_messages(told.hints))

    async def _bind(self, ask: PrepareReply) -> tuple[str, str]:
        if ask.place is not None:
            await self._workspaces.find(ask.place)
            return ask.place.root, ask.place.nonce
        root, nonce = await asyncio.to_thread(self._workspaces.bind, ask.spec.workspace, ask.session_key)
        return str(root), nonce
