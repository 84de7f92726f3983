"""A provider that refuses what providers refuse."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.activities.models.strict import Strict


@pytest.fixture
async def strict() -> AsyncIterator[Strict]:
    told = Strict()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0, limit=1 << 24)
    told.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server:
        yield told
