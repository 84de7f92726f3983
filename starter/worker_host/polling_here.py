"""The health check of a worker's container: exit status 0 when a worker of this host polls, or 1 with a sentence."""

import asyncio
import socket
import sys

from temporalio.service import RPCError

from longhaul.starter.connection.connect import Unreachable, connect, let_go
from longhaul.starter.connection.storage_places import keepers
from longhaul.starter.settings import Settings


async def main() -> int:
    settings = Settings()
    host = f"@{socket.gethostname()}"
    try:
        client = await connect(settings=settings)
        there = await keepers(client, settings.task_queue)
        await let_go(client)
    except (Unreachable, RPCError) as error:
        print(error, file=sys.stderr)
        return 1
    if any(keeper.name.endswith(host) for keeper in there):
        return 0
    print(f"no worker of this host polled {settings.task_queue!r} in the last minute", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
