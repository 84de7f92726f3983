"""A session's events as server-sent events: what is recorded with its number as id, what is being made without one.

Nothing is buffered for a reader: the next events are asked for when the last ones were taken, so a slow reader costs
no memory. One that takes nothing for long is let go, and goes on later from the last id it has seen.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager

from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.reading.event_reader import Following, Until
from longhaul.starter.client.reading.queries import NoReply, NoSession
from longhaul.starter.serve.problems import Problem, problem_of, wrong
from longhaul.starter.serve.request_bodies import Reading
from longhaul.starter.serve.request_checks import LOOK_SECONDS, caller_of
from longhaul.starter.serve.requests import Call, Served, session_of

HEARTBEAT_SECONDS = 15.0
SLOWEST_SECONDS = 30.0
"""A reader that takes nothing for so long is let go."""
FIRST_SECONDS = 3.0
"""How long the first events may take before the answer begins without them: then it can't be a 404 any more."""
MOST_READERS = 50
"""Streams of one caller at a time."""
RETRY_MILLISECONDS = 1_000
HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back
)
LAST_EVENT_ID = "Last-Event-ID"

log = logging.getLogger(__name__)
Endings = Mapping["asyncio.Task[None]", str]
"""What ends an answer from outside, and the word for it."""


class TooSlow(Exception):
    """A reader that takes nothing: nothing can be told to it any more, and the answer stays visibly unfinished."""


class Events:
    """One answer that goes on until the reader leaves or may not read on, the session closes or the server ends."""

    def __init__(self, call: Call, following: Following | Until, start: int, may_read: Callable[[], bool]) -> None:
        self._served = call.served
        self._following = following
        self._reader = call.caller.name
        self._next = start
        self._may_read = may_read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises NoSession and Problem before the answer has started, and nothing after."""
        del scope
        async with aclosing(self._following):
            with counted(self._served, self._reader):
                ending = {
                    asyncio.create_task(gone(receive)): "gone",
                    asyncio.create_task(_set(self._served.draining)): "shutdown",
                    asyncio.create_task(_taken_out(self._may_read)): "unauthorized",
                }
                try:
                    await self._answer(_Writer(send), ending)
                finally:
                    for task in ending:
                        task.cancel()

    async def _answer(self, writer: "_Writer", ending: "Endings") -> None:
        step = asyncio.create_task(self._following.next())
        try:
            await asyncio.wait({step, *ending}, timeout=FIRST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if step.done() and (error := step.exception()) is not None:
                raise error
            await writer.begin()
            while (why := await self._write_next(writer, step, ending)) is None:
                if step.done():
                    step = asyncio.create_task(self._following.next())
            await writer.end(why, self._next)
        except TooSlow as slow:
            log.info("%s no longer reads events; closing its stream: %s", self._reader, slow)
        finally:
            step.cancel()

    async def _write_next(
        self, writer: "_Writer", step: "asyncio.Task[list[AgentEvent]]", ending: "Endings"
    ) -> str | None:
        """Write what comes next, or a sign of life; why it was the last, or None."""
        await asyncio.wait({step, *ending}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task, why in ending.items():
            if task.done():
                return why
        if not step.done():
            await writer.beat()
            return None
        if (error := step.exception()) is not None:
            closed = isinstance(error, NoSession) and not isinstance(error, NoReply)
            return "closed" if closed else problem_of(_expected_error(error)).detail
        if not self._may_read():
            return "unauthorized"
        for event in step.result():
            await writer.write(framed(event))
            self._next = max(self._next, event.seq + 1)
        if isinstance(self._following, Until) and self._following.over:
            return self._following.over
        await writer.beat_sometimes()
        return None


@contextmanager
def counted(served: Served, reader: str) -> Iterator[None]:
    """While somebody reads. Raises Problem for one stream more than they may have."""
    if served.readers[reader] >= MOST_READERS:
        raise Problem(
            "too-many",
            f"{MOST_READERS} event streams of {reader!r} are open here; close one of them",
            headers={"Retry-After": "5"},
        )
    served.readers[reader] += 1
    try:
        yield
    finally:
        served.readers[reader] -= 1


class _Writer:
    """Frames on their way to one reader. Methods raise TooSlow."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._wrote_at = 0.0

    async def begin(self) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
        await self.write(f"retry: {RETRY_MILLISECONDS}\n\n".encode())

    async def write(self, frame: bytes, *, more: bool = True) -> None:
        try:
            async with asyncio.timeout(SLOWEST_SECONDS):
                await self._send({"type": "http.response.body", "body": frame, "more_body": more})
        except TimeoutError:
            raise TooSlow(f"nothing was taken for {SLOWEST_SECONDS:g} s") from None
        self._wrote_at = asyncio.get_running_loop().time()

    async def beat(self) -> None:
        """A comment, by which proxies and readers know that the stream lives."""
        await self.write(b":\n\n")

    async def beat_sometimes(self) -> None:
        if asyncio.get_running_loop().time() - self._wrote_at >= HEARTBEAT_SECONDS:
            await self.beat()

    async def end(self, why: str, following: int) -> None:
        """The last frame says why, and where to go on."""
        data = json.dumps({"why": why, "next": following})
        await self.write(f"event: end\ndata: {data}\n\n".encode(), more=False)


def framed(event: AgentEvent) -> bytes:
    """One event on the wire. Its JSON has no line breaks outside of escapes, so that data is one line."""
    number = f"id: {event.seq}\n" if event.seq else ""
    return f"{number}data: {to_json(event.outside()).decode()}\n\n".encode()


async def events(call: Call) -> Events:
    query: Reading = call.query
    start = first_wanted(call.headers.get(LAST_EVENT_ID), query.start)
    session, live = session_of(call), query.deltas
    following = session.until(query.until, start, live=live) if query.until else session.following(start, live=live)
    return Events(call, following, start, _still_let_in(call))


def _still_let_in(call: Call) -> Callable[[], bool]:
    """Whether the same token still stands for the same caller, with the same scopes."""

    def look() -> bool:
        try:
            return caller_of(call.served, call.headers.get("authorization"), "read") == call.caller
        except Problem:
            return False

    return look


def first_wanted(last_seen: str | None, start: int) -> int:
    """The number after the last one that was seen, else as asked. Raises Problem."""
    if not last_seen:
        return start
    if not (last_seen.isascii() and last_seen.isdigit() and len(last_seen) < 10):
        raise wrong(LAST_EVENT_ID, last_seen, "send the `id` of an event, a whole number")
    return int(last_seen) + 1


async def gone(receive: Receive) -> None:
    """Until the reader has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _taken_out(may_read: Callable[[], bool]) -> None:
    while may_read():  # noqa: ASYNC110  a file tells nobody that it has changed
        await asyncio.sleep(LOOK_SECONDS)


async def _set(event: asyncio.Event) -> None:
    await event.wait()


def _expected_error(error: BaseException) -> Exception:
    if not isinstance(error, Exception):
        raise error
    return error
