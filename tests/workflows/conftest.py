"""Real sessions on the real server: each test gets a task queue, a worker and a data directory of its own."""

import asyncio
import json
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHandle

from longhaul.activities import recovery
from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.reading import queries
from longhaul.starter.client.session import Session
from longhaul.starter.client.states import session_copies
from longhaul.starter.connection import query_retries
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.settings import Settings
from longhaul.testing import AgentEnvironment
from longhaul.worker import build
from tests.activities.models.conftest import calling, few_authorities, one_authority
from tests.activities.models.sample_requests import KEYS, WEATHER, keys_for
from tests.activities.models.wire import (
    BEGINNINGS,
    Answer,
    Wire,
    chat_says,
    claude_says,
    on_a_port,
    response_says,
)
from tests.e2e.processes import WorkerSettings, worker

__all__ = ["few_authorities", "one_authority"]

TOOLS = "tests.workflows.tools"
CLAUDE, RESPONSES, CHAT = BEGINNINGS

Line = dict[str, Any]
UNWATCHED = StuckConfig(enabled=False)
LARGE_PIECE = 5_000
"""Characters of a text so long that in pieces of eight, as a model says it, seconds would go by."""


def _in_few_pieces(line: Line) -> Line:
    return {"chunk_chars": LARGE_PIECE, **line} if len(line.get("text", "")) > LARGE_PIECE else line


def asked_within(event: HistoryEvent) -> str:
    """The type of the activity that left this marker of a task; empty for any other event."""
    told = event.marker_recorded_event_attributes
    return str(json.loads(told.details["data"].payloads[0].data)["activity_type"]) if told.marker_name else ""


@dataclass
class Stage:
    """A worker that polls a queue of this test's own, and what it takes to start sessions there."""

    client: Client
    settings: Settings
    folder: Path
    workspace: Path
    name: str
    providers: Providers
    places: list[KeyPlace] = field(default_factory=list)
    """Of the operator's list; `agent` adds the address of the agent's model to it."""
    rest: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Closed when the test ends."""

    @property
    def address(self) -> str:
        return self.client.service_client.config.target_host

    @property
    def app(self) -> Longhaul:
        return Longhaul(self.client, self.settings)

    def with_settings(self, **changes: Any) -> "Stage":
        """The same stage, whose workers and sessions have other settings."""
        return replace(self, settings=self.settings.model_copy(update=changes))

    def script(self, *lines: Line) -> str:
        """A scripted model that answers with these lines."""
        path = self.folder / f"script-{uuid4().hex[:8]}.jsonl"
        path.write_text("".join(json.dumps(_in_few_pieces(line)) + "\n" for line in lines), encoding="utf-8")
        return f"scripted:{path}"

    def agent(self, *lines: Line, tools: Sequence[str] = ("fetch", "send", "courier"), **spec: Any) -> AgentSpec:
        """An agent whose model says these lines, in this test's workspace."""
        # Scripts repeat themselves; `test_stuck.py` has agents that are watched for it.
        if "base_url" in (own := spec.get("model_config", {})):
            self.places += keys_for(own["base_url"])
        given = {"name": "lamp", "model": self.script(*lines), "tools": tuple(tools), "stuck": UNWATCHED, **spec}
        return AgentSpec.model_validate({"workspace": Workspace(root=str(self.workspace)), **given})

    def session(self, *lines: Line, id: str = "", user: str | None = None, **spec: Any) -> Session:  # noqa: A002
        """A session that nobody has written to yet; equal ids of two tests do not meet."""
        return self.app.session(id or f"{self.name}-{uuid4().hex[:6]}", user=user, agent=self.agent(*lines, **spec))

    def handle(self, session: Session) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(session.workflow_id)

    async def scheduled(self, session: Session) -> list[str]:
        """The types of the activities that the session's present run has asked for, in their order."""
        events = (await self.handle(session).fetch_history()).events
        asked = [e for e in events if e.HasField("activity_task_scheduled_event_attributes")]
        return [e.activity_task_scheduled_event_attributes.activity_type.name for e in asked]

    async def within_tasks(self, session: Session) -> list[str]:
        """The types of the activities that its present run has asked for within its own tasks, in their order."""
        return [name for event in (await self.handle(session).fetch_history()).events if (name := asked_within(event))]

    async def end_sessions(self) -> None:
        """Those that are open."""
        await AgentEnvironment(self.client, self.settings).end_sessions()

    @asynccontextmanager
    async def another_worker(self) -> AsyncIterator[None]:
        """One more worker on the same queue, with nothing in its memory."""
        # A client of its own: the SDK lets a client serve one worker per queue.
        client = await connect(self.address, settings=self.settings)
        try:
            async with build(client, self.settings, self.providers):
                yield
        finally:
            await let_go(client)

    @property
    def worker_settings(self) -> WorkerSettings:
        """Of workers in processes of their own."""
        return WorkerSettings(
            address=self.address,
            task_queue=self.settings.task_queue,
            directory=self.settings.data_dir,
            tools=self.settings.tools,
        )

    @asynccontextmanager
    async def worker_process(self) -> AsyncIterator[None]:
        """One more worker, in a process of its own."""
        async with worker(self.worker_settings):
            yield


