"""await_command: the end of a command in the background that an earlier run of its session has begun."""

import asyncio
from dataclasses import replace

from temporalio import activity

from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.once_calls import SHUT_DOWN, stopped_because
from longhaul.activities.attempt.worker_departure import is_shut_down
from longhaul.activities.attempt.workspaces import Elsewhere, Workspaces, not_here
from longhaul.activities.context.tool_results import Returning
from longhaul.activities.contract import AWAIT_COMMAND, AwaitCommand
from longhaul.activities.middlewares.wrapping import Wrapping
from longhaul.activities.tool import NeedsDecision, ToolError, ToolOutput
from longhaul.activities.tools.bash_output import Outputs
from longhaul.agent.entries import ToolReturned
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.subagents import BASH

WITHHELD = (
    "What it has printed is withheld: the session has gone on in a new run meanwhile, so the middlewares around its "
    "tools, which may change what is shown, could not see it. A command that writes to a file lets you read it there."
)


class Awaiting:
    def __init__(
        self, workspaces: Workspaces, returning: Returning, outputs: Outputs, wrapping: Wrapping | None = None
    ) -> None:
        self._workspaces, self._returning, self._outputs = workspaces, returning, outputs
        self._wrapping = wrapping or Wrapping()

    @activity.defn(name=AWAIT_COMMAND)
    async def await_command(self, ask: AwaitCommand) -> ToolReturned:
        """Raises NotHere where another worker runs it, or nobody."""
        wrapped = self._wrapping.of_tool_call(ask)
        place = await self._workspaces.find(ask.place)
        state: ToolResultState | None = None
        try:
            async with beating():
                output = await self._outputs.end_of(place, ask.call_id, unwanted=ask.unwanted)
        except Elsewhere as error:
            raise not_here(str(error)) from error
        except (ToolError, NeedsDecision) as error:
            output = ToolOutput(str(error), failed=True)
        except asyncio.CancelledError:
            if not is_shut_down():
                raise
            # It ended with this worker: others would be asked for it in vain, for a minute.
            output, state = ToolOutput(stopped_because(SHUT_DOWN)), ToolResultState.UNKNOWN
        if wrapped.hears_calls and state is None:
            output = replace(output, output=WITHHELD)
        result = await self._returning.result(BASH, ask, output, state)
        return ToolReturned(result=result, snapshot=self._outputs.snapshot_of(place, ask.call_id))
