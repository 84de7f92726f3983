"""Running a tool call: one dynamic activity, named by the tool, that turns whatever happens into one outcome."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from temporalio import activity
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt import call_attempts, own_session
from longhaul.activities.attempt.call_attempts import LeftBehind, is_shut_down, left_behind_when_deaf
from longhaul.activities.attempt.fused_reads import check_first
from longhaul.activities.attempt.heartbeat import Stalled, attempt_noting, beating
from longhaul.activities.attempt.own_session import Streaming
from longhaul.activities.attempt.secrets import given
from longhaul.activities.attempt.worker_leases import note_lease
from longhaul.activities.attempt.workspaces import Elsewhere, keep_files, not_here, with_snapshot
from longhaul.activities.context.tool_results import Returning
from longhaul.activities.contract import RunTool
from longhaul.activities.examine_calls import Examination
from longhaul.activities.middlewares.middleware import ToolUse, as_current
from longhaul.activities.middlewares.session_middlewares import SideModels, Wrapped, with_taken
from longhaul.activities.models.side_model import SideModel
from longhaul.activities.process.program_output import told_to, words_of
from longhaul.activities.process.threads import noting_threads
from longhaul.activities.tool import GivenUp, NeedsDecision, NeedsInput, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.registry import Toolbox, checked, tool_as_recorded
from longhaul.activities.tools.sandbox_call import Sandboxes
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.entries import CallOutcome, CallUnsettled, InputAsked, ToolReturned
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.ids import is_target_activity
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.conversation.tools import CallRun, Effect, with_ran
from longhaul.agent.values.spec.mcp import holder_of

log = logging.getLogger(__name__)

RUNS_ON = "It may still run, in a thread that nobody can end, and what it does may come later."

DEAF = "It did not let itself be ended, and may have gone on for some seconds."
DEAF_ON = "It did not let itself be ended: it may still run, and what it does may come later."


class Acting:
    def __init__(
        self,
        parts: WorkerParts,
        examination: Examination,
        returning: Returning,
        streaming: Streaming,
        side_models: SideModels | None = None,
        sandboxes: Sandboxes | None = None,
    ) -> None:
        self._mcp, self._wrapping, self._secrets = parts.mcp, parts.wrapping, parts.secrets
        self._contexts, self._toolbox, self._workspaces = parts.contexts, parts.toolbox, parts.workspaces
        self._examination, self._returning, self._streaming = examination, returning, streaming
        self._side_models, self._sandboxes = side_models or SideModels(), sandboxes or Sandboxes()

    @activity.defn(dynamic=True)
    async def run_tool(self, arguments: Sequence[RawValue]) -> CallOutcome:
        """Only NotHere, raised before anything was done, is an error, and so is a call that takes its workers along;
        everything else is an outcome."""
        name = activity.info().activity_type
        if is_target_activity(activity.info().activity_id):
            # Of a user whose activities have the same task queue. Said as the SDK says it: another worker has it.
            raise ApplicationError(
                f"Activity function {name} is not registered on this worker, which is one of Longhaul's",
                type="NotFoundError",
            )
        ask = _parse_request(arguments[0].payload.data)
        note_lease(runs_once=ask.effect is Effect.ONCE)
        check_first(ask)
        if ask.effect is not Effect.ONCE:
            await call_attempts.check_not_fatal()
            start = await self._ready(name, ask)
            return await self._with_spending(name, ask, start)
        if lost := await call_attempts.lost_before(ask.run):
            unknown = ToolOutput(call_attempts.UNKNOWN_OUTCOME.format(lost))
            return await self._returned(name, ask, unknown, ToolResultState.UNKNOWN)
        with call_attempts.beginning():
            start = await self._ready(name, ask)
        with call_attempts.started():
            return await self._with_spending(name, ask, start)

    async def read(self, name: str, ask: RunTool) -> CallOutcome:
        """A call that only reads, as `run_tool` does it, within whatever activity runs."""
        return await self._with_spending(name, ask, await self._ready(name, ask))

    async def _with_spending(self, name: str, ask: RunTool, start: "_Start") -> CallOutcome:
        """With what was asked of a model for it, and the files from before it."""
        outcome = await self._run_to_an_outcome(name, ask, start)
        return with_taken(with_snapshot(outcome, start.snapshot), start.model)

    async def _ready(self, name: str, ask: RunTool) -> "_Start":
        """Raises NotHere when this worker can't begin; nothing was done."""
        if isinstance(ask, _FromNewer):
            raise not_here(f"a newer release asks for {name}, and says what this one does not know")
        if ask.held and holder_of(ask.connection) != self._mcp.worker:
            raise not_here(f"another worker keeps the MCP server of {name} for this session")
        toolbox = await self._mcp.for_call(self._toolbox, ask.mcp, name, ask.tool_digest)
        tool = tool_as_recorded(toolbox, name, ask.tool_digest)
        self._returning.behind.check(ask.postprocess)
        if missing := self._secrets.missing(ask.secrets):
            raise not_here(f"this worker has no secret {missing[0]!r}, which the agent allows {name}")
        wrapped = self._wrapping.of_tool_call(ask)
        arguments = self._secrets.filled(await self._arguments(ask), ask.secrets if ask.filled else ())
        place = await self._workspaces.find(ask.place, may_write=ask.effect is not Effect.READ)
        kept = await keep_files(self._workspaces, ask)
        return _Start(toolbox, tool, wrapped, place, arguments, self._side_models.of(ask, wrapped), kept)

    async def _run_to_an_outcome(self, name: str, ask: RunTool, start: "_Start") -> CallOutcome:
        state: ToolResultState | None = None
        runs_on = False
        with noting_threads() as threads:
            try:
                output = await self._acted(name, ask, start)
            except NeedsDecision as changed:
                analysis = self._secrets.out_of_findings(changed.analysis, start.arguments)
                reason = self._secrets.masker.masked(changed.reason)
                return CallUnsettled(call_id=ask.call_id, analysis=analysis, reason=reason, input=changed.arguments)
            except NeedsInput as question:
                return InputAsked(call_id=ask.call_id, asked=question.asked)
            except Elsewhere as error:
                raise not_here(str(error)) from error
            except ToolError as error:
                output = ToolOutput(output=str(error), failed=True)
            except GivenUp as error:
                runs_on = error.runs_on or await threads.run_on()
                unknown = ask.effect is Effect.ONCE or (runs_on and ask.effect is not Effect.READ)
                state = ToolResultState.UNKNOWN if unknown else ToolResultState.ERROR
                output = ToolOutput(output=str(error), failed=True)
            except LeftBehind as error:
                return await self._stopped(name, ask, start, error, DEAF if is_shut_down() else DEAF_ON)
            except (asyncio.CancelledError, Stalled) as error:
                if isinstance(error, Stalled) or activity.is_cancelled():
                    return await self._stopped(name, ask, start, error, RUNS_ON if await threads.run_on() else "")
                output = _failed(name, error)
            except BaseException as error:
                # A tool is somebody else's code: its bug is the model's to read, not the session's to die of. What
                # would escape from here would count as an attempt that failed, or end the worker.
                log.exception("tool %s failed", name)
                output = _failed(name, error)
            return await self._returned(name, ask, output, state, start=start, runs_on=runs_on)

    async def _acted(self, name: str, ask: RunTool, start: "_Start") -> ToolOutput:
        given_to_them = start.arguments if ask.unchanged is None else ask.unchanged
        use = ToolUse(ask.call_id, name, given_to_them, ask.effect)
        run, judged = partial(self._run, start, ask), partial(self._examination.check_decided, start)
        with attempt_noting(self._secrets.masker) as notes, as_current(start.wrapped.context):
            async with beating(notes.details):
                return await left_behind_when_deaf(start.wrapped.acting(use, run, judged))

    async def _arguments(self, ask: RunTool) -> str:
        """JSON as decided on. Raises NotHere when they can't be fetched now: nothing was done yet."""
        if ask.arguments is not None:
            return ask.arguments
        if ask.said_in is None:
            raise not_here("this call came without arguments, and without the place where they stand")
        try:
            async with beating():
                return await self._examination.arguments_of(ask.call_id, ask.said_in)
        except Exception as error:  # of whatever kind: it must not look like a call that has started
            raise not_here(f"the call's arguments could not be fetched from the session: {words_of(error)}") from error

    async def _run(self, start: "_Start", ask: RunTool) -> ToolOutput:
        tool = start.tool
        try:
            arguments = checked(start.toolbox, self._secrets, tool.name, start.arguments)
        except ArgumentsError as error:
            raise ToolError(str(error)) from error
        call = ToolCall(
            id=ask.call_id,
            arguments=arguments,
            place=start.place,
            analysis=await self._findings(start, ask, arguments),
            attempt=activity.info().attempt,
            confined=ask.confined,
            secrets=self._secrets.named(ask.secrets),
            masker=self._secrets.masker,
            connection=ask.connection,
            knowledge_bases=ask.knowledge_bases,
            asked=ask.asked,
            model=start.model,
            snapshot=start.snapshot,
        )
        seconds = tool.seconds_for(arguments)
        limit = asyncio.timeout(seconds)
        outlet = self._streaming.tool_call(ask.call_id, tool.name)
        try:
            with told_to(partial(outlet.write, "output")), given(call.secrets):
                async with limit:
                    output = await left_behind_when_deaf(self._sandboxes.run(tool, call), limit.expired)
        except (TimeoutError, LeftBehind) as error:
            if not limit.expired():
                raise
            # A plain function runs on in its thread, so nobody may say that it has ended.
            raise GivenUp(
                f"{tool.name} was given up: it ran longer than {seconds:g} s. It may have done part of "
                "its work, or still be at it. Find out what is true before you repeat it.",
                runs_on=isinstance(error, LeftBehind),
            ) from None
        outlet.end()
        return output

    async def _findings(self, start: "_Start", ask: RunTool, arguments: dict[str, Any]) -> CallAnalysis:
        """Those that the decision rests on. Of a call that holds a secret they were recorded without it: they are made
        again, and have to look the same. Raises NeedsDecision where they do not."""
        if not self._secrets.masker.found(start.arguments):
            return ask.analysis
        fresh = await start.tool.examine(arguments, start.place)
        shown = self._secrets.out_of_findings(fresh, start.arguments)
        if (shown.cwd, shown.paths, shown.before) != (ask.analysis.cwd, ask.analysis.paths, ask.analysis.before):
            raise NeedsDecision(fresh, "what it would touch has changed since it was decided on")
        return fresh.as_run().model_copy(update={"read_only": ask.analysis.read_only})

    async def _stopped(
        self,
        name: str,
        ask: RunTool,
        start: "_Start",
        why: asyncio.CancelledError | Stalled | LeftBehind,
        runs_on: str,
    ) -> ToolReturned:
        """This attempt was stopped from outside. What may run twice does so elsewhere; the rest is told truthfully.
        `runs_on`: a sentence where it did not let itself be ended."""
        details = activity.cancellation_details()
        interrupted = details is not None and details.cancel_requested
        if interrupted and not runs_on:
            raise why
        if interrupted and ask.effect is Effect.READ:
            text = f"Interrupted: the reply was interrupted while this call was under way. {runs_on} It only reads."
            return await self._returned(name, ask, ToolOutput(text), ToolResultState.INTERRUPTED, start=start)
        if interrupted:
            reason = "the reply was interrupted"
        else:
            reason = str(why) if isinstance(why, Stalled) else call_attempts.SHUT_DOWN
        if not interrupted and ask.effect is not Effect.ONCE:
            raise ApplicationError(f"{name} was stopped: {reason}", type="Stopped") from None
        told = call_attempts.given_up_because(reason, runs_on) if runs_on else call_attempts.stopped_because(reason)
        output = ToolOutput(told)
        return await self._returned(name, ask, output, ToolResultState.UNKNOWN, start=start, runs_on=bool(runs_on))

    async def _returned(
        self,
        name: str,
        ask: RunTool,
        output: ToolOutput,
        state: ToolResultState | None = None,
        *,
        start: "_Start | None" = None,
        runs_on: bool = False,
    ) -> ToolReturned:
        """Without `start` the call ran in an attempt that was lost."""
        took = None if start is None else round(time.monotonic() - start.at, 3)
        result = with_ran(
            await self._returning.result(name, ask, output, state), CallRun(effect=ask.effect, seconds=took)
        )
        message, tokens = await self._returning.message(ask, result)
        digest = self._contexts.keep_result(own_session.key(), ask.epoch, message, tokens)
        return ToolReturned(result=result, digest=digest, tokens=tokens, cwd=_moved_to(ask, output), runs_on=runs_on)


