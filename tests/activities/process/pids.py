"""Whether processes are there, and waiting for what comes in a while."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


async def until(is_so: Callable[[], bool]) -> None:
    """Look again and again, for half a minute."""
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline, "not within 30 s"
        await asyncio.sleep(0.05)
