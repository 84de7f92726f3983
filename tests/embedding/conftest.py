"""Applications of Temporal's with a client, a worker and workflows of their own, which have agents by the plugin."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client, Interceptor, Plugin
from temporalio.contrib.pydantic import pydantic_data_converter

from longhaul.plugin import LonghaulPlugin
from longhaul.starter.provision.dev_server import DevServer
from longhaul.starter.settings import Settings


@dataclass
class Application:
    """What such an application has, with names that no other test uses."""

    address: str
    name: str
    settings: Settings
    rest: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def queue(self) -> str:
        return f"{self.name}-orders"

    @property
    def plugin(self) -> LonghaulPlugin:
        return LonghaulPlugin(self.settings)

    async def client(self, *plugins: Plugin, interceptors: list[Interceptor] | None = None, **given: Any) -> Client:
        given = {"data_converter": pydantic_data_converter, **given}
        return await Client.connect(self.address, plugins=plugins, interceptors=interceptors or [], **given)


@pytest.fixture
async def application(
    temporal_server: DevServer, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Application]:
    name = f"{request.node.originalname[5:25]}-{uuid4().hex[:6]}"
    settings = Settings(task_queue=f"{name}-agents", data_dir=tmp_path / "data")
    made = Application(temporal_server.address, name, settings)
    async with made.rest:
        yield made
