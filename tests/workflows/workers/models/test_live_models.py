"""Streams of the three kinds of provider, cut at every event: what is shown is folded, and equals what is recorded."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.transcript import ReplyReducer
from longhaul.starter.client.reading.live_stream import LOST, RESTARTED
from tests.activities.models.wire import (
    chat_chunk,
    chat_says,
    chunks,
    claude_message,
    claude_says,
    events,
    response_event,
    response_says,
)
from tests.workflows.conftest import Stage

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]

RESULT_MARKS = (b"tool_result", b"function_call_output", b'"role":"tool"', b'"role": "tool"')
"""What tells a request that brings the call's result from one that asks the same again."""
LONGEST_WAIT_SECONDS = 20.0
ARGUMENTS = ('{"page"', ': 7, "chars"', ": 40}")


def claude() -> list[bytes]:
    def delta(index: int, kind: str, **fields: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}

    def start(index: int, **block: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    told = [
        {"type": "message_start", "message": claude_message(input_tokens=11, output_tokens=1)},
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Let me "),
        delta(0, "thinking_delta", thinking="look."),
        delta(0, "signature_delta", signature="s-77"),
        start(1, type="text", text=""),
        delta(1, "text_delta", text="I read "),
        delta(1, "text_delta", text="page 7."),
        start(2, type="tool_use", id="toolu_7", name="fetch", input={}),
        *(delta(2, "input_json_delta", partial_json=piece) for piece in ARGUMENTS),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    return [events(each) for each in told]


def chat() -> list[bytes]:
    def call(**fields: Any) -> dict[str, Any]:
        return chat_chunk({"tool_calls": [{"index": 0, **fields}]})

    told = [
        chat_chunk({"role": "assistant", "reasoning_content": "Let me "}),
        chat_chunk({"reasoning_content": "look."}),
        chat_chunk({"content": "I read "}),
        chat_chunk({"content": "page 7."}),
        call(id="call_7", type="function", function={"name": "fetch", "arguments": ""}),
        *(call(function={"arguments": piece}) for piece in ARGUMENTS),
    ]
    return [chunks(each, done=False) for each in told] + [chunks(chat_chunk({}, "tool_calls"))]


def responses() -> list[bytes]:
    says = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m"}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []}
    call = {"type": "function_call", "id": "f", "call_id": "call_7", "name": "fetch", "arguments": ""}
    writes = {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "f"}
    told = [
        {"type": "response.output_item.added", "output_index": 0, "item": item, "sequence_number": 1},
        {**says, "delta": "I read ", "sequence_number": 2},
        {**says, "delta": "page 7.", "sequence_number": 3},
        {"type": "response.output_item.added", "output_index": 1, "item": call, "sequence_number": 4},
        *({**writes, "delta": piece, "sequence_number": 5} for piece in ARGUMENTS),
        response_event("response.completed", status="completed"),
    ]
    return [events(each) for each in told]


KINDS = {
    "anthropic:claude-haiku-4-5": (claude(), claude_says("Read.")),
    "openai-chat:gpt-4o": (chat(), chat_says("Read.")),
    "openai:gpt-5": (responses(), response_says("Read.")),
}


@dataclass
class Torn:
    """A provider whose first answer breaks off after so many events, and whose second waits until that was told."""

    pieces: list[bytes]
    cut: int
    last: bytes
    told: asyncio.Event = field(default_factory=asyncio.Event)
    requests: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        body = await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n")
        writer.write(b"transfer-encoding: chunked\r\n\r\n")
        self.requests += 1
        if self.requests == 2:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.told.wait(), LONGEST_WAIT_SECONDS)
        sent = self.pieces[: self.cut] if self.requests == 1 else self.pieces
        if any(mark in body for mark in RESULT_MARKS):
            sent = [self.last]
        for piece in sent:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0.005)
        if self.requests > 1:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        writer.close()


@asynccontextmanager
async def served(torn: Torn) -> AsyncIterator[str]:
    server = await asyncio.start_server(torn.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.close()


async def told_by(stage: Stage, model: str, cut: int) -> None:
    """One session whose first model call is cut there."""
    pieces, last = KINDS[model]
    torn = Torn(pieces, cut, last)
    async with served(torn) as url:
        base_url = url if model.startswith("anthropic") else f"{url}/v1"
        session = stage.session(model=model, tools=["fetch"], model_config={"base_url": base_url})
        seen: list[AgentEvent] = []
        folded = ReplyReducer()
        async for event in session.reply_stream("Read page 7"):
            seen.append(event)
            folded.take(event)
            if event.name == RESTARTED:
                assert folded.message().content == ()
                torn.told.set()
        whole = await session.wait(seen[0].reply_id)

    where = f"{model} cut after {cut} of {len(pieces)}"
    assert whole.error is None, where
    assert folded.message() == whole, where
    # A busy machine may hold an attempt up until there is one more, or marks until they are given up, which is told.
    names = [event.name for event in seen if event.type == "CUSTOM"]
    attempts = {event.live.attempt for event in seen if event.live}
    assert names, where
    assert set(names) <= {RESTARTED, LOST}, where
    assert LOST in names or names == [RESTARTED] * (len(attempts) - 1), where
    recorded = [event.seq for event in seen if event.seq]
    assert recorded == list(range(1, len(recorded) + 1)), where
    first = next(block for block in whole.content if isinstance(block, ToolCallBlock))
    arguments = json.loads(first.input)
    assert (first.name, arguments) == ("fetch", {"page": 7, "chars": 40}), where
    again = [event for event in seen if event.live and event.live.attempt == 2]
    shown = "".join(event.delta for event in again if event.type == "TEXT_BLOCK_DELTA")
    assert "I read page 7.".startswith(shown), where


@pytest.mark.proves("X6")
@pytest.mark.parametrize("model", list(KINDS))
async def test_a_stream_cut_after_any_event_is_told_and_replaced(stage: Stage, model: str) -> None:
    """Also one that is cut before its first event; the last event alone makes an answer whole."""
    cuts = range(len(KINDS[model][0]) - 1)

    async with asyncio.TaskGroup() as sessions:
        for cut in cuts:
            sessions.create_task(told_by(stage, model, cut))
