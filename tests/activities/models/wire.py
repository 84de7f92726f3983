"""A provider of the tests' own on a real port: it keeps the bytes that came and sends exactly the bytes it is told.

For what aimock can't show (it keeps a normalised request) or do (a connection cut at a chosen byte).
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.activities.models.converse_wire import converse_says


@dataclass(frozen=True)
class Answer:
    """What to send for one request. Without `whole` the connection breaks off after the body."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    whole: bool = True
    then_wait: bool = False
    """Keep silent after the body until the caller hangs up."""
    chunked: bool = False
    """As AWS sends its streams: boto3 waits for the end of one whose length it is told."""


@dataclass
class Wire:
    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    """Sent in order, one per request."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    """When each came, in seconds of a clock that only runs on."""
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length")
        )
        self.heads.append(head)
        self.moments.append(time.monotonic())
        self.bodies.append(json.loads(await reader.readexactly(length)))
        answer = self.answers.pop(0)
        declared = len(answer.body) if answer.whole else len(answer.body) + 1000
        headers = {"content-type": "text/event-stream", "content-length": str(declared), **answer.headers}
        body = answer.body
        if answer.chunked:
            del headers["content-length"]
            headers["transfer-encoding"] = "chunked"
            body = chunked(body, whole=answer.whole)
        lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        if answer.then_wait:
            await reader.read()
            self.hung_up.set()
        writer.close()


@asynccontextmanager
async def on_a_port() -> AsyncIterator[Wire]:
    """One that is told nothing yet."""
    told = Wire()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    told.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server:
        yield told


def chunked(body: bytes, *, whole: bool) -> bytes:
    """As HTTP's chunked encoding has it; not whole: without its end."""
    return f"{len(body):x}\r\n".encode() + body + b"\r\n" + (b"0\r\n\r\n" if whole else b"")


def events(*payloads: dict[str, Any]) -> bytes:
    """Server-sent events, named by their `type` as Anthropic and the Responses API do."""
    return b"".join(
        f"event: {payload.get('type', 'message')}\ndata: {json.dumps(payload)}\n\n".encode() for payload in payloads
    )


def chunks(*payloads: dict[str, Any], done: bool = True) -> bytes:
    """Chat Completions' unnamed events, with the final mark unless `done` is false."""
    body = b"".join(f"data: {json.dumps(payload)}\n\n".encode() for payload in payloads)
    return body + (b"data: [DONE]\n\n" if done else b"")


def claude_says(text: str) -> bytes:
    return events(
        {"type": "message_start", "message": claude_message(input_tokens=11, output_tokens=1)},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def claude_message(**usage: int) -> dict[str, Any]:
    about = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude-from-the-wire"}
    return {**about, "stop_reason": None, "usage": usage}


def response_event(kind: str, **fields: Any) -> dict[str, Any]:
    about = {"id": "resp_1", "object": "response", "model": "gpt-from-the-wire", "output": [], "created_at": 1}
    return {"type": kind, "sequence_number": 1, "response": {**about, **fields}}


def response_says(text: str) -> bytes:
    item = {"type": "message", "id": "msg_9", "role": "assistant", "status": "in_progress", "content": []}
    usage = {"input_tokens": 21, "output_tokens": 5, "total_tokens": 26, "input_tokens_details": {"cached_tokens": 8}}
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_9"}
    return events(
        {"type": "response.output_item.added", "output_index": 0, "item": item, "sequence_number": 2},
        {**delta, "delta": text, "sequence_number": 3},
        response_event("response.completed", status="completed", usage=usage),
    )


def chat_chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "qwen-from-the-wire",
        "choices": [choice],
    }


def chat_says(text: str) -> bytes:
    return chunks(chat_chunk({"role": "assistant", "content": text}), chat_chunk({}, "stop"))


