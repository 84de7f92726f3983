"""A tool that nobody here runs, for its result comes from outside, and ones that never come back, pay, and sing."""

import asyncio
import base64

from longhaul.activities.middlewares.middleware import runtime_context
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock
from longhaul.agent.values.conversation.tools import Effect
from tests.workflows.paying import pay  # noqa: F401  a worker finds it by its name

LOG_OF_ALL_YEARS = "rain, " * 850_000
"""One line of five megabytes."""


@tool(is_external_tool=True)
def price_of(article: str) -> str:
    """Look up the price of an article in the shop's own system."""
    raise NotImplementedError(article)


@tool(timeout_seconds=0.2)
async def engrave(text: str) -> None:
    """Begin to engrave, and never come back."""
    await asyncio.sleep(60)


@tool(effect=Effect.READ, read_only=True)
def sing(song: str) -> DataBlock:
    """Sing a song."""
    data = base64.b64encode(f"RIFF {song}".encode()).decode()
    return DataBlock(source=Base64Source(data=data, media_type="audio/wav"), name=f"{song}.wav")


@tool(effect=Effect.READ, read_only=True)
def ticket() -> str:
    """Say which ticket the request belongs to."""
    return f"ticket {runtime_context().get('ticket')}"


@tool(effect=Effect.READ, read_only=True)
def unroll() -> str:
    """Read the log of all years, which has no line breaks."""
    return LOG_OF_ALL_YEARS
