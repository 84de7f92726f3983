"""Answers of Bedrock's ConverseStream, in the frames of AWS's event streams, as bytes on the wire.

Sources, 2026-11-26: docs.aws.amazon.com, "ConverseStream", "Event stream encoding".
"""

import binascii
import json
import struct
from typing import Any
from urllib.parse import unquote

STREAM = "/converse-stream"


def frame(payload: dict[str, Any], kind: str, message: str = "event") -> bytes:
    """One message; `kind` is that of an event or, where `message` says so, of an exception."""
    about = {f":{message}-type": kind, ":content-type": "application/json", ":message-type": message}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in about.items()
    )
    data = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(data), len(headers))
    framed = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + data
    return framed + struct.pack(">I", binascii.crc32(framed))


def failing(kind: str, message: str) -> bytes:
    """In the midst of a stream, as `throttlingException`."""
    return frame({"message": message}, kind, "exception")


def converse_turn(
    thought: tuple[str, str] | None,
    text: str,
    *calls: tuple[str, str, dict[str, Any]],
    reason: str = "",
    usage: dict[str, int] | None = None,
) -> bytes:
    """A thought and its signature, if it has one, then words, then calls: each with its id, tool and arguments.
    `reason`: why it stopped; empty: as one stops that says and calls just that."""
    told = [frame({"role": "assistant"}, "messageStart")]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if thought is not None:
        signed = [{"reasoningContent": {"signature": thought[1]}}] if thought[1] else []
        blocks.append(({}, [{"reasoningContent": {"text": thought[0]}}, *signed]))
    if text:
        blocks.append(({}, [{"text": text}]))
    for call_id, name, arguments in calls:
        blocks.append((
            {"toolUse": {"toolUseId": call_id, "name": name}},
            [{"toolUse": {"input": json.dumps(arguments)}}],
        ))  # fmt: skip
    for index, (start, deltas) in enumerate(blocks):
        if start:
            told.append(frame({"contentBlockIndex": index, "start": start}, "contentBlockStart"))
        told += [frame({"contentBlockIndex": index, "delta": delta}, "contentBlockDelta") for delta in deltas]
        told.append(frame({"contentBlockIndex": index}, "contentBlockStop"))
    counted = usage or {"inputTokens": 21, "outputTokens": 5, "totalTokens": 26}
    stop = reason or ("tool_use" if calls else "end_turn")
    told.append(frame({"stopReason": stop}, "messageStop"))
    told.append(frame({"usage": counted, "metrics": {"latencyMs": 7}}, "metadata"))
    return b"".join(told)


def converse_says(text: str) -> bytes:
    return converse_turn(None, text)


def converse_begins(text: str) -> bytes:
    """Up to its words: it goes on for ever, or breaks off."""
    delta = {"contentBlockIndex": 0, "delta": {"text": text}}
    return frame({"role": "assistant"}, "messageStart") + frame(delta, "contentBlockDelta")


def model_in(path: str) -> str:
    """Of a request's path, which may be a whole address."""
    return unquote(path.removesuffix(STREAM).rpartition("/model/")[2])


def told_as_others(body: dict[str, Any], path: str) -> None:
    """Puts model, tools and the choice of one where other servers have them too; of another API's request nothing."""
    if not path.endswith(STREAM):
        return
    body["model"] = model_in(path)
    config = body.get("toolConfig", {})
    specs = [tool["toolSpec"] for tool in config.get("tools", ()) if "toolSpec" in tool]
    if specs:
        body["tools"] = [{**spec, "input_schema": spec["inputSchema"]["json"]} for spec in specs]
    if named := config.get("toolChoice", {}).get("tool"):
        body["tool_choice"] = {"type": "tool", "name": named["name"]}
    elif "any" in config.get("toolChoice", {}) and len(specs) == 1:
        body["tool_choice"] = {"type": "tool", "name": specs[0]["name"]}
