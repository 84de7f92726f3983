"""probe_call: a tool looks whether a call of it happened whose outcome is unknown. Nothing is changed by looking."""

import asyncio
from typing import get_args

from temporalio import activity

from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import WorkerSecrets, given
from longhaul.activities.attempt.workspaces import Workspaces, not_here
from longhaul.activities.contract import PROBE_CALL, PROBE_SECONDS, ProbeCall
from longhaul.activities.masking.masker import Masker
from longhaul.activities.process.cancelled_here import is_cancelled_here
from longhaul.activities.tool import Found, Tool, ToolCall
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.as_recorded import tool_as_recorded
from longhaul.activities.tools.marked_arguments import checked
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.entries import DoubtProbed, Finding
from longhaul.agent.permission.call_facts import CallFacts

DETAIL_CHARS = 2_000


class Probing:
    def __init__(self, toolbox: Toolbox, workspaces: Workspaces, secrets: WorkerSecrets) -> None:
        self._secrets = secrets
        self._toolbox = toolbox
        self._workspaces = workspaces

    @activity.defn(name=PROBE_CALL)
    async def probe_call(self, ask: ProbeCall) -> DoubtProbed:
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
        facts = CallFacts(cwd=str(place.cwd))
        call = ToolCall(
            id=ask.call_id,
            arguments=arguments,
            place=place,
            facts=facts,
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


def _probed(ask: ProbeCall, found: Found, masker: Masker) -> DoubtProbed:
    detail = masker.masked(found.detail.encode("utf-8", "replace").decode("utf-8"))[:DETAIL_CHARS]
    return DoubtProbed(call_id=ask.call_id, finding=found.finding, detail=detail)