def google_chunk(*parts: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    candidate = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    told = {**candidate, "finishReason": reason} if reason else candidate
    return {"candidates": [told], "modelVersion": "gemini-from-the-wire", "responseId": "r1", **more}


def google_says(text: str) -> bytes:
    usage = {"promptTokenCount": 21, "candidatesTokenCount": 5, "totalTokenCount": 26}
    return chunks(
        google_chunk({"text": text}), google_chunk({"text": ""}, reason="STOP", usageMetadata=usage), done=False
    )


def cohere_events(*pieces: dict[str, Any], reason: str = "COMPLETE", **usage: Any) -> bytes:
    """Cohere's own: `pieces` of content or of calls, then the end."""
    counted = {
        "billed_units": {"input_tokens": 9, "output_tokens": 5},
        "tokens": {"input_tokens": 21, "output_tokens": 5},
    }
    started = {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}
    ended = {"finish_reason": reason, "usage": usage or counted}
    told = events(
        {"type": "message-start", "id": "m1", "delta": started},
        *({"index": 0, **piece} for piece in pieces),
        *([{"type": "message-end", "delta": ended}] if reason else []),
    )
    return told + (b"data: [DONE]\n\n" if reason else b"")


def cohere_piece(kind: str, **message: Any) -> dict[str, Any]:
    return {"type": kind, "delta": {"message": message}}


def cohere_says(text: str) -> bytes:
    return cohere_events(
        cohere_piece("content-start", content={"type": "text", "text": ""}),
        cohere_piece("content-delta", content={"text": text}),
        {"type": "content-end"},
    )


def cohere_calls(*calls: tuple[str, str, dict[str, Any]]) -> bytes:
    """Of a call: its id, its tool, its arguments."""
    pieces = [cohere_piece("tool-plan-delta", tool_plan="I will look.")]
    for index, (call_id, name, arguments) in enumerate(calls):
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        function = {"function": {"arguments": json.dumps(arguments)}}
        pieces += [
            {"index": index, **cohere_piece("tool-call-start", tool_calls=call)},
            {"index": index, **cohere_piece("tool-call-delta", tool_calls=function)},
            {"index": index, "type": "tool-call-end"},
        ]
    return cohere_events(*pieces, reason="TOOL_CALL")


def says_of(provider: str, text: str) -> bytes:
    """An answer as the servers of this provider give it, by the prefix of models' names."""
    of_their_own = {
        "anthropic": claude_says,
        **dict.fromkeys(("openai", "xai"), response_says),
        **dict.fromkeys(("ai:google", "ai:google-vertex"), google_says),
        "ai:bedrock": converse_says,
        "ai:cohere": cohere_says,
    }
    return of_their_own.get(provider, chat_says)(text)


def claude_calls(call_id: str, arguments: str, name: str = "fetch") -> bytes:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return events(
        {"type": "message_start", "message": claude_message(input_tokens=11, output_tokens=1)},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": arguments}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def gpt_calls(call_id: str, arguments: str, name: str = "fetch") -> bytes:
    function = {"name": name, "arguments": arguments}
    call = {"index": 0, "id": call_id, "type": "function", "function": function}
    return chunks(chat_chunk({"role": "assistant", "tool_calls": [call]}), chat_chunk({}, "tool_calls"))


def claude_turn(thought: tuple[str, str] | None, text: str, *calls: tuple[str, str, dict[str, Any]] | None) -> bytes:
    """A signed thought, then calls or words. Of a call: its id, its tool, its arguments."""
    made = [call for call in calls if call is not None]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if thought is not None:
        started = {"type": "thinking", "thinking": "", "signature": ""}
        signed = {"type": "signature_delta", "signature": thought[1]}
        blocks.append((started, [{"type": "thinking_delta", "thinking": thought[0]}, signed]))
    for call in made:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[2])}
        blocks.append(({"type": "tool_use", "id": call[0], "name": call[1], "input": {}}, [delta]))
    if not made:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]))
    told: list[dict[str, Any]] = []
    for index, (block, deltas) in enumerate(blocks):
        told.append({"type": "content_block_start", "index": index, "content_block": block})
        told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        told.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": "tool_use" if made else "end_turn"}
    return events(
        {"type": "message_start", "message": claude_message(input_tokens=11, output_tokens=1)},
        *told,
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def response_turn(
    encrypted: str,
    text: str,
    *calls: tuple[str, str, dict[str, Any]] | None,
    reasoning_id: str = "rs_1",
    summary: Sequence[str] = (),
) -> bytes:
    """Encrypted reasoning with its summary, then calls or words."""
    told = [{"type": "summary_text", "text": part} for part in summary]
    reasoning = {"type": "reasoning", "id": reasoning_id, "summary": told, "encrypted_content": encrypted}
    item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": text, "annotations": []}]
    made = [
        {
            "type": "function_call",
            "id": f"fc_{reasoning_id}_{place}",
            "call_id": call[0],
            "name": call[1],
            "arguments": json.dumps(call[2]),
        }
        for place, call in enumerate(calls)
        if call is not None
    ]
    done = {"type": "response.output_item.done", "sequence_number": 3}
    return events(
        *({**done, "output_index": at, "item": told} for at, told in enumerate([reasoning, *(made or [item])])),
        response_event("response.completed", status="completed"),
    )


def chat_calls(call_id: str, name: str, arguments: dict[str, Any]) -> bytes:
    return gpt_calls(call_id, json.dumps(arguments), name)


BEGINNINGS = {
    "anthropic:claude-haiku-4-5": claude_says("never ends").partition(b"event: content_block_stop")[0],
    "openai:gpt-4.1": response_says("never ends").partition(b"event: response.completed")[0],
    "openai-chat:qwen3": chat_says("never ends").partition(b"\n\n")[0] + b"\n\n",
}
"""By model: a stream that has shown all of its text and goes on for ever."""
