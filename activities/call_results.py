"""Activities that say what a call came to which `run_tool` does not end: `take_result` makes a result from outside
short enough, `await_command` waits for a command in the background that an earlier run has started, and `probe_call`
lets a tool look whether a call happened whose outcome is unknown.
"""

import asyncio
from dataclasses import replace
from typing import get_args

from temporalio import activity

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.call_attempts import SHUT_DOWN, is_shut_down, stopped_because
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import given
from longhaul.activities.attempt.workspaces import Elsewhere, not_here
from longhaul.activities.context.tool_results import Returning
from longhaul.activities.contract import (
    AWAIT_COMMAND,
    PROBE_CALL,
    PROBE_SECONDS,
    TAKE_RESULT,
    AwaitCommand,
    ProbeCall,
    RunTool,
)
from longhaul.activities.masker import Masker
from longhaul.activities.process.threads import is_cancelled_here
from longhaul.activities.tool import Found, NeedsDecision, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.bash import Outputs
from longhaul.activities.tools.registry import checked, tool_as_recorded
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.entries import OutcomeProbed, ToolReturned
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.conversation.tools import Finding
from longhaul.agent.values.subagents import BASH


class TakingIn:
    def __init__(self, parts: WorkerParts, returning: Returning) -> None:
        self._contexts = parts.contexts
        self._returning = returning

    @activity.defn(name=TAKE_RESULT)
    async def take_result(self, ask: RunTool) -> ToolReturned:
        async with beating():
            received = await own_session.pull_received(ask.call_id)
        output = ToolOutput(output=received.output, metadata=received.metadata)
        result = await self._returning.result(received.name, ask, output, received.state)
        message, tokens = await self._returning.message(ask, result)
        digest = self._contexts.keep_result(own_session.key(), ask.epoch, message, tokens)
        return ToolReturned(result=result, digest=digest, tokens=tokens, outside=not ask.is_own)


WITHHELD = (
    "What it has printed is withheld: the session has gone on in a new run meanwhile, so the middlewares around its "
    "tools, which may change what is shown, could not see it. A command that writes to a file lets you read it there."
)


class Awaiting:
    def __init__(self, parts: WorkerParts, returning: Returning, outputs: Outputs) -> None:
        self._workspaces, self._wrapping = parts.workspaces, parts.wrapping
        self._returning, self._outputs = returning, outputs

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


DETAIL_CHARS = 2_000


class Probing:
    def __init__(self, parts: WorkerParts) -> None:
        self._toolbox, self._workspaces, self._secrets = parts.toolbox, parts.workspaces, parts.secrets

    @activity.defn(name=PROBE_CALL)
    async def probe_call(self, ask: ProbeCall) -> OutcomeProbed:
        """Raises NotHere when this worker lacks the tool; whatever else goes wrong is a finding: it is unknown."""
        tool = tool_as_recorded(self._toolbox, ask.tool, ask.tool_digest)
        if missing := self._secrets.missing(ask.secrets):
            raise not_here(f"this worker has no secret {missing[0]!r}, which the agent allows {ask.tool}")
        place = await self._workspaces.find(ask.place)
        try:
            runs = self._secrets.filled(ask.arguments, ask.secrets if ask.filled else ())
            arguments = checked(self._toolbox, self._secrets, ask.tool, runs)
        except ArgumentsError as error:
            return _probed(ask, Found("unknown", str(error)), self._secrets.masker)
        analysis = CallAnalysis(cwd=str(place.cwd))
        call = ToolCall(
            id=ask.call_id,
            arguments=arguments,
            place=place,
            analysis=analysis,
            attempt=activity.info().attempt,
            secrets=self._secrets.named(ask.secrets),
            masker=self._secrets.masker,
        )
        async with beating():
            with given(call.secrets):
                found = await _look(tool, call)
        return _probed(ask, found, self._secrets.masker)


async def _look(tool: Tool, call: ToolCall) -> Found:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            found: object = await tool.probe(call)
    except TimeoutError:
        return Found("unknown", f"looking took longer than {PROBE_SECONDS:g} s")
    except BaseException as error:  # a tool is somebody else's code, and what it can't tell stays unknown
        if is_cancelled_here(error):
            raise
        return Found("unknown", f"looking failed ({type(error).__name__}: {error})")
    if isinstance(found, Found) and found.finding in get_args(Finding) and isinstance(found.detail, str):
        return found
    for finding in get_args(Finding):
        if found == finding:
            return Found(finding)
    return Found("unknown", f"the probe of {tool.name} answered with {str(found)[:100]!r}, which is no finding")


def _probed(ask: ProbeCall, found: Found, masker: Masker) -> OutcomeProbed:
    detail = masker.masked(found.detail.encode("utf-8", "replace").decode("utf-8"))[:DETAIL_CHARS]
    return OutcomeProbed(call_id=ask.call_id, finding=found.finding, detail=detail)
