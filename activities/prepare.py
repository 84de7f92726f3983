"""prepare_reply: what this worker finds for a reply: the tools by name, the workspace, the newest rules."""

import asyncio

from temporalio import activity

from activities.contract import PREPARE_REPLY, PrepareReply
from activities.heartbeat import beating
from activities.models.context_windows import context_length
from activities.specs import Specs
from activities.tokens import TokenCounter
from activities.tools.registry import Toolbox
from activities.workspaces import Workspaces, not_here
from agent.decision import BEHAVIOUR
from agent.entries import Prepared

ENCODING_SECONDS = 1.0
"""How long a first reply waits for exact counts; estimates do as well, and are corrected by the provider's report."""


class Preparation:
    def __init__(self, toolbox: Toolbox, workspaces: Workspaces, specs: Specs, counter: TokenCounter) -> None:
        self._counter = counter
        self._toolbox = toolbox
        self._workspaces = workspaces
        self._specs = specs

    @activity.defn(name=PREPARE_REPLY)
    async def prepare_reply(self, ask: PrepareReply) -> Prepared:
        """Raises NotHere when a tool or the workspace is missing here: another worker may have it."""
        async with beating():
            missing = [name for name in ask.spec.tools if self._toolbox.get(name) is None]
            if missing:
                known = ", ".join(sorted(self._toolbox.names))
                raise not_here(f"no tool is named {missing[0]!r} on the workers that were asked; they have: {known}")
            tools = tuple(self._toolbox.descriptors(ask.spec.tools))
            digest = self._specs.keep(ask.spec.system_prompt, tools)
            root, nonce = await self._bind(ask)
            await self._counter.prepare(ask.spec.model, ENCODING_SECONDS)
            fixed = await asyncio.to_thread(self._counter.count_fixed, ask.spec.system_prompt, tools, ask.spec.model)
            return Prepared(
                behaviour=BEHAVIOUR,
                spec_digest=digest,
                tools=None if digest == ask.tools_digest else tools,
                workspace_root=root,
                workspace_nonce=nonce,
                fixed_tokens=fixed,
                context_length=ask.spec.llm_config.context_length or context_length(ask.spec.model),
            )

    async def _bind(self, ask: PrepareReply) -> tuple[str, str]:
        if ask.place is not None:
            await self._workspaces.find(ask.place)
            return ask.place.root, ask.place.nonce
        root, nonce = await asyncio.to_thread(self._workspaces.bind, ask.spec.workspace, ask.session_key)
        return str(root), nonce
