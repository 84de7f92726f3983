"""An interrupt behind every event of a job: one effect, a transcript that every provider takes, and nothing left alive.

The job streams an answer and reads, waits for a person, and runs a command for a minute whose processes ignore SIGTERM.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from temporalio.service import RPCError

from longhaul.agent.values.conversation.messages import problem
from longhaul.agent.values.permission import PermissionContext, PermissionRule
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.activities.models.rules import assert_taken_by_all
from tests.activities.models.wire import chat_chunk, chunks
from tests.e2e.processes import a_while, running_with
from tests.workflows.conftest import Stage
from tests.workflows.operations import until

pytestmark = pytest.mark.server

AT_ONCE = 6
STOP, STOPPED = "stop, and tell me why", "I have stopped."
TRUSTED = PermissionContext(rules=(PermissionRule(tool_name="Bash"),))


class Attentive:
    """A model that speaks slowly and answers what it hears: by the number of results, and when it is told to stop."""

    def __init__(self, command: str) -> None:
        self._command = command

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        heard = json.loads(await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0])))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        with suppress(ConnectionError):  # who listened was interrupted
            await self._speak(writer, heard["messages"])
        writer.close()

    async def _speak(self, writer: asyncio.StreamWriter, heard: list[dict[str, Any]]) -> None:
        if STOP in str(heard[-1]["content"]):
            writer.write(chunks(chat_chunk({"content": STOPPED}), chat_chunk({}, "stop")))
        else:
            for word in ("I ", "see ", "to ", "it."):
                writer.write(chunks(chat_chunk({"content": word}), done=False))
                await writer.drain()
                await asyncio.sleep(0.05)
            results = sum(message["role"] == "tool" for message in heard)
            writer.write(self._call(results) + chunks(chat_chunk({}, "tool_calls")))
        await writer.drain()

    def _call(self, results: int) -> bytes:
        name, arguments = (("fetch", {"page": 1}), ("send", {"to": "Ana"}), ("Bash", {"command": self._command}))[
            results
        ]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{results}", "type": "function", "function": function}
        return chunks(chat_chunk({"tool_calls": [call]}), done=False)


@asynccontextmanager
async def job(stage: Stage) -> AsyncIterator[tuple[Session, str]]:
    """A session that was not written to, and a text by which its command's processes are known."""
    mark = a_while(60)
    model = Attentive(f"trap '' TERM; sleep {mark} & sleep {mark} & wait; wait")
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    url = "http://{}:{}/v1".format(*server.sockets[0].getsockname())
    async with server:
        tools = ("fetch", "send", "Bash")
        yield (
            stage.session(model="openai-chat:m", model_config={"base_url": url}, tools=tools, permission=TRUSTED),
            mark,
        )


async def approve(session: Session) -> None:
    """As soon as it asks, and nothing else; until cancelled."""
    while True:
        with suppress(NoSession, Refused):
            for call in await session.pending():
                await session.confirm(call, allow=True)
        await asyncio.sleep(0.05)


async def runs(mark: str) -> None:
    async def seen() -> bool:
        return len(running_with(mark)) >= 4  # the supervisor, its shell, and two that sleep

    await until(seen)


async def event(stage: Stage, session: Session, number: int) -> None:
    """Wait for that event of its history."""
    while True:
        try:
            async for one in stage.handle(session).fetch_history_events(wait_new_event=True):
                if one.event_id >= number:
                    return
        except RPCError:
            await asyncio.sleep(0.005)  # nobody has started it yet


async def events_until_it_runs(stage: Stage) -> list[str]:
    """Of a job that nobody interrupts, up to its command: for each event the name of the activity that it schedules."""
    async with job(stage) as (session, mark):
        approving = asyncio.create_task(approve(session))
        await session.submit("go")
        await runs(mark)
        approving.cancel()
        events = [one async for one in stage.handle(session).fetch_history_events()]
        await session.interrupt()
    return [one.activity_task_scheduled_event_attributes.activity_type.name for one in events]


async def interrupted_behind(stage: Stage, number: int, *, early: bool) -> None:
    """0: while the command runs. Early, before the reply has started, there is nothing to interrupt, which is said."""
    async with job(stage) as (session, mark):
        approving = asyncio.create_task(approve(session))
        asking = asyncio.create_task(session.submit("go"))
        await (event(stage, session, number) if number else runs(mark))

        await stage.handle(session).signal("interrupt", {"message": STOP})
        reply = await asking
        # The approver's own operations may come too late, and are refused then.
        refused = [one["reason"] for one in (await session.status()).last_refusals if one["name"] == "interrupt"]
        if refused:
            assert early, refused
            await until(lambda: is_replying(session))
            await session.interrupt(STOP)
        final = await session.wait(reply)
        await until(lambda: is_idle(session))
        approving.cancel()

        assert len(refused) <= 1
        assert final.finished_reason == "interrupted"
        transcript = [message async for message in session.transcript()]
        texts = [message.get_text_content() for message in transcript]
        assert (texts.count(STOP), texts.count(STOPPED)) == (1, 1)
        assert texts[-2:] == [STOP, STOPPED]
        context = [message async for message in session.context()]
        assert problem(context) == ""
        assert_taken_by_all(context[:-1])
        assert running_with(mark) == []


async def is_replying(session: Session) -> bool:
    return bool((await session.status()).reply_id)


async def is_idle(session: Session) -> bool:
    return (await session.status()).status == "idle"


async def interrupt_all(stage: Stage, step: int) -> None:
    events = await events_until_it_runs(stage)
    started = events.index("longhaul.call_model") + 1
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with room:
            try:
                await interrupted_behind(stage, number, early=0 < number <= started)
            except AssertionError as error:
                error.add_note(f"interrupted behind event {number} of {len(events)}")
                raise

    await asyncio.gather(*(one(number) for number in range(0, len(events) + 1, step)))


async def test_an_interrupt_behind_some_events_stops_the_job_once(stage: Stage) -> None:
    await interrupt_all(stage, step=11)


@pytest.mark.proves("C3", "E7")
@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_an_interrupt_behind_any_event_stops_the_job_once(stage: Stage) -> None:
    await interrupt_all(stage, step=1)