@dataclass(frozen=True)
class _Start:
    """All that a call needs to begin."""

    toolbox: Toolbox
    tool: Tool
    wrapped: Wrapped
    place: Place
    arguments: str
    model: SideModel | None
    snapshot: str = ""
    """As of `ToolReturned`."""
    at: float = field(default_factory=time.monotonic)


class _FromNewer(RunTool):
    """A call that is for this worker alone, whatever its release, with fields that this release does not know."""


def _parse_request(said: bytes) -> RunTool:
    try:
        return RunTool.model_validate_json(said, extra="forbid")
    except ValidationError:  # a field of a newer release, which others than its keeper may leave aside
        ask = RunTool.model_validate_json(said)
    return _FromNewer.model_validate_json(said) if ask.held else ask


def _moved_to(ask: RunTool, output: ToolOutput) -> str | None:
    """The new working directory, when there is one that can be written down."""
    cwd = getattr(output, "cwd", None)
    if not isinstance(cwd, Path) or cwd == Path(ask.place.cwd or ask.place.root):
        return None
    return None if any("\ud800" <= letter <= "\udfff" for letter in str(cwd)) else str(cwd)


def _failed(name: str, error: BaseException) -> ToolOutput:
    return ToolOutput(output=f"{name} failed: {words_of(error, 2_000)}", failed=True)
