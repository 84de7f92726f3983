"""A test kit for agents: scripted models, a worker in the test's own process, and what a session did as plain values.

`longhaul/pytest_plugin.py` makes fixtures of it. Everything here is real but the model: Temporal's server, the worker,
tools, permission and stores.
"""

import asyncio
import atexit
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic_settings import PydanticBaseSettingsSource
from temporalio.client import Client, Interceptor, ListWorkflowsInput, OutboundInterceptor, WorkflowHistory
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from longhaul.activities.models.profiles import read_key_places, read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.scripted_model import read_script
from longhaul.activities.telemetry.prices import load_prices
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.values.conversation.messages import Msg, TextBlock, ToolCallBlock, ToolResultBlock, Usage
from longhaul.agent.values.conversation.tools import ran_in
from longhaul.agent.values.permission import DecisionMade
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import load_agent
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, joined, let_go
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.replay import replay_failure, replayer
from longhaul.worker import build
from longhaul.workflows.contract import DATA_CONVERTER, PendingCall, Status

Line = str | Mapping[str, Any]
"""One answer of a scripted model: its text, or a table with the keys of docs/reference/script.md."""


def calls(tool: str, text: str = "", /, **arguments: Any) -> dict[str, Any]:
    """A script line that calls a tool, after `text` if given: `calls("order", article="lamp")`."""
    return {"text": text, "tool_calls": [{"name": tool, "input": arguments}]}


def scripted(lines: Iterable[Line]) -> str:
    """A model that gives these answers, one for each of its calls: `AgentSpec(model=scripted(["Hello."]))`. Longhaul
    deletes the script's file when this process ends. Raises ScriptError, which names line and field."""
    tables = [{"text": line} if isinstance(line, str) else dict(line) for line in lines]
    written = "".join(json.dumps(table) + "\n" for table in tables)
    path = _scripts() / f"{hashlib.sha256(written.encode()).hexdigest()[:24]}.jsonl"
    path.write_text(written, encoding="utf-8")
    read_script(str(path))
    return f"scripted:{path}"


@cache
def _scripts() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="longhaul-scripts-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


STARTING = timedelta(seconds=60)
"""The most that the time-skipping test server may take, where the SDK says 5 seconds, and a session before it rests."""


