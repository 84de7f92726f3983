"""A tool that an MCP server brings: what a call of it does when the server answers, refuses, or is lost; and output of
a tool made of text, images, audio, resources, links and structured content.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from itertools import islice
from typing import Any, Protocol, assert_never

import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from longhaul.activities.mcp.allowed_servers import AnswerTooLong, Server, ServerBusy, ServerLost, ServerUnavailable
from longhaul.activities.mcp.connection import McpConnection
from longhaul.activities.mcp.lenient_answers import plain_base64
from longhaul.activities.mcp.server_requests import DONE, Samples, asked_for, asked_meanwhile, model_requests
from longhaul.activities.mcp.tool_descriptors import Described
from longhaul.activities.models.side_model import NotAsked
from longhaul.activities.process.program_output import clipped, progress
from longhaul.activities.tool import GivenUp, NeedsInput, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.function import OUTPUT_CAP
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.text import visible
from longhaul.agent.values.conversation.messages import MOST_ROUNDS, Base64Source, DataBlock, ServerAsked, TextBlock
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.mcp import CONNECTION, TOOLS_CHANGED

_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,60}/[A-Za-z0-9][A-Za-z0-9.+_-]{0,60}")
_OTHER = "application/octet-stream"
STRUCTURED = "structured_content"
MOST_VALUES = 2_000
"""Of what is structured, that are looked for in the words beside it."""
LONGEST_STRUCTURED = 100_000
"""Characters of JSON in the metadata, which stands in the session's state as long as the result does."""


def output_of(result: types.CallToolResult, metadata: dict[str, Any]) -> ToolOutput:
    """`metadata` with what the server has structured, beside, while it is short. It stands in the output too, unless
    the server says the same in words, or says that the call has failed."""
    blocks = [_block(content) for content in result.content]
    if result.structured_content is not None:
        written = json.dumps(result.structured_content, ensure_ascii=False)
        if len(written) <= LONGEST_STRUCTURED:
            metadata = {**metadata, STRUCTURED: result.structured_content}
        said = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
        if not blocks or not (result.is_error or _says(said, result.structured_content, len(written))):
            blocks.append(TextBlock(text=written))
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    output = clipped("\n".join(texts), OUTPUT_CAP) if len(texts) == len(blocks) else tuple(blocks)
    return ToolOutput(output, failed=result.is_error, metadata=metadata)


def _says(text: str, structured: dict[str, Any], size: int) -> bool:
    """Whether each value stands in the text; of what is long the length is compared."""
    if size > LONGEST_STRUCTURED or len(text) > LONGEST_STRUCTURED:
        return len(text) >= size // 2
    values = [*islice(_values(structured), MOST_VALUES + 1)]
    # As the server writes it, and as JSON does within a text.
    return len(values) <= MOST_VALUES and all(
        value in text or json.dumps(value)[1:-1] in text or json.dumps(value, ensure_ascii=False)[1:-1] in text
        for value in values
    )


def _values(structured: object) -> Iterator[str]:
    match structured:
        case dict():
            inner: Iterable[object] = structured.values()
        case list():
            inner = structured
        case str():
            yield structured.strip()
            return
        case None:
            return
        case _:
            yield json.dumps(structured)
            return
    for value in inner:
        yield from _values(value)


def _block(content: types.ContentBlock) -> TextBlock | DataBlock:
    match content:
        case types.TextContent():
            return TextBlock(text=content.text)
        case types.ImageContent() | types.AudioContent():
            return _data(content.data, content.mime_type, None)
        case types.ResourceLink():
            about = f" ({content.description})" if content.description else ""
            return TextBlock(text=f"[resource {content.name}: {content.uri}{about}]")
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return TextBlock(text=f"[resource {resource.uri}]\n{resource.text}")
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return _data(resource.blob, resource.mime_type or _OTHER, resource.uri[:200])
        case types.EmbeddedResource():
            return TextBlock(text="[a resource of no kind that is known here]")
        case _ as never:
            assert_never(never)


def _data(data: str, media_type: str, name: str | None) -> TextBlock | DataBlock:
    try:
        data, media_type = plain_base64(data, media_type, _MEDIA_TYPE.fullmatch)
    except ValueError as error:
        return TextBlock(text=f"[data of type {visible(media_type[:100])!r} that can't be read: {error}]")
    sound = media_type if _MEDIA_TYPE.fullmatch(media_type) else _OTHER
    return DataBlock(source=Base64Source(data=data, media_type=sound), name=name)


PAUSES = (0.2, 1.0, 3.0)
"""Seconds between tries of a call that is known not to have started, or that may run twice."""
MAYBE_DONE = "It may have done part of its work, or all of it."
STARTED_AGAIN = (
    "[The MCP server {!r} restarted before this call: what it had kept for this session (open pages, logins, working "
    "folders) is gone.]"
)

UNASKED = (
    "[The MCP server {!r} asked a person while this call ran: {}. The question could not wait for an answer: the "
    "server speaks an older version of the protocol, and either keeps state or must not run this call a second "
    "time. So Longhaul cancelled the question.]"
)
SAMPLED = "sampled"
"""In the metadata of a result: what a model was asked for the server, and what it said."""
LATER_SECONDS = 1.0
"""Before a call is made again that the server has put off without asking anybody."""


class Connecting(Protocol):
    def through(
        self, server: Server, last: str | None, *, once: bool
    ) -> AbstractAsyncContextManager[tuple[McpConnection, bool]]:
        """A connection for one call, and whether the server keeps nothing of the calls before. Raises
        ServerUnavailable.

        `once`: the call may not run a second time, so the server is asked before whether it is there."""
        ...


