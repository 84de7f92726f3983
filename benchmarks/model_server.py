"""A model over HTTP that notes when it is asked, and can hold a question. Each kind of session has its own path."""

import asyncio
import json
import time
from dataclasses import dataclass, field

_ABOUT = '"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"'


@dataclass
class ModelServer:
    """Speaks Chat Completions. `/idle` answers, `/model` answers when it speaks, `/tool` calls a tool first."""

    gate: str
    """What the tool is called with."""
    port: int = 0
    speaks: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is not set, questions at `/model` are held; they are broken off when it is."""
    asked: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """By path, on the monotonic clock."""

    async def start(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def is_asked(self, path: str, since: float) -> float:
        """Wait for a question after `since`; when it came."""
        while True:
            for moment in self.asked.get(path, []):
                if moment > since:
                    return moment
            await asyncio.sleep(0.005)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever asked was killed
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1].split("/")[1]
        self.asked.setdefault(path, []).append(time.monotonic())
        held = path == "model" and not self.speaks.is_set()
        length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        await writer.drain()
        if held:
            await self.speaks.wait()
            return
        first = body["messages"][-1]["role"] == "user"
        writer.write(self._calls() if path == "tool" and first else _says("done"))
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()

    def _calls(self) -> bytes:
        function = {"name": "wait_at", "arguments": json.dumps({"gate": self.gate})}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        return _chunk({"tool_calls": [call]}, None) + _chunk({}, "tool_calls")


def _says(text: str) -> bytes:
    return _chunk({"content": text}, None) + _chunk({}, "stop")


def _chunk(delta: dict[str, object], reason: str | None) -> bytes:
    choice = json.dumps({"index": 0, "delta": delta, "finish_reason": reason})
    return f'data: {{{_ABOUT}, "choices": [{choice}]}}\n\n'.encode()