@pytest.fixture
async def unserved(temporal_server: DevServer, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """A stage on which no worker polls yet."""
    name = f"{request.node.originalname[5:25]}-{uuid4().hex[:6]}"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    settings = Settings(task_queue=name, data_dir=tmp_path / "data", tools=TOOLS)
    client = await connect(temporal_server.address, settings=settings)
    places: list[KeyPlace] = []
    stage = Stage(client, settings, tmp_path, workspace, name, Providers(KEYS, places), places)
    async with stage.rest:
        yield stage
    await stage.end_sessions()
    await stage.providers.close()
    await let_go(client)


@pytest.fixture
async def stage(unserved: Stage) -> AsyncIterator[Stage]:
    """A stage with one worker."""
    async with unserved.another_worker():
        yield unserved


@pytest.fixture(scope="session")
async def used_sdks() -> None:
    """Each SDK has made a call. What it imports and builds for its first one outlasts an attempt's heartbeats on a busy
    machine, and the attempt that comes instead would find that its answer was given away."""
    async with on_a_port() as told, calling(told.url) as caller:
        for model, says in ((CLAUDE, claude_says), (RESPONSES, response_says), (CHAT, chat_says)):
            told.answers = [Answer(says("Ready."))]
            await caller.call(model, "Hi", tools=[WEATHER])


@pytest.fixture
async def wire(used_sdks: None) -> AsyncIterator[Wire]:
    async with on_a_port() as told:
        yield told


@pytest.fixture
async def other_wire(used_sdks: None) -> AsyncIterator[Wire]:
    async with on_a_port() as told:
        yield told


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients and workers of this process take silence for an answer after two seconds, not after eight to fifteen."""
    for module, name in (
        (query_retries, "STUCK_SECONDS"),
        (queries, "SILENT_SECONDS"),
        (session_copies, "SILENT_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 2.0)
    monkeypatch.setattr(recovery, "QUERY_TIMEOUT", timedelta(seconds=2))


@dataclass(frozen=True)
class Typed:
    """What a command came to."""

    status: int
    said: str
    """Both of its outputs."""


TypeTemporal = Callable[..., Awaitable[Typed]]


@pytest.fixture
def type_temporal(temporal_cli: Path, temporal_server: DevServer) -> TypeTemporal:
    """Runs Temporal's own command line: `await type_temporal("workflow", "signal", …)`."""

    async def run(*words: str) -> Typed:
        process = await asyncio.create_subprocess_exec(
            str(temporal_cli), *words, "--address", temporal_server.address, stdout=PIPE, stderr=STDOUT
        )
        said, _ = await process.communicate()
        return Typed(process.returncode or 0, said.decode())

    return run
