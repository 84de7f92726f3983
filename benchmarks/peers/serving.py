"""What each peer's program ends in: a worker of the SDK as it comes, in the peer's own Python.

Started as `python -m benchmarks.peers.PROGRAM ADDRESS QUEUE`; prints READY and serves until it is killed.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Any

from temporalio.client import Client, Plugin
from temporalio.worker import Worker

READY = "READY"


def serve(workflows: Sequence[type], activities: Sequence[Callable[..., Any]], plugin: Plugin) -> None:
    """Default worker options, so sandboxed; the plugin sets whatever its framework wants otherwise."""
    asyncio.run(_serve(workflows, activities, plugin, sys.argv[1], sys.argv[2]))


async def _serve(
    workflows: Sequence[type], activities: Sequence[Callable[..., Any]], plugin: Plugin, address: str, queue: str
) -> None:
    client = await Client.connect(address, plugins=[plugin])
    async with Worker(client, task_queue=queue, workflows=workflows, activities=activities):
        print(READY, flush=True)
        await asyncio.Event().wait()
