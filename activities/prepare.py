"""prepare_reply: what this worker finds for a reply: the tools by name, the workspace, the newest rules."""

import asyncio

from temporalio import activity

from activities.contract import PREPARE_REPLY, PrepareReply
from activities.heartbeat import beating
from activities.specs import Specs
from activities.tools.registry import Toolbox
from activities.workspaces import Workspaces, not_here
from agent.decision import BEHAVIOUR
from agent.entries import Prepared


class Preparation:
    def __init__(self, toolbox: Toolbox, workspaces: Workspaces, specs: Specs) -> None:
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
            return Prepared(
                behaviour=BEHAVIOUR,
                spec_digest=digest,
                tools=None if digest == ask.tools_digest else tools,
                workspace_root=root,
                workspace_nonce=nonce,
            )

    async def _bind(self, ask: PrepareReply) -> tuple[str, str]:
        if ask.place is not None:
            await self._workspaces.find(ask.place)
            return ask.place.root, ask.place.nonce
        root, nonce = await asyncio.to_thread(self._workspaces.bind, ask.spec.workspace, ask.session_key)
        return str(root), nonce
