"""Many sessions at once on one worker: each hears, reads, streams and is hooked for itself alone."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.permission import PermissionContext, PermissionMode
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.transcript import ReplyReducer
from tests.activities.models.sample_requests import keys_for
from tests.activities.models.wire import chat_chunk, chunks
from tests.workflows.conftest import TOOLS, UNWATCHED, Stage

pytestmark = pytest.mark.server

HOOK = "tests.workflows.prompt_hooks:name_session"
MIDDLEWARES = "tests.workflows.middlewares"
MARK = re.compile(r"mark-\d+")
TRUSTED = PermissionContext(mode=PermissionMode.BYPASS)


def marks_in(what: object) -> set[str]:
    return set(MARK.findall(str(what)))


class Echo:
    """One model for all: writes the mark that it hears into a file, reads it back, asks for whom it works, says it."""

    def __init__(self) -> None:
        self.mixed: list[set[str]] = []
        """Marks of requests that held not exactly one."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        heard = json.loads(await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0])))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        with suppress(ConnectionError):
            for piece in self._pieces(heard["messages"]):
                writer.write(chunks(piece, done=False))
                await writer.drain()
                await asyncio.sleep(0.04)
        writer.close()

    def _pieces(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len(marks_in(messages)) != 1 or not marks_in(messages[0]):
            self.mixed.append(marks_in(messages))
        (mark,) = marks_in([message for message in messages if message["role"] == "user"])
        calls: tuple[tuple[str, dict[str, str]], ...]
        calls = (("Write", {"content": mark}), ("Read", {}), ("whoami", {"about": "this"}))
        results = sum(message["role"] == "tool" for message in messages)
        if results == len(calls):
            heard = " ".join(str(message["content"]) for message in messages if message["role"] == "tool")
            return [chat_chunk({"content": f"{word} "}) for word in ("I", "heard", heard)] + [chat_chunk({}, "stop")]
        name, arguments = calls[results]
        where = {} if name == "whoami" else {"file_path": "note.txt"}
        function = {"name": name, "arguments": json.dumps({**arguments, **where})}
        call = {"index": 0, "id": f"call_{results}", "type": "function", "function": function}
        return [chat_chunk({"content": f"{mark} "}), chat_chunk({"tool_calls": [call]}), chat_chunk({}, "tool_calls")]


@asynccontextmanager
async def echoing() -> AsyncIterator[tuple[Echo, str]]:
    model = Echo()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0, backlog=200)
    async with server:
        yield model, "http://{}:{}/v1".format(*server.sockets[0].getsockname())


async def lived(stage: Stage, url: str, number: int, workspaces: Path) -> tuple[int, set[str]]:
    """One session; how many live events it told, and all marks that it told of."""
    spec = AgentSpec.model_validate(
        {
            "name": "echo",
            "model": "openai-chat:m",
            "model_config": {"base_url": url},
            "tools": ("Write", "Read", "whoami"),
            "permission": TRUSTED,
            "stuck": UNWATCHED,
        }
    )
    session = stage.app.session(f"mark-{number}", user=f"user mark-{number}", agent=spec)
    events: list[AgentEvent] = []
    folded = ReplyReducer()
    async for event in session.reply_stream(f"I am mark-{number}", context={"ticket": f"mark-{number}"}):
        events.append(event)
        folded.take(event)
    root = Path((await session.status()).workspace_root)
    assert workspaces in root.parents
    assert (root / "note.txt").read_text() == f"mark-{number}"
    message = folded.message()
    assert message == await session.wait(events[0].reply_id)
    assert f"user mark-{number} ticket mark-{number}" in message.get_text_content()
    transcript = [told async for told in session.transcript()]
    live = sum(bool(event.live) for event in events)
    return live, marks_in([event.model_dump_json() for event in events]) | marks_in(transcript)


@pytest.mark.proves("E1")
@pytest.mark.parametrize("sessions", [8, pytest.param(100, marks=pytest.mark.chaos)])
async def test_no_session_hears_anything_of_another(unserved: Stage, sessions: int) -> None:
    unserved.settings.hooks = HOOK
    unserved.settings.tools = f"{TOOLS},{MIDDLEWARES}"
    async with echoing() as (model, url), unserved.another_worker():
        unserved.places += keys_for(url)
        told = await asyncio.gather(
            *(lived(unserved, url, number, unserved.settings.data_dir) for number in range(sessions))
        )

    assert model.mixed == []
    assert [marks for _, marks in told] == [{f"mark-{number}"} for number in range(sessions)]
    assert sum(live > 0 for live, _ in told) > sessions / 4  # a busy machine hears some of it recorded first