class ServedTool(Tool):
    def __init__(self, server: Server, about: Described, connecting: Connecting) -> None:
        self.name = about.name
        self.description = about.description
        self.input_schema = about.input_schema
        self.effect = about.effect
        self.read_only = about.read_only
        self.timeout_seconds = server.timeout_seconds
        self.notes = about.notes
        self._server, self._about, self._connecting = server, about, connecting

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        notifications = [
            *(["The server says that this tool may destroy what is there."] if self._about.destructive else []),
            *(["The server may have a model asked in its name while it runs."] if self._server.samples else []),
        ]
        notice = " ".join(notifications)
        return CallAnalysis(cwd=str(place.cwd), read_only=self.read_only, notice=notice)

    async def run(self, call: ToolCall) -> ToolOutput:
        is_undone = True
        for pause in (*PAUSES, None):
            try:
                return await self._once(call)
            except (ServerLost, AnswerTooLong) as error:
                if self.effect is Effect.ONCE:
                    raise GivenUp(f"{error}. {MAYBE_DONE} Find out what is true before you repeat it.") from error
                if isinstance(error, AnswerTooLong):
                    raise ToolError(f"{error}. What the call did stays done") from error
                if pause is None:
                    raise ToolError(str(error)) from error
                is_undone = self.effect is Effect.READ
            except (ServerBusy, ServerUnavailable) as error:
                if pause is None:
                    done = "Nothing was done" if is_undone else f"Of a try before nobody knows: {MAYBE_DONE}"
                    raise ToolError(f"{error}. {done}") from error
            await asyncio.sleep(pause or 0)
        raise AssertionError("the last try returns or raises")

    async def _once(self, call: ToolCall) -> ToolOutput:
        samples = Samples(self._server.name, call.model, call.masker)
        once = self.effect is Effect.ONCE
        async with self._connecting.through(self._server, call.connection, once=once) as (connection, is_again):
            connection.meanwhile.samples = samples
            try:
                result = await self._answer(connection, call, samples)
            except MCPError as error:
                self._raise_asked(connection, call)
                raise ToolError(f"the MCP server {self._server.name!r} answered with an error: {error}") from error
            except ValidationError as error:
                raise ToolError(
                    f"what the MCP server {self._server.name!r} answered can't be read ({error.error_count()} mistakes "
                    "in it). What the call did stays done"
                ) from error
            finally:
                connection.meanwhile.samples = None
            # For the metadata of the result.
            changed, connection.offers_others = connection.offers_others, False
            noted = {
                **({SAMPLED: samples.told} if samples.told else {}),
                **({CONNECTION: connection.id} if self._server.is_stateful else {}),
                **({TOOLS_CHANGED: True} if changed else {}),
            }
            output = output_of(result, noted)
            self._raise_asked(connection, call)
            unanswered = [
                UNASKED.format(self._server.name, one.message[:500]) for one in connection.meanwhile.take().values()
            ]
        notes = [
            *([STARTED_AGAIN.format(self._server.name)] if is_again else []),
            *map(visible, map(call.masker.masked, unanswered)),
        ]
        if not notes:
            return output
        note = "\n".join(notes)
        shown = output.output
        blocks = f"{note}\n{shown}" if isinstance(shown, str) else (TextBlock(text=note), *shown)
        return ToolOutput(blocks, output.failed, output.metadata)

    async def _answer(self, connection: McpConnection, call: ToolCall, samples: Samples) -> types.CallToolResult:
        """Raises NeedsInput where it is for a person to go on."""
        answered = call.asked
        for _ in range(MOST_ROUNDS):
            try:
                result = await connection.call(self._about.remote_name, call.arguments, _teller(), answered)
            except MCPError as error:
                if error.code != types.INVALID_PARAMS or answered is None or not answered.state:
                    raise
                # A program that was started again does not know its own seal any more: asked again, it gives a new one.
                answered = None
                continue
            if isinstance(result, types.CallToolResult):
                return result
            if self._server.samples and (wanted := model_requests(result)):
                answered = await self._sampled(result, wanted, samples)
                continue
            asked = asked_for(result, self._server.name, call.asked, call.masker)
            if answered is None and call.asked is not None and asked.questions == call.asked.questions:
                answered = asked.model_copy(update={"answers": call.asked.answers})
            elif asked.questions:
                raise NeedsInput(asked)
            else:
                answered = asked  # it wants nothing but to be asked later
                await asyncio.sleep(LATER_SECONDS)
        raise ToolError(f"the MCP server {self._server.name!r} has put this call off {MOST_ROUNDS} times. {DONE}")

    async def _sampled(
        self, result: types.InputRequiredResult, wanted: dict[str, types.CreateMessageRequestParams], samples: Samples
    ) -> ServerAsked:
        try:
            answers = await samples.answers(wanted)
        except NotAsked as error:
            raise ToolError(
                f"the MCP server {self._server.name!r} did not go on with this call: {error}. {DONE}"
            ) from error
        return ServerAsked(server=self._server.name, questions={}, state=result.request_state or "", answers=answers)

    def _raise_asked(self, connection: McpConnection, call: ToolCall) -> None:
        """Raises NeedsInput for what a server of an older version has asked, where the call may be made once more."""
        if self.effect is Effect.ONCE or self._server.is_stateful:
            return
        if asked := connection.meanwhile.take():
            raise NeedsInput(asked_meanwhile(asked, self._server.name, call.asked, call.masker))


def _teller() -> ProgressFnT:
    """Tells of this call what the connection hears, which may be that of many calls."""
    here, show = copy_context(), progress

    async def told(progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        here.run(show, f"{message} ({share})\n" if message else f"{share}\n")

    return told
