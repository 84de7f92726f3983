"""One connection to an MCP server, and what the server logs through it.

It lives in a task of its own, so that whoever is cancelled ends a request and never the connection half way. Log
lines are masked, harmless, and no more than a person could read.
"""

import asyncio
import contextlib
import json
import logging
import os
import secrets as randomness
import time
from codecs import getincrementaldecoder
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.client import Client, session
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.masker import MaskedStream, Masker
from longhaul.activities.mcp.allowed_servers import (
    AnswerTooLong,
    Server,
    ServerBusy,
    ServerFailure,
    ServerLost,
    ServerUnavailable,
    in_words,
)
from longhaul.activities.mcp.lenient_answers import notes_in
from longhaul.activities.mcp.outcomes import Outcomes, Said, of_this_call
from longhaul.activities.mcp.server_requests import MeanwhileAsked, results_of
from longhaul.activities.mcp.tool_descriptors import MOST_TOOLS
from longhaul.activities.mcp.transport import streams
from longhaul.agent.plain.text import harmless, visible
from longhaul.agent.values.conversation.messages import ServerAsked
from longhaul.agent.values.spec.mcp import connection_of

log = logging.getLogger(__name__)
logging.getLogger("mcp").setLevel(logging.CRITICAL)
"""The package writes down each line that it can't read: a server could fill the worker's log. What counts is raised."""
session.logger.addFilter(lambda record: record.pathname != session.__file__)
"""Its session does so under a name that others may have, too: `client`."""

LINE_CHARS = 500
READ_CHARS = 5_000
"""Of a line: more than is shown, so that no secret is cut before it is masked."""
MOST_LINES = 60
"""Of one connection in SECONDS: what is more is counted."""
SECONDS = 60.0
WANTED: types.LoggingLevel = "warning"
"""From which level on servers are asked to send, where they can be."""
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "warning": logging.WARNING}
"""All others are errors: how loud a server cries alarms nobody by itself."""


class ServerLog:
    """Of one connection."""

    def __init__(self, server: str, masker: Masker, seconds: float = SECONDS) -> None:
        self._server, self._masker, self._seconds = server, masker, seconds
        self._decoder, self._masked = getincrementaldecoder("utf-8")("replace"), MaskedStream(masker)
        self._line = ""
        """What has come of its error output since the last end of a line, masked."""
        self._since, self._lines, self._left_out = time.monotonic(), 0, 0

    async def told(self, params: types.LoggingMessageNotificationParams) -> None:
        """As the `mcp` package calls it."""
        said = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
        self._write(_LEVELS.get(params.level, logging.ERROR), self._masker.masked(said[:READ_CHARS]))

    def heard(self, piece: bytes) -> None:
        """Of its error output, in which programs log. A secret may come in pieces, and have several lines."""
        self._take(self._masked.feed(self._decoder.decode(piece)))

    def end(self) -> None:
        """No more of it comes."""
        self._take(self._masked.end() + "\n")

    def _take(self, masked: str) -> None:
        *whole, rest = (self._line + masked).split("\n")
        for line in whole:
            if line.strip():
                self._write(logging.INFO, line)
        self._line = rest[:READ_CHARS]

    def _write(self, level: int, text: str) -> None:
        now = time.monotonic()
        if now - self._since >= self._seconds:
            if self._left_out:
                log.warning("MCP server %s: %d more lines of its log were left out", self._server, self._left_out)
            self._since, self._lines, self._left_out = now, 0, 0
        self._lines += 1
        if self._lines > MOST_LINES:
            self._left_out += 1
            return
        # One line each: what a server says must not look like lines of ours.
        log.log(level, "MCP server %s: %s", self._server, visible(" ".join(text.split()))[:LINE_CHARS])


CONNECT_SECONDS = 10.0
LEAVING_SECONDS = 15.0
"""So long a connection may take to end; then its task is cancelled."""
SAYING_SECONDS = 1.0
"""So long after a request by HTTP has failed its error may take to be told."""
TAIL_BYTES = 2_000
"""Of what a program writes to its error output: shown where it can't be reached."""
MOST_PAGES = 200
Answer = types.CallToolResult | types.InputRequiredResult
_CALLED = TypeAdapter[Answer](Answer)


