"""Providers on real ports: aimock for what the world's providers do, `wire` for exact bytes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from activities.models.providers import Providers
from tests.activities.models.requests import KEYS, Caller
from tests.activities.models.wire import Wire
from tests.servers.aimock import Aimock


@pytest.fixture
async def providers() -> AsyncIterator[Providers]:
    made = Providers(KEYS)
    yield made
    await made.close()


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    told = Wire()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    told.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server:
        yield told


@pytest.fixture
def by_wire(wire: Wire, providers: Providers) -> Caller:
    return Caller(wire.url, providers)


@pytest.fixture
def claude(aimock: Aimock, providers: Providers) -> Caller:
    return Caller(aimock.url, providers)


@pytest.fixture
def gpt(aimock: Aimock, providers: Providers) -> Caller:
    return Caller(f"{aimock.url}/v1", providers)
