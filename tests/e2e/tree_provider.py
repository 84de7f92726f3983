"""A provider for trees of agents: it tells from each request what comes next, and keeps a journal of what it billed.

The model of each agent has a path of its own. A lead gives tasks to five foremen, each foreman to three hands; four of
the foremen then sign something, and each hand sends something. What came before follows from the request alone.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

FOREMEN = ("f1", "f2", "f3", "f4", "f5")
SIGNING = FOREMEN[:4]
HANDS = tuple(f"{foreman}h{number}" for foreman in FOREMEN for number in (1, 2, 3))
INPUT_TOKENS, OUTPUT_TOKENS = 100, 10
"""Of each answer, whatever it says."""
TURNS = 2 + 3 * len(SIGNING) + 2 * (len(FOREMEN) - len(SIGNING)) + 2 * len(HANDS)
"""Answers that it takes where nothing is lost."""


@dataclass
class TreeProvider:
    url: str = ""
    billed: Counter[str] = field(default_factory=Counter[str])
    """Answers that were started, by whose task and which turn."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever asked was killed
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
        messages = json.loads(await reader.readexactly(length))["messages"]
        task = _text(next(each for each in messages if each["role"] == "user"))
        turn = sum(each["role"] == "assistant" for each in messages)
        self.billed[f"{task} {turn}"] += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(_said(task, turn))
        await writer.drain()


@asynccontextmanager
async def tree_provider() -> AsyncIterator[TreeProvider]:
    provider = TreeProvider()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.url = "http://{}:{}/v1".format(*server.sockets[0].getsockname())
    async with server:
        yield provider


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return str(content if isinstance(content, str) else content[0]["text"]).strip()


def _said(task: str, turn: int) -> bytes:
    """As chunks of Chat Completions."""
    calls = _calls(task, turn)
    delta: dict[str, Any] = {"tool_calls": calls} if calls else {"content": f"{task} is done."}
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    choices = [
        [{"index": 0, "delta": delta, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}],
    ]
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [*({**about, "choices": each} for each in choices), {**about, "choices": [], "usage": usage}]
    return b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in chunks) + b"data: [DONE]\n\n"


def _calls(task: str, turn: int) -> list[dict[str, Any]]:
    if task == "lead":
        return [_gives(one, "foreman") for one in FOREMEN][: len(FOREMEN) * (turn == 0)]
    if task in FOREMEN and turn == 0:
        return [_gives(one, "hand") for one in HANDS if one.startswith(task)]
    if task in SIGNING and turn == 1:
        return [_call(task, "sign", name=task)]
    if task in HANDS and turn == 0:
        return [_call(task, "send", name=task, takes_seconds=0.2)]
    return []


def _gives(task: str, agent: str) -> dict[str, Any]:
    return {**_call(task, "Agent", agent=agent, task=task), "index": int(task[-1]) - 1}


def _call(task: str, tool: str, /, **given: object) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(given)}
    return {"index": 0, "id": f"{tool}-{task}", "type": "function", "function": function}
