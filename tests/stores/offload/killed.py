"""A process whose children append with retries and are killed: `python -m … anywhere|writing FOLDER KILLS`.

`anywhere` kills at random moments, `writing` in the middle of a write, after so many bytes of the file. It forks,
because a killed child must cost milliseconds and not the start of a Python; it has one thread until it forks. Prints
one line of JSON: how many children were killed, the torn lines that a reader saw, and the batches that were confirmed.
"""

import asyncio
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from longhaul.stores.offload.local_workspace import LocalWorkspace
from tests.stores.offload.samples import said

BATCH = 3
PADDING = 5_000


async def append(folder: Path, batches: Iterable[int], confirm: int | None = None) -> None:
    """Batch by batch, as a worker does that then reports each of them."""
    workspace = LocalWorkspace(folder)
    for batch in batches:
        msgs = [said(batch * BATCH + step, PADDING) for step in range(BATCH)]
        await workspace.offload_context("kettle", msgs, batch=f"epoch-{batch}")
        if confirm is not None:
            os.write(confirm, b".")


def torn_lines(folder: Path) -> int:
    """What somebody who reads at this moment finds torn."""
    context = folder / "sessions" / "kettle" / "context.jsonl"
    if not context.exists():
        return 0
    return sum(not line.endswith(b"}\n") for line in context.read_bytes().splitlines(keepends=True))


def child(folder: Path, first: int, confirm: int, limit_bytes: int | None) -> int:
    """Starts with the batch that nobody has confirmed, and goes on until it is killed."""
    if pid := os.fork():
        return pid
    if limit_bytes is not None:
        # Python ignores the signal; its default is to kill whoever writes a file beyond the limit.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    asyncio.run(append(folder, count(first), confirm))
    os._exit(0)


def kill(folder: Path, kills: int, *, writing: bool) -> dict[str, int]:
    chance = random.Random(7)  # noqa: S311  no secret
    killed = torn = confirmed = 0
    for number in range(kills):
        confirmations, confirm = os.pipe()
        pid = child(folder, confirmed, confirm, (number + 1) * BATCH * PADDING * 2 if writing else None)
        os.close(confirm)
        if not writing:
            confirmed += len(os.read(confirmations, chance.randint(1, 3)))
            end = time.monotonic() + chance.uniform(0, 0.01)
            while time.monotonic() < end:
                torn += torn_lines(folder)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        killed += os.WIFSIGNALED(status)
        while said_so := os.read(confirmations, 1_000):
            confirmed += len(said_so)
        os.close(confirmations)
        torn += torn_lines(folder)
    return {"killed": killed, "torn": torn, "confirmed": confirmed}


if __name__ == "__main__":
    print(json.dumps(kill(Path(sys.argv[2]), int(sys.argv[3]), writing=sys.argv[1] == "writing")))
