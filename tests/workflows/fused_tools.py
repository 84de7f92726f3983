"""Tools for reads within a session's task: LONGHAUL_TOOLS=tests.workflows.fused_tools."""

import asyncio
import os
import signal
from pathlib import Path

from longhaul.activities.attempt.secrets import secret
from longhaul.activities.middlewares.middleware import Middleware, RuntimeContext, RunTool, ToolUse
from longhaul.activities.tool import ToolOutput
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect
from tests.workflows.tools import page_text


@tool(effect=Effect.READ, read_only=True, concurrency_safe=True, quick=True)
async def peek(page: int, chars: int = 40) -> str:
    """Return that page."""
    return page_text(page, chars)


@tool(effect=Effect.READ, read_only=True, concurrency_safe=True, quick=True)
async def linger(path: str, times: int = 1) -> str:
    """Write down that it has started, and never come back so many times."""
    if started(Path(path)) <= times:
        await asyncio.sleep(3_600)
    return "read at last"


@tool(effect=Effect.READ, read_only=True, concurrency_safe=True, quick=True)
def fatal(path: str, times: int = 1) -> str:
    """Write down that it has started, and take the worker along so many times."""
    if started(Path(path)) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "read at last"


@tool(effect=Effect.READ, read_only=True, quick=True)
def peek_key() -> str:
    """Return the key of the gate, which nobody is to read."""
    return f"the key is {secret('GATE_KEY')}"


def started(path: Path) -> int:
    """Write a line into the file; how many there are."""
    with path.open("a", encoding="utf-8") as file:
        file.write("started\n")
    return len(path.read_text(encoding="utf-8").splitlines())


class Hinting(Middleware):
    """Tells the model something with each request."""

    name = "hinting"

    async def on_reply(self, request: str, context: RuntimeContext) -> tuple[str, ...]:
        return ("Mind the tide.",)


class Frame(Middleware):
    """Puts a frame around what calls answer."""

    name = "frame"

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        output = await call_next(use)
        return ToolOutput(f"[{output.output}]")