class McpConnection:
    """Open from `opened` until `close`, or until the server is gone: `is_lost`. `offers_others`: other tools than
    before, as it has said since somebody has looked."""

    def __init__(self, server: Server, secrets: WorkerSecrets, on_change: Callable[[], None], worker: str = "") -> None:
        self.id = connection_of(worker, randomness.token_hex(8))
        self.is_lost = self.offers_others = False
        self._server, self._secrets, self._on_change = server, secrets, on_change
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._status = Outcomes()
        self.meanwhile = MeanwhileAsked()
        self._tail = bytearray()
        self._log = ServerLog(server.name, secrets.masker)
        self._task = asyncio.create_task(self._live())

    async def opened(self) -> None:
        """Raises ServerUnavailable or ServerBusy within CONNECT_SECONDS."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.shield(self._ready)
        except TimeoutError:
            self.close()
            raise self._unreachable(f"it did not answer within {CONNECT_SECONDS:g} s") from None
        except BaseException:
            self.close()
            raise

    async def list_tools(self) -> tuple[list[types.Tool], tuple[str, ...]]:
        """All pages, and what was wrong with them as a whole, in words. Raises ServerLost, MCPError."""
        client = await self._ready
        found: list[types.Tool] = []
        notes: list[str] = []
        cursors: list[str | None] = [None]
        for _ in range(MOST_PAGES):
            page = await self._request(client.list_tools(cursor=cursors[-1], cache_mode="bypass"))
            found += page.tools
            notes += notes_in(page.meta)
            if not page.next_cursor or len(found) >= MOST_TOOLS:
                break
            if page.next_cursor in cursors:
                notes.append("it gives a nextCursor that it gave before: nothing more is asked for")
                break
            cursors.append(page.next_cursor)
        return found[:MOST_TOOLS], tuple(dict.fromkeys(notes))

    async def call(
        self, tool: str, arguments: dict[str, Any], heard: ProgressFnT, answered: ServerAsked | None = None
    ) -> Answer:
        """`answered`: what a person said to what this call has asked before. Raises ServerBusy where it has not
        started, ServerLost where nobody knows, and MCPError for its own error."""
        client = await self._ready
        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        if answered is not None and answered.from_start:
            self.meanwhile.answers = results_of(answered)
        elif answered is not None:
            given = {"input_responses": results_of(answered) or None, "request_state": answered.state or None}
            params = params.model_copy(update=given)
        # Not `call_tool` of the client: that judges answers by the server's own schema, and throws away what was done.
        asked = client.session.send_request(types.CallToolRequest(params=params), _CALLED, progress_callback=heard)
        answer: Answer = await self._request(asked, acts=True)
        return answer

    async def answers(self) -> bool:
        """Whether it is there: what was lost between two calls must not look as if the second one had been lost."""
        client = await self._ready
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._request(client.session.send_ping())
        except MCPError:
            return True  # it knows no pings
        except (ServerFailure, TimeoutError, ValidationError):
            return False
        return True

    def when_ended(self, tell: Callable[[], object]) -> None:
        self._task.add_done_callback(lambda _: tell())

    def close(self) -> None:
        """Begin to end it. Nobody needs to wait: `_live` sees to the rest."""
        self.is_lost = True
        self._closing.set()
        if not self._task.done():
            asyncio.get_running_loop().call_later(LEAVING_SECONDS, self._task.cancel)

    async def closed(self) -> None:
        """Wait until it has ended."""
        self.close()
        await asyncio.wait((self._task,), timeout=LEAVING_SECONDS + 1)

    async def _request(self, request: Awaitable[Any], *, acts: bool = False) -> Any:
        """What the request comes to. Cancelled, it tells the server so. `acts`: as of `Outcomes`."""
        status = Outcomes(acts=acts)
        limit, failed = asyncio.timeout(None), status.failed

        def end(ended: asyncio.Future[None]) -> None:
            grace = SAYING_SECONDS if ended is failed else 0  # SSE says nothing more of it
            with contextlib.suppress(RuntimeError):  # it has its answer
                limit.reschedule(asyncio.get_running_loop().time() + grace)

        self._task.add_done_callback(end)
        failed.add_done_callback(end)
        mine = of_this_call.set(status)
        try:
            async with limit:
                return await request
        except TimeoutError:
            said, why = status.said_by(None), "the connection was lost"
        except MCPError as error:
            why = str(error)
            if (said := status.said_by(error)) == "its answer":
                raise
        finally:
            self._task.remove_done_callback(end)
            failed.remove_done_callback(end)
            of_this_call.reset(mine)
        raise self._without_answer(said, status, why)

    def _without_answer(self, said: Said, outcomes: Outcomes, why: str) -> ServerFailure | MCPError:
        match said:
            case "not now":
                return self._busy(outcomes.refused)
            case "its refusal":
                why = harmless((outcomes.unanswered or f"HTTP {outcomes.refused}: {why}")[:500])
                return MCPError(code=types.INVALID_REQUEST, message=why)
            case _ if outcomes.unanswered:
                return ServerLost(self._sentence("gave no answer that can be read", outcomes.unanswered))
        self.close()
        if said == "no session":
            return ServerBusy(self._sentence("has forgotten this session", why))
        if said == "unreachable":
            return ServerBusy(self._sentence("can't be reached", why))
        if outcomes.is_too_long or self._status.is_too_long:
            return AnswerTooLong(self._sentence("has answered with too much", "more than can be read at once"))
        why = f"HTTP {outcomes.refused}" if outcomes.refused else why
        return ServerLost(self._sentence("was lost while the call was under way", why))

    async def _live(self) -> None:
        read_end, write_end = os.pipe()
        with os.fdopen(write_end, "wb", 0) as errors:
            reading = asyncio.ensure_future(self._read_errors(read_end))
            try:
                transport: Any = streams(self._server, self._secrets, errors, self._status)
                # Newer versions of the protocol know no sessions of a server: what keeps state is met as before them.
                mode = "legacy" if self._server.is_stateful else "auto"
                client = Client(
                    transport,
                    message_handler=self._heard,
                    elicitation_callback=self.meanwhile.answer,
                    sampling_callback=self.meanwhile.sample if self._server.samples else None,
                    logging_callback=self._log.told,
                    log_level=WANTED,
                    cache=None,
                    mode=mode,
                )
                async with client:
                    if not self._ready.done():
                        self._ready.set_result(client)
                    await self._closing.wait()
            except ServerUnavailable as error:
                self._fail(error)
            except BaseException as error:  # noqa: BLE001  whatever a server does: it ends its connection alone
                self._fail(self._unopened(in_words(error)))
            finally:
                self.is_lost = True
        with contextlib.suppress(asyncio.CancelledError):
            reading.cancel()
            await asyncio.wait((reading,))

    def _fail(self, error: ServerFailure) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # looked at: nobody may wait for it any more

    async def _heard(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.offers_others = True
            self._on_change()

    async def _read_errors(self, descriptor: int) -> None:
        reader = asyncio.StreamReader(limit=TAIL_BYTES)
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        try:
            while piece := await reader.read(TAIL_BYTES):
                self._log.heard(piece)
                self._tail += piece
                del self._tail[:-TAIL_BYTES]
                await asyncio.sleep(0.001)  # a flood must not take the loop from other sessions
        finally:
            self._log.end()
            pipe.close()

    def _unopened(self, why: str) -> ServerFailure:
        if self._status.is_put_off:
            return self._busy(self._status.refused)
        if self._status.is_too_long:
            why = "it has answered with more than can be read at once"
        return self._unreachable(self._status.unanswered or why)

    def _busy(self, status: int) -> ServerBusy:
        return ServerBusy(self._sentence("takes no calls now", f"HTTP {status}"))

    def _unreachable(self, why: str) -> ServerUnavailable:
        return ServerUnavailable(self._sentence("can't be reached", why))

    def _sentence(self, what: str, why: str) -> str:
        said = f"; it wrote: {tail[-500:]}" if (tail := self._tail.decode("utf-8", "replace").strip()) else ""
        text = f"the MCP server {self._server.name!r} {what}: {why[:500]}{said}"
        return harmless(self._secrets.masker.masked(text))
