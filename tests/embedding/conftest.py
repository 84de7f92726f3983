"""Applications of Temporal's with a client, a worker and workflows of their own, which have agents by the plugin."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client, Interceptor, Plugin, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.plugin import LonghaulPlugin
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.settings import Settings
from longhaul.workflow import AskResult
from tests.embedding.order_workflows import Order, OrderWorkflow
from tests.limits import SURE_SECONDS

TOOLS = ("fetch", "send", "engrave", "dawdle")


@dataclass
class Application:
    """What such an application has, with names that no other test uses."""

    address: str
    name: str
    settings: Settings
    folder: Path
    rest: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def queue(self) -> str:
        return f"{self.name}-orders"

    @property
    def plugin(self) -> LonghaulPlugin:
        return LonghaulPlugin(self.settings)

    def agent(self, *lines: dict[str, Any], **spec: Any) -> dict[str, Any]:
        """Fields of an agent whose model says these lines."""
        script = self.folder / f"{uuid4().hex[:8]}.jsonl"
        script.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        folder = self.folder / "workspace"
        folder.mkdir(exist_ok=True)
        plain = {"name": "clerk", "stuck": {"enabled": False}, "tools": TOOLS, "workspace": {"root": str(folder)}}
        return {**plain, "model": f"scripted:{script}", **spec}

    @asynccontextmanager
    async def running(self, *workflows: type, **options: Any) -> AsyncIterator[Client]:
        """The application's client, as long as its worker runs these workflows and hosts agents."""
        client = await self.client(self.plugin)
        async with Worker(client, task_queue=self.queue, workflows=workflows, **options):
            yield client

    async def begin(
        self,
        client: Client,
        order: Order,
        workflow: Any = OrderWorkflow,
        id: str = "",  # noqa: A002  the SDK's name
    ) -> WorkflowHandle[Any, Any]:
        workflow_id = f"{self.name}-{id or uuid4().hex[:6]}"
        return await client.start_workflow(workflow.run, order, id=workflow_id, task_queue=self.queue)

    async def ask(self, client: Client, order: Order) -> AskResult[Any]:
        async with asyncio.timeout(SURE_SECONDS):
            found: AskResult[Any] = await (await self.begin(client, order)).result()
        return found

    def session(self, client: Client, name: str, user: str | None = None) -> Session:
        """The session that an agent of this application works in."""
        return Longhaul(client, self.settings).session(name, user=user, agent=AgentSpec(name="clerk"))

    @property
    def case(self) -> str:
        """The name of a session of this test's own."""
        return f"{self.name}-case"

    async def client(self, *plugins: Plugin, interceptors: list[Interceptor] | None = None, **given: Any) -> Client:
        given = {"data_converter": pydantic_data_converter, **given}
        return await Client.connect(self.address, plugins=plugins, interceptors=interceptors or [], **given)


@pytest.fixture
async def application(
    temporal_server: DevServer, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Application]:
    name = f"{request.node.originalname[5:25]}-{uuid4().hex[:6]}"
    settings = Settings(task_queue=f"{name}-agents", data_dir=tmp_path / "data", tools="tests.workflows.tools")
    made = Application(temporal_server.address, name, settings, tmp_path)
    async with made.rest:
        yield made
