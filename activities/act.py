"""Running a tool call: one dynamic activity, named by the tool, that turns whatever happens into one outcome."""

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path

from pydantic_core import PydanticSerializationError
from temporalio import activity
from temporalio.client import WorkflowQueryFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities import own_session
from activities.contexts import Contexts
from activities.contract import RunTool
from activities.examine import Examination
from activities.heartbeat import Stalled, beating
from activities.tools.registry import ArgumentsError, Toolbox
from activities.tools.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from activities.workspaces import Workspaces, not_here
from agent.canonical import message_digest
from agent.entries import CallUnsettled, ToolReturned
from agent.messages import DataBlock, Msg, TextBlock, ToolResultBlock, ToolResultState
from agent.tools import Effect

log = logging.getLogger(__name__)

RESULT_LIMIT_CHARS = 300_000
"""Tools cut their own output far below; this one keeps a careless tool from an answer that the server refuses."""

DATA_LIMIT_CHARS = 1_200_000
"""Of base64: the server's limit is 2 MiB for the whole answer."""

ANSWER_LIMIT_BYTES = 1_500_000

METADATA_LEVELS = 60
"""JSON is read back to a depth of about 200, the record's own levels included: one value beyond it would fail the
session's task for ever."""


class GivenUp(Exception):
    """A tool took longer than it may."""


class Acting:
    def __init__(self, contexts: Contexts, toolbox: Toolbox, workspaces: Workspaces, examination: Examination) -> None:
        self._contexts = contexts
        self._toolbox = toolbox
        self._workspaces = workspaces
        self._examination = examination

    @activity.defn(dynamic=True)
    async def run_tool(self, arguments: Sequence[RawValue]) -> ToolReturned | CallUnsettled:
        """Only NotHere, raised before anything was done, is an error; everything else is an outcome."""
        name = activity.info().activity_type
        ask = RunTool.model_validate_json(arguments[0].payload.data)
        tool, descriptor = self._toolbox.get(name), self._toolbox.descriptor(name)
        if tool is None or descriptor is None or descriptor.digest != ask.tool_digest:
            raise not_here(f"this worker has no tool {name!r} as the session recorded it")
        place = await self._workspaces.find(ask.place)
        raw = await self._arguments(ask)
        try:
            async with beating():
                output = await self._run(tool, ask, raw, place)
        except NeedsDecision as changed:
            return CallUnsettled(call_id=ask.call_id, facts=changed.facts, reason=changed.reason)
        except ToolError as error:
            output = ToolOutput(output=str(error), failed=True)
        except GivenUp as error:
            state = ToolResultState.UNKNOWN if ask.effect is Effect.ONCE else ToolResultState.ERROR
            return self._returned(name, ask, ToolOutput(output=str(error), failed=True), state)
        except (asyncio.CancelledError, Stalled) as error:
            if isinstance(error, Stalled) or activity.is_cancelled():
                return self._stopped(name, ask, error)
            output = _failed(name, error)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            # A tool is somebody else's code: its bug is the model's to read, not the session's to die of. What would
            # escape from here would count as an attempt to be repeated, also of a `once` call, or end the worker.
            log.exception("tool %s failed", name)
            output = _failed(name, error)
        return self._returned(name, ask, output)

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
            id=ask.call_id, arguments=arguments, place=place, facts=ask.facts, attempt=activity.info().attempt
        )
        limit = asyncio.timeout(tool.timeout_seconds)
        try:
            async with limit:
                return await tool.run(call)
        except TimeoutError:
            if not limit.expired():
                raise
            # A plain function runs on in its thread, so nobody may say that it has ended.
            raise GivenUp(
                f"{tool.name} was given up: it ran longer than {tool.timeout_seconds:g} s. It may have done part of "
                "its work, or still be at it. Find out what is true before you repeat it."
            ) from None

    def _stopped(self, name: str, ask: RunTool, why: asyncio.CancelledError | Stalled) -> ToolReturned:
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
        return self._returned(name, ask, ToolOutput(output=text), ToolResultState.UNKNOWN)

    def _returned(
        self, name: str, ask: RunTool, output: ToolOutput, state: ToolResultState | None = None
    ) -> ToolReturned:
        result = _recordable(_block(name, ask, output, state))
        message = Msg(name=ask.agent, role="assistant", content=(result,))
        digest = message_digest(message)
        self._contexts.session(own_session.key(), ask.epoch).keep(digest, message)
        return ToolReturned(
            result=result,
            digest=digest,
            cwd=_moved_to(ask, output),
        )