class GivenSettings(Settings):
    """Settings that a test gives. They read no variable and no file, so that a test passes on every machine."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: Any, init_settings: PydanticBaseSettingsSource, *others: Any, **named: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del settings_cls, others, named
        return (init_settings,)


def settings_for(folder: Path, **given: Any) -> Settings:
    """Settings for one test: its own task queue, and all data in `folder`. `models` may name scripts, which cost
    nothing: `models={"team": scripted(["Hello."])}`. Raises BadSetup for an unknown setting."""
    if isinstance(models := given.get("models"), dict):
        free = {"provider": "scripted", "prices": {"input": 0, "output": 0}}
        given["models"] = {
            name: {**free, "model": model.removeprefix("scripted:")} if isinstance(model, str) else model
            for name, model in models.items()
        }
    if unknown := [name for name in given if name not in Settings.model_fields]:
        raise BadSetup(f"{unknown[0]}: there is no such setting; docs/reference/settings.md lists them all")
    return GivenSettings(**{"task_queue": f"test-{uuid4().hex[:12]}", "data_dir": folder / "data", **given})


@dataclass(frozen=True)
class SeenCall:
    """One tool call of a session, as it is now."""

    tool: str
    arguments: str
    """The arguments as JSON, as the model wrote them."""
    output: str
    state: str
    """`success`, `error`, `denied`, `interrupted` or `unknown`. Empty: the call has no result yet."""
    effect: str
    """`read`, `idempotent` or `once`, as decided for this call. Empty: no worker ran it."""
    decisions: tuple[DecisionMade, ...]
    """Decisions of people on the call, the oldest first."""

    @property
    def approvers(self) -> tuple[str, ...]:
        return tuple(decision.approver for decision in self.decisions if decision.decision == "allow")


@dataclass(frozen=True)
class SeenSession:
    """What a session has done, as values for assertions."""

    calls: tuple[SeenCall, ...]
    """Tool calls, in the order in which the model made them."""
    transcript: tuple[str, ...]
    """Each text of a person or the model, as `user: Buy two lamps`."""
    usage: Usage
    """Tokens of all model calls."""
    cost: float
    """Cost in US dollars, by the setting `prices`. Models without a price cost nothing."""
    status: Status

    @property
    def decisions(self) -> tuple[DecisionMade, ...]:
        return self.status.decisions

    def call(self, tool: str) -> SeenCall:
        """The only call of that tool. Raises AssertionError, which lists the calls."""
        found = [call for call in self.calls if call.tool == tool]
        if len(found) != 1:
            made = ", ".join(f"{call.tool}({call.arguments})" for call in self.calls) or "none"
            raise AssertionError(f"{len(found)} calls of {tool!r} instead of one; the session's calls: {made}")
        return found[0]


@dataclass
class AgentEnvironment:
    """A server and a worker for one test, with its own task queue and folders."""

    client: Client
    settings: Settings
    skip_time: Callable[[timedelta], Awaitable[None]] | None = None
    """Moves the server's clock. None: the server can't move time."""
    _started: list[Session] = field(default_factory=list[Session])

    @property
    def app(self) -> Longhaul:
        """The client, as programs use it."""
        return Longhaul(self.client, self.settings)

    def session(
        self, agent: AgentSpec | str | Path, says: Iterable[Line] | None = None, *, user: str = "", name: str = ""
    ) -> Session:
        """A new session of an agent or an agent file. `says` replaces the agent's model by a scripted model. `name`:
        name of the session; by default a name that no other test has."""
        spec = agent if isinstance(agent, AgentSpec) else load_agent(Path(agent))
        if says is not None:
            spec = spec.model_copy(update={"model": scripted(says)})
        session = self.app.session(name or f"test-{uuid4().hex[:12]}", user=user or None, agent=spec)
        self._started.append(session)
        return session

    async def approve(self, session: Session, tool: str = "", *, by: str = "tester", reason: str = "") -> Msg:
        """Approve the one waiting call, or the one waiting call of `tool`, and return the reply's message: the last
        message, or the one that says what the reply waits for next. Waits for a session that still works, or that a
        workflow has not started yet. Raises AssertionError if no call, or more than one, waits then."""
        return await self._decide(session, tool, allow=True, by=by, reason=reason)

    async def deny(self, session: Session, tool: str = "", *, by: str = "tester", reason: str = "") -> Msg:
        """Deny the one waiting call, or the one of `tool`, and return the reply's message as `approve` does."""
        return await self._decide(session, tool, allow=False, by=by, reason=reason)

    async def _decide(self, session: Session, tool: str, *, allow: bool, by: str, reason: str) -> Msg:
        await self.until_waiting(session)
        pending = await session.pending()
        waiting = [call for call in pending if tool in ("", call.tool)]
        if len(waiting) != 1:
            listed = ", ".join(f"{call.tool}({call.input})" for call in pending) or "nothing"
            raise AssertionError(f"{len(waiting)} calls wait instead of one; the session waits for: {listed}")
        call: PendingCall = waiting[0]
        await session.confirm(call, allow=allow, approver=by, reason=reason)
        return await session.wait(call.reply_id)

    async def until_waiting(self, session: Session) -> None:
        """Wait until the session waits for somebody or has nothing to do. Raises AssertionError after a minute."""
        try:
            async with asyncio.timeout(STARTING.total_seconds()):
                while not await session.has_started() or (await session.status()).status == "working":  # noqa: ASYNC110  it notifies nobody
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(
                f"the session {session.id!r} has not started, or still works, after {STARTING}"
            ) from None

    async def move_time(self, by: timedelta) -> None:
        """Move the server's clock forward. Timers and deadlines that are due fire in order, and this environment's
        sessions continue. `Session.wait` then returns the reply. Raises BadSetup if the server uses the machine's
        clock."""
        if self.skip_time is None:
            raise BadSetup("move_time: this server keeps the machine's time; use the fixture longhaul_time_env instead")
        await self.skip_time(by)
        for session in self._started:
            with suppress(NoSession):
                await session.status()  # answered once the session has done what its timers asked for

    async def seen(self, session: Session) -> SeenSession:
        """What the session has done so far."""
        status, messages = await session.status(), [message async for message in session.transcript()]
        results = {b.id: b for message in messages for b in message.content if isinstance(b, ToolResultBlock)}
        made = [block for message in messages for block in message.content if isinstance(block, ToolCallBlock)]
        said = [
            f"{message.role}: {text}"
            for message in messages
            if (text := "\n".join(block.text for block in message.content if isinstance(block, TextBlock)))
        ]
        prices = load_prices(self.settings.prices, read_profiles(self.settings.models))
        spent = {model: one.usage for model, one in status.by_model.items()}
        return SeenSession(
            calls=tuple(_seen_call(call, results.get(call.id), status.decisions) for call in made),
            transcript=tuple(said),
            usage=sum(spent.values(), Usage()),
            cost=sum((prices.cost(model, used) or 0.0) if prices else 0.0 for model, used in spent.items()),
            status=status,
        )

    async def save(self, session: Session, folder: Path) -> Path:
        """Write the session's recorded history for `replay` to `folder/AGENT-SESSION.json`."""
        history = await self.client.get_workflow_handle(session.workflow_id).fetch_history()
        path = folder / f"{session.workflow_id.replace('/', '-')}.json"

        def write() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(history.to_json(), encoding="utf-8")

        await asyncio.to_thread(write)
        return path

    async def end_sessions(self) -> None:
        """Terminate this environment's open sessions. Without a worker they would wait for ever, and each inbox of a
        later test would wait for them."""
        open_ones = {session.workflow_id for session in self._started}
        with suppress(RPCError):  # a server that moves time has no index; then sub-agents are left to its end
            query = f"TaskQueue = '{self.settings.task_queue}' AND ExecutionStatus = 'Running'"
            open_ones |= {row.id async for row in self.client.list_workflows(query)}
        for workflow_id in open_ones:
            with suppress(RPCError):  # one that has not started, or is over
                await self.client.get_workflow_handle(workflow_id).terminate("the test is over")


