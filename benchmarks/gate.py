"""The tool of the recovery measurements, found by LONGHAUL_TOOLS=benchmarks.gate: it waits while a file is there."""

import asyncio
from pathlib import Path

from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


@tool(effect=Effect.READ, name="wait_at", read_only=True)
async def wait_at(gate: str) -> str:
    """Wait while a gate is closed."""
    while Path(gate).exists():  # noqa: ASYNC110, ASYNC240  another process removes it
        await asyncio.sleep(0.01)
    return "open"