def _block(name: str, ask: RunTool, output: ToolOutput, state: ToolResultState | None) -> ToolResultBlock:
    try:
        return ToolResultBlock(
            id=ask.call_id,
            name=name,
            output=_told_of_edit(ask, _bounded(output.output)),
            state=state or (ToolResultState.ERROR if output.failed else ToolResultState.SUCCESS),
            metadata=output.metadata,
        )
    except (TypeError, ValueError, AttributeError) as error:
        # The call has run. An error from here would start a `once` call a second time.
        log.exception("tool %s gave an answer that is no ToolOutput", name)
        text = f"[{name} ended, but what it returned can't be used ({type(error).__name__}). What it did stays done.]"
        return ToolResultBlock(id=ask.call_id, name=name, output=text, state=state or ToolResultState.ERROR)


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


def _told_of_edit(
    ask: RunTool, output: str | tuple[TextBlock | DataBlock, ...]
) -> str | tuple[TextBlock | DataBlock, ...]:
    """The model must know that what ran is not what it wrote."""
    if ask.edited_by is None:
        return output
    note = f"[{ask.edited_by} changed the arguments before this ran: {ask.arguments}]"
    return f"{note}\n{output}" if isinstance(output, str) else (TextBlock(text=note), *output)


def _failed(name: str, error: BaseException) -> ToolOutput:
    return ToolOutput(output=f"{name} failed: {type(error).__name__}: {error}"[:2_000], failed=True)


def _recordable(result: ToolResultBlock) -> ToolResultBlock:
    """The result without metadata that is not plain JSON, and without what is too large together: an answer that the
    server never gets counts as never given, and a call that ran would be lost or started again."""
    why = _unrecordable(result)
    if not why:
        return result
    if result.metadata:
        return _recordable(result.model_copy(update={"metadata": {}}))
    return result.model_copy(update={"output": f"[{result.name} ended, but its result {why} and was left out]"})


def _unrecordable(result: ToolResultBlock) -> str:
    """What is wrong with the result, as the rest of a sentence; empty when nothing is."""
    try:
        written = result.model_dump_json()
    except (PydanticSerializationError, ValueError):
        return "can't be written as JSON"
    if len(written) > ANSWER_LIMIT_BYTES:
        return f"of {len(written) // 1000} kB is too large"
    if result.metadata and not _is_flat(json.loads(written)["metadata"], METADATA_LEVELS):
        return "is nested too deeply"
    return ""


def _is_flat(value: object, levels: int) -> bool:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_flat(child, levels - 1) for child in children)


def _bounded(output: str | tuple[TextBlock | DataBlock, ...]) -> str | tuple[TextBlock | DataBlock, ...]:
    if isinstance(output, str):
        return _cut(output)
    return tuple(
        block.model_copy(update={"text": _cut(block.text)}) if isinstance(block, TextBlock) else _fitting(block)
        for block in output
    )


def _fitting(block: DataBlock) -> DataBlock | TextBlock:
    """Data that the server would refuse becomes a sentence."""
    if block.source.type == "base64" and len(block.source.data) > DATA_LIMIT_CHARS:
        size = len(block.source.data) * 3 // 4000
        return TextBlock(
            text=f"[{block.source.media_type} of {size} kB left out: at most {DATA_LIMIT_CHARS * 3 // 4000} kB]"
        )
    return block


def _cut(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate could not be recorded
    if len(text) <= RESULT_LIMIT_CHARS:
        return text
    left_out = len(text) - RESULT_LIMIT_CHARS
    return f"{text[:RESULT_LIMIT_CHARS]}\n[{left_out} further characters were left out]"
