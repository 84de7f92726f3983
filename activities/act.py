"""Running a tool call: one dynamic activity, named by the tool, that turns whatever happens into one outcome."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from temporalio import activity
from temporalio.client import WorkflowQueryFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities import own_session
from activities.as_recorded import tool_as_recorded
from activities.contexts import Contexts
from activities.contract import RunTool
from activities.examine import Examination
from activities.heartbeat import Stalled, beating
from activities.middlewares.middleware import ToolUse
from activities.middlewares.runtime import as_current
from activities.middlewares.wrapping import Wrapping
from activities.returning import Returning
from activities.secrets import Secrets, given
from activities.streaming import Streaming
from activities.tools.arguments import ArgumentsError
from activities.tools.progress import told_to
from activities.tools.registry import Toolbox
from activities.tools.resuming import attempt_noting
from activities.tools.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from activities.workspaces import Workspaces, not_here
from agent.entries import CallUnsettled, ToolReturned
from agent.messages import ToolResultState
from agent.tools import Effect

log = logging.getLogger(__name__)


class GivenUp(Exception):
    """A tool took longer than it may."""


class Acting:
    def __init__(  # noqa: PLR0913, PLR0917  one for each thing that a call needs
        self,
        contexts: Contexts,
        toolbox: Toolbox,
        workspaces: Workspaces,
        examination: Examination,
        returning: Returning,
        streaming: Streaming,
        secrets: Secrets | None = None,
        wrapping: Wrapping | None = None,
    ) -> None:
        self._wrapping = wrapping or Wrapping()
        self._secrets = secrets or Secrets()
        self._contexts = contexts
        self._toolbox = toolbox
        self._workspaces = workspaces
        self._examination = examination
        self._returning = returning
        self._streaming = streaming

    @activity.defn(dynamic=True)
    async def run_tool(self, arguments: Sequence[RawValue]) -> ToolReturned | CallUnsettled:
        """Only NotHere, raised before anything was done, is an error; everything else is an outcome."""
        name = activity.info().activity_type
        ask = RunTool.model_validate_json(arguments[0].payload.data)
        tool = tool_as_recorded(self._toolbox, name, ask.tool_digest)
        if missing := self._secrets.missing(ask.secrets):
            raise not_here(f"this worker has no secret {missing[0]!r}, which the agent allows {name}")
        wrapped = self._wrapping.of_tool_call(ask)
        place = await self._workspaces.find(ask.place)
        raw = await self._arguments(ask)
        try:
            use = ToolUse(ask.call_id, name, raw, ask.effect)
            with attempt_noting(self._secrets.masker) as notes, as_current(wrapped.context):
                async with beating(notes.details):
                    output = await wrapped.acting(use, partial(self._run, tool, ask, raw, place))
        except NeedsDecision as changed:
            facts, reason = self._secrets.out_of_facts(changed.facts), self._secrets.masker.masked(changed.reason)
            return CallUnsettled(call_id=ask.call_id, facts=facts, reason=reason)
        except ToolError as error:
            output = ToolOutput(output=str(error), failed=True)
        except GivenUp as error:
            state = ToolResultState.UNKNOWN if ask.effect is Effect.ONCE else ToolResultState.ERROR
            return await self._returned(name, ask, ToolOutput(output=str(error), failed=True), state)
        except (asyncio.CancelledError, Stalled) as error:
            if isinstance(error, Stalled) or activity.is_cancelled():
                return await self._stopped(name, ask, error)
            output = _failed(name, error)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            # A tool is somebody else's code: its bug is the model's to read, not the session's to die of. What would
            # escape from here would count as an attempt to be repeated, also of a `once` call, or end the worker.
            log.exception("tool %s failed", name)
            output = _failed(name, error)
        return await self._returned(name, ask, output)

    async def _arguments(self, ask: RunTool) -> str:
        """JSON as decided on. Raises NotHere when they can't be fetched now: nothing was done yet."""
        if ask.arguments is not None:
            return ask.arguments
        if ask.said_in is None:
            raise not_here("this call came without arguments, and without the place where they stand")
        try:
            async with beating():
                return await self._examination.arguments_of(ask.call_id, ask.said_in)
        except (RPCError, WorkflowQueryFailedError) as error:
            raise not_here(f"the call's arguments could not be fetched from the session: {error}") from error

    async def _run(self, tool: Tool, ask: RunTool, raw: str, place: Place) -> ToolOutput:
        try:
            arguments = self._toolbox.validate(tool.name, raw)
        except ArgumentsError as error:
            raise ToolError(str(error)) from error
        call = ToolCall(
            id=ask.call_id,
            arguments=arguments,
            place=place,
            facts=ask.facts,
            attempt=activity.info().attempt,
            sandbox=ask.sandbox,
            sandbox_network=ask.sandbox_network,
            secrets=self._secrets.named(ask.secrets),
            masker=self._secrets.masker,
        )
        limit = asyncio.timeout(tool.timeout_seconds)
        outlet = self._streaming.tool_call(ask.call_id, tool.name)
        try:
            with told_to(partial(outlet.write, "output")), given(call.secrets):
                async with limit:
                    output = await tool.run(call)
        except TimeoutError:
            if not limit.expired():
                raise
            # A plain function runs on in its thread, so nobody may say that it has ended.
            raise GivenUp(
                f"{tool.name} was given up: it ran longer than {tool.timeout_seconds:g} s. It may have done part of "
                "its work, or still be at it. Find out what is true before you repeat it."
            ) from None
        outlet.end()
        return output

    async def _stopped(self, name: str, ask: RunTool, why: asyncio.CancelledError | Stalled) -> ToolReturned:
        """This attempt was stopped from outside. What may run twice does so elsewhere; the rest is told truthfully."""
        details = activity.cancellation_details()
        if details is not None and details.cancel_requested:
            raise why
        reason = str(why) if isinstance(why, Stalled) else "its worker was shut down"
        if ask.effect is not Effect.ONCE:
            raise ApplicationError(f"{name} was stopped: {reason}", type="Stopped") from None
        text = (
            f"Outcome unknown: this call was started and then stopped, because {reason}. It may have done part of its "
            "work, and it was not started again. Find out what is true before you repeat it."
        )
        return await self._returned(name, ask, ToolOutput(output=text), ToolResultState.UNKNOWN)

    async def _returned(
        self, name: str, ask: RunTool, output: ToolOutput, state: ToolResultState | None = None
    ) -> ToolReturned:
        result = await self._returning.result(name, ask, output, state)
        message, tokens = await self._returning.message(ask, result)
        digest = self._contexts.keep_result(own_session.key(), ask.epoch, message, tokens)
        return ToolReturned(result=result, digest=digest, tokens=tokens, cwd=_moved_to(ask, output))


def _moved_to(ask: RunTool, output: ToolOutput) -> str | None:
    """The new working directory, when there is one that can be written down."""
    cwd = getattr(output, "cwd", None)
    if not isinstance(cwd, Path) or cwd == Path(ask.place.cwd or ask.place.root):
        return None
    return str(cwd) if _is_unicode(str(cwd)) else None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _failed(name: str, error: BaseException) -> ToolOutput:
    return ToolOutput(output=f"{name} failed: {type(error).__name__}: {error}"[:2_000], failed=True)
