"""Stopping what works in the background of a session, and waiting a little until it is known how each has ended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from longhaul.starter.client.reading.glance import Moves
from longhaul.workflows.contract import Status

Ask = Callable[[], Awaitable[Status]]
STOP_SECONDS = 15.0
"""What takes no notice is killed within seconds; a command whose worker is away is given up later."""


async def ends_of(call_ids: list[str], status: Ask, moves: Moves) -> dict[str, str]:
    """By call id the word for how it has ended; empty where nobody has heard of that in time."""
    ends = dict.fromkeys(call_ids, "")
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            while not all(ends.values()):
                await moves.note()
                known = _known(await status())
                ends = {call_id: known.get(call_id, "unknown") for call_id in call_ids}
                if not all(ends.values()):
                    await moves.rest()
    return ends


def _known(status: Status) -> Mapping[str, str]:
    """How each stands that the session remembers."""
    return {one.call_id: one.outcome for one in status.children} | {one.call_id: one.fate for one in status.commands}
