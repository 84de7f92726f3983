"""Asking a session for a shorter context, and waiting until it is shorter or is known to stay as it is."""

from collections.abc import Awaitable, Callable
from typing import Any

from longhaul.agent.plain.errors import LonghaulError
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.client.reading.glance import Moves
from longhaul.starter.client.wire import plain
from longhaul.workflows.contract import Status

Ask = Callable[[], Awaitable[Status]]


class CompressionFailed(LonghaulError):
    """Nothing has changed; the sentence is the session's own."""


class CompressionPending(LonghaulError):
    """It is asked for, and happens when the session goes on: somebody else has to do something first."""


async def compact(
    update: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]],
    status: Ask,
    moves: Moves,
    context_config: ContextConfig | None,
    instructions: str,
    by: str,
) -> bool:
    """As `Session.compress_context`."""
    before = await status()
    body: dict[str, Any] = {"instructions": instructions, "by": by}
    if context_config is not None:
        body["context_config"] = plain(context_config)
    answer = await update("compact", body)
    return bool(answer["compacting"]) and await _done(status, before, moves)


async def _done(status: Ask, before: Status, moves: Moves) -> bool:
    while True:
        await moves.note()
        now = await status()
        if now.compressions > before.compressions:
            return True
        if now.compression_tries > before.compression_tries:
            raise CompressionFailed(now.compression_error)
        if not now.compressing:
            return False  # by the time that it could have been done there was nothing that could go
        if now.status in ("waiting", "paused"):
            raise CompressionPending(
                f"session {now.session_id!r} will do it when it goes on; it waits for {_whom(now)}, see "
                f"`longhaul show {now.session_id}`"
            )
        await moves.rest()


def _whom(status: Status) -> str:
    return "somebody to resume it" if status.hold or status.paused_since else "answers to its open calls"
