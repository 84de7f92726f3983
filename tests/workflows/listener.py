"""A model on a real port that speaks Chat Completions, answers as it is told and keeps what it heard last."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

Body = dict[str, Any]
Delta = dict[str, Any]


class Listener:
    """`answer(n)` is the delta of the n-th reply; the last request's body stays in `heard`."""

    def __init__(self, answer: Callable[[int], Delta]) -> None:
        self._answer = answer
        self.url = ""
        self.calls = 0
        self.heard: Body = {}

    @property
    def config(self) -> dict[str, Any]:
        """Settings of an agent that is to call this model as `openai-chat:listener`."""
        return {"model": "openai-chat:listener", "model_config": {"base_url": f"{self.url}/v1"}}

    def texts(self) -> list[str]:
        """What the model heard last: the text of each message, or the arguments of its calls."""
        return [_text(message) for message in self.heard["messages"] if message["role"] != "system"]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length"))
        self.heard = json.loads(await reader.readexactly(int(length)))
        delta = self._answer(self.calls)
        self.calls += 1
        body = b"".join(f"data: {data}\n\n".encode() for data in _chunks(delta))
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n".encode())
        writer.write(b"connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def listening(answer: Callable[[int], Delta]) -> AsyncIterator[Listener]:
    """A listener, for as long as the block runs. Its model's name is `openai-chat:` and anything."""
    listener = Listener(answer)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0, limit=2**24)
    listener.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server:
        yield listener


def says(text: str) -> Delta:
    return {"role": "assistant", "content": text}


def asks_for(name: str, call_id: str, /, **arguments: Any) -> Delta:
    call = {
        "index": 0,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return {"role": "assistant", "tool_calls": [call]}


def _chunks(delta: Delta) -> list[str]:
    about = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "listener"}
    reason = "tool_calls" if "tool_calls" in delta else "stop"
    first = {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    usage = {**about, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}}
    return [json.dumps(first), json.dumps(end), json.dumps(usage), "[DONE]"]


def _text(message: Body) -> str:
    if message.get("tool_calls"):
        return " ".join(call["function"]["arguments"] for call in message["tool_calls"])
    content = message["content"]
    return content if isinstance(content, str) else " ".join(part["text"] for part in content)
