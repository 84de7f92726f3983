"""take_result: a result from outside is treated like a tool's: shortened, and kept whole where it can be read."""

from temporalio import activity

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.context.context_cache import Contexts
from longhaul.activities.context.tool_results import Returning
from longhaul.activities.contract import TAKE_RESULT, RunTool
from longhaul.activities.tool import ToolOutput
from longhaul.agent.entries import ToolReturned


class TakingIn:
    def __init__(self, contexts: Contexts, returning: Returning) -> None:
        self._contexts = contexts
        self._returning = returning

    @activity.defn(name=TAKE_RESULT)
    async def take_result(self, ask: RunTool) -> ToolReturned:
        async with beating():
            received = await own_session.pull_received(ask.call_id)
        output = ToolOutput(output=received.output, metadata=received.metadata)
        result = await self._returning.result(received.name, ask, output, received.state)
        message, tokens = await self._returning.message(ask, result)
        digest = self._contexts.keep_result(own_session.key(), ask.epoch, message, tokens)
        return ToolReturned(result=result, digest=digest, tokens=tokens, outside=not ask.of_child)
