"""Tools for crash tests: each writes what it does into its workspace's ledger, and stops at a point that a test holds.

Points of a call with `{"name": "red"}`: `red.examine` (inside the model call), `red.before` and `red.after` its
effect. A point is held while the file `hold/POINT` exists.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from longhaul.activities.attempt.heartbeat import note, noted
from longhaul.activities.tool import Place, Tool, ToolCall, ToolOutput
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import TextBlock
from longhaul.agent.values.conversation.tools import Effect

LEDGER = "ledger.jsonl"
HOLD = "hold"
POLL_SECONDS = 0.02

NOTED_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "takes_seconds": {"type": "number", "description": "Half of it before the effect, half after."},
    },
    "required": ["name"],
}
ODD_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"how": {"type": "string"}}, "required": ["how"]}


def write_down(root: Path, **line: Any) -> None:
    """Append one line in one piece: what stands here was done, whoever was killed right after."""
    descriptor = os.open(root / LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


async def pass_by(root: Path, point: str) -> None:
    """Wait while the point is held; say so in the ledger."""
    gate = root / HOLD / point
    if not gate.exists():
        return
    write_down(root, what="held", point=point)
    while gate.exists():  # noqa: ASYNC110  what is waited for is a file that another process removes
        await asyncio.sleep(POLL_SECONDS)


class Noted(Tool):
    """Its effect is a line in the ledger."""

    description = "Writes a line."
    input_schema = NOTED_SCHEMA

    def __init__(self, name: str, effect: Effect, *, concurrency_safe: bool, quick: bool = False) -> None:
        self.name = name
        self.effect = effect
        self.quick = quick
        self.concurrency_safe = concurrency_safe

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        await pass_by(place.root, f"{arguments['name']}.examine")
        return CallAnalysis(cwd=str(place.cwd))

    async def run(self, call: ToolCall) -> ToolOutput:
        root, name = call.place.root, call.arguments["name"]
        write_down(root, what="began", name=name, call=call.id, attempt=call.attempt, worker=os.getpid())
        half = call.arguments.get("takes_seconds", 0) / 2
        await asyncio.sleep(half)
        await pass_by(root, f"{name}.before")
        write_down(root, what="effect", name=name, call=call.id, attempt=call.attempt, worker=os.getpid())
        await asyncio.sleep(half)
        await pass_by(root, f"{name}.after")
        return ToolOutput(f"{name} is written")


class Odd(Tool):
    """Does its effect once, and then what no tool should."""

    name = "odd"
    description = "Misbehaves."
    input_schema = ODD_SCHEMA
    effect = Effect.ONCE
    timeout_seconds = 1.0

    async def run(self, call: ToolCall) -> ToolOutput:
        write_down(call.place.root, what="effect", name="odd", attempt=call.attempt)
        match call.arguments["how"]:
            case "leaves the process":
                sys.exit("odd leaves")
            case "cancels itself":
                raise asyncio.CancelledError
            case "runs into a timeout of its own":
                raise TimeoutError("nobody answers")
            case "takes too long":
                await asyncio.to_thread(time.sleep, 1.5)
                return ToolOutput("too late")
            case "says too much":
                return ToolOutput(tuple(TextBlock(text="z" * 290_000) for _ in range(20)))
            case _:
                return ToolOutput("done", metadata={"notes": "y" * 3_000_000})


class Walk(Tool):
    """Goes three steps and notes each, then stands before a gate; goes on from the last one when it is cut short."""

    name = "walk"
    description = "Walks."
    input_schema = NOTED_SCHEMA
    effect = Effect.IDEMPOTENT

    async def run(self, call: ToolCall) -> ToolOutput:
        root, started = call.place.root, noted()
        write_down(root, what="walks from", step=started, attempt=call.attempt)
        for step in range(started or 0, 3):
            note(step + 1)
        await pass_by(root, f"{call.arguments['name']}.before")
        return ToolOutput(f"arrived at step {noted()}")


odd = Odd()
walk = Walk()
look = Noted("look", Effect.READ, concurrency_safe=True)
glance = Noted("glance", Effect.READ, concurrency_safe=True, quick=True)
put = Noted("put", Effect.IDEMPOTENT, concurrency_safe=True)
send = Noted("send", Effect.ONCE, concurrency_safe=True)
sign = Noted("sign", Effect.ONCE, concurrency_safe=False)
