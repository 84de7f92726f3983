"""Tools that tell how many of them run at once, when each began, and whose turn the server says that it is."""

import asyncio
import time

from temporalio import activity

from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


class Shift:
    """What the calls of one test have come to; its worker is in the test's own process."""

    def __init__(self) -> None:
        self.at_once = self.most = 0
        self.started = list[float]()


TOOLS = __name__
"""For the setting `tools` of a worker."""
SHIFTS = dict[str, Shift]()
"""By the name that a test gives its calls."""


@tool(effect=Effect.ONCE, read_only=True, concurrency_safe=True)
async def toil(shift: str, seconds: float = 0) -> str:
    """Work for a while, and say with which priority and fairness key."""
    mine = SHIFTS.setdefault(shift, Shift())
    mine.at_once += 1
    mine.most = max(mine.most, mine.at_once)
    mine.started.append(time.monotonic())
    await asyncio.sleep(seconds)
    mine.at_once -= 1
    priority = activity.info().priority
    return f"{priority.priority_key} {priority.fairness_key}"