def _seen_call(call: ToolCallBlock, result: ToolResultBlock | None, decisions: tuple[DecisionMade, ...]) -> SeenCall:
    ran = ran_in(result) if result is not None else None
    return SeenCall(
        tool=call.name,
        arguments=call.input,
        output=result.get_text() if result is not None else "",
        state=result.state.value if result is not None else "",
        effect=ran.effect.value if ran is not None else "",
        decisions=tuple(decision for decision in decisions if decision.call_id == call.id),
    )


@asynccontextmanager
async def working(client: Client, settings: Settings) -> AsyncIterator[None]:
    """A worker that polls in this event loop. Models take their keys from the variables of this process."""
    profiles = read_profiles(settings.models)
    providers = Providers(os.environ, read_key_places(settings.model_keys), profiles)
    try:
        async with build(client, settings, providers):
            yield
    finally:
        await providers.close()


@asynccontextmanager
async def environment(client: Client, settings: Settings) -> AsyncIterator[AgentEnvironment]:
    """An environment in this event loop, on your own client: `Client.connect(…)`, with plugins, or that of a
    `WorkflowEnvironment`. The client keeps its codec and failure converter."""
    async with joined(client, settings) as of_sessions, working(of_sessions, settings):
        made = AgentEnvironment(of_sessions, settings)
        try:
            yield made
        finally:
            await made.end_sessions()


class _NoRows:
    def __aiter__(self) -> "_NoRows":
        return self

    async def __anext__(self) -> Any:
        raise StopAsyncIteration


class WithoutIndex(Interceptor):
    """For Temporal's time-skipping test server, which lists no workflows: every list is empty, so that a session
    begins without a look for its earlier incarnation."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002  the SDK's own name
        return _ListsNothing(super().intercept_client(next))


class _ListsNothing(OutboundInterceptor):
    def list_workflows(self, input: ListWorkflowsInput) -> Any:  # noqa: A002  the SDK's own name
        del input
        return _NoRows()


@asynccontextmanager
async def time_server(program: str | None = None) -> AsyncIterator[WorkflowEnvironment]:
    """Temporal's test server, whose clock moves on command. Without `program`, the SDK downloads it. Raises
    BadSetup."""
    try:
        server = await WorkflowEnvironment.start_time_skipping(
            test_server_existing_path=program, test_server_startup_timeout=STARTING
        )
    except RuntimeError as error:
        raise BadSetup(
            f"Temporal's time-skipping test server can't be started: {error}; override the fixture "
            "longhaul_time_server_path with the path of its program"
        ) from error
    async with server:
        yield server


@asynccontextmanager
async def hosted(
    address: str, settings: Settings, time_server: WorkflowEnvironment | None = None
) -> AsyncIterator[AgentEnvironment]:
    """An environment whose worker runs in this event loop, and which may be used in another one: it has a client of
    its own."""
    if time_server is not None:
        settings = settings.model_copy(update={"search_attributes": False})
    async with (
        _connected(address, settings, has_index=time_server is None) as of_worker,
        working(of_worker, settings),
        _connected(address, settings, has_index=time_server is None) as of_test,
    ):
        made = AgentEnvironment(of_test, settings, time_server.sleep if time_server else None)
        try:
            yield made
        finally:
            await made.end_sessions()


@asynccontextmanager
async def _connected(address: str, settings: Settings, *, has_index: bool) -> AsyncIterator[Client]:
    client = await connect(address, "default", settings=settings)
    try:
        config = client.config()
        config["interceptors"] = [*config["interceptors"], *([] if has_index else [WithoutIndex()])]
        yield Client(**config)
    finally:
        await let_go(client)


async def replay(*recorded: Path | str, client: Client | None = None) -> None:
    """Replay recorded sessions against the installed code. Pass JSON files of `save` or of `temporal workflow show
    --output json`, or folders of them.

    No server is needed. `client` is for sessions that are encrypted or stored large values. Raises AssertionError,
    which names each session that would break and why, and if there is nothing to replay.
    """
    paths = [Path(path) for path in recorded]
    files = [file for path in paths for file in ([path] if path.suffix == ".json" else sorted(path.glob("*.json")))]
    if not files:
        raise AssertionError(f"no recorded session in {', '.join(map(str, recorded)) or 'nothing'}; `save` writes them")
    broken: list[str] = []
    this_code = replayer(client.data_converter, client.namespace) if client else replayer(DATA_CONVERTER, "default")
    for file in files:
        text = await asyncio.to_thread(file.read_text, encoding="utf-8")
        history = WorkflowHistory.from_json(file.stem, text)
        started = history.events[0].workflow_execution_started_event_attributes
        # Values are read for the session that they were sent to.
        if why := await replay_failure(this_code, WorkflowHistory(started.workflow_id or file.stem, history.events)):
            broken.append(f"{file.name}: {why}")
    if broken:
        raise AssertionError(f"{len(broken)} of {len(files)} sessions would break:\n" + "\n".join(broken))
