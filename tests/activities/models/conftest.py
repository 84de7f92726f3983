"""Providers on real ports: aimock for what the world's providers do, `wire` for exact bytes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import certifi
import pytest

from longhaul.activities.models.providers import Providers
from tests.activities.models.sample_requests import KEYS, Caller, keys_for
from tests.activities.models.wire import Wire, on_a_port
from tests.servers.aimock import Aimock

LAST_LINE = "-----END CERTIFICATE-----\n"


@pytest.fixture(scope="session")
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate authority alone in its file."""
    first, end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition(LAST_LINE)
    file = tmp_path_factory.mktemp("authority") / "one.pem"
    file.write_text(first + end, encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def few_authorities(one_authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each HTTP client reads all authorities of the world, a fiftieth of a second each time; here nobody has TLS. Of
    these tests alone: whatever is downloaded for others needs them."""
    monkeypatch.setenv("SSL_CERT_FILE", str(one_authority))


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with on_a_port() as told:
        yield told


@pytest.fixture
async def by_wire(wire: Wire) -> AsyncIterator[Caller]:
    async with calling(wire.url) as caller:
        yield caller


@pytest.fixture
async def claude(aimock: Aimock) -> AsyncIterator[Caller]:
    async with calling(aimock.url) as caller:
        yield caller


@pytest.fixture
async def gpt(aimock: Aimock) -> AsyncIterator[Caller]:
    async with calling(f"{aimock.url}/v1") as caller:
        yield caller


@asynccontextmanager
async def calling(url: str) -> AsyncIterator[Caller]:
    """Calls that address, for whose keys it is listed."""
    providers = Providers(KEYS, keys_for(url))
    yield Caller(url, providers)
    await providers.close()
