"""OpenAI's Responses API in background mode, on a real port: an answer is made whether or not anybody listens.

Source: developers.openai.com, "Background mode", looked up on 2026-11-29: events are numbered, and a stream goes on
behind the number in `starting_after`.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.activities.models.wire import response_event

WORDS = ("Once ", "upon ", "a ", "time.")
USAGE = {"input_tokens": 900, "output_tokens": 4, "total_tokens": 904}


@dataclass
class KeepsAnswers:
    url: str = ""
    keeps_nothing: bool = False
    """As accounts with zero data retention."""
    cuts_after: int = 0
    """Events of the first stream, behind which its connection breaks; 0 = it does not."""
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    """The second half of each answer waits for it."""
    half_told: asyncio.Event = field(default_factory=asyncio.Event)
    made: list[dict[str, Any]] = field(default_factory=list)
    """The requests for new answers."""
    resumed: list[str] = field(default_factory=list)
    """Queries of the requests for those that were started."""
    cancelled: list[str] = field(default_factory=list)
    serving: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            self.serving.add(task)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split(" ", 2)
        length = next((int(x.split(":")[1]) for x in head.split("\r\n") if x.lower().startswith("content-length")), 0)
        body = json.loads(await reader.readexactly(length)) if length else {}
        try:
            if path.endswith("/cancel"):
                self.cancelled.append(path.split("/")[-2])
                await _answer(writer, 200, response_event("", status="cancelled")["response"])
            elif method == "GET":
                self.resumed.append(path.partition("?")[2])
                after = re.search(r"starting_after=(-?\d+)", path)
                await self._stream(writer, path.split("/")[-1].partition("?")[0], int(after[1]) if after else -1)
            elif self.keeps_nothing and body.get("background"):
                words = "Background mode is not supported for organizations with Zero Data Retention."
                await _answer(writer, 400, {"error": {"message": words, "type": "invalid_request_error"}})
            else:
                self.made.append(body)
                await self._stream(writer, f"resp_{len(self.made)}", -1, self.cuts_after)
        except ConnectionError:
            pass
        writer.close()

    async def _stream(self, writer: asyncio.StreamWriter, response: str, after: int, cut: int = 0) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for number, event in enumerate(_events(response)):
            if number == len(WORDS):
                self.half_told.set()
                await self.goes_on.wait()
            if number <= after:
                continue
            if cut and number == cut:
                return
            told = {**event, "sequence_number": number}
            writer.write(f"event: {event['type']}\ndata: {json.dumps(told)}\n\n".encode())
            await writer.drain()


def _events(response: str) -> list[dict[str, Any]]:
    item = {"type": "message", "id": "msg_9", "role": "assistant", "status": "in_progress", "content": []}
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_9"}
    done = {"status": "completed", "usage": USAGE, "id": response}
    return [
        response_event("response.created", id=response),
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({**delta, "delta": word} for word in WORDS),
        response_event("response.completed", **done),
    ]


async def _answer(writer: asyncio.StreamWriter, status: int, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()


@asynccontextmanager
async def keeping_answers() -> AsyncIterator[KeepsAnswers]:
    told = KeepsAnswers()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0, limit=1 << 24)
    told.url = "http://{}:{}/v1".format(*server.sockets[0].getsockname())
    async with server:
        try:
            yield told
        finally:
            told.goes_on.set()  # what is half told ends, or the test's loop could not be closed
            await asyncio.gather(*told.serving, return_exceptions=True)
