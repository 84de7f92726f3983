"""Jobs for crash tests: sessions with scripted models, a ledger of what was really done, and points to hold them at."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.agent.values.permission import PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import DATA_CONVERTER
from longhaul.workflows.session import AgentSession
from tests.e2e.crash.crash_tools import HOLD, LEDGER
from tests.e2e.processes import CRASH_TOOLS, WorkerSettings
from tests.limits import SURE_SECONDS, pause

TOOLS = ("look", "glance", "put", "send", "sign", "odd", "walk", "Bash")
UNASKED = tuple(PermissionRule(tool_name=name) for name in TOOLS if name != "sign")
"""`sign` has no rule: a person is asked."""


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A scripted call whose id is its tool's name."""
    return {"id": tool, "name": tool, "input": {"name": tool, **arguments}}


def bash(command: str) -> dict[str, Any]:
    return {"id": "Bash", "name": "Bash", "input": {"command": command}}


def says(text: str = "", *calls: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """One line of a script."""
    return {"text": text, "tool_calls": list(calls), **more}


async def until(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = SURE_SECONDS) -> None:
    """Ask again and again; fail with the sentence when the time is up."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not await holds():
        waited = loop.time() - began
        assert waited < seconds, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(pause(waited))


@dataclass
class Job:
    """One session, its workspace, and what can be seen of it from outside."""

    session: Session
    root: Path
    handle: WorkflowHandle[Any, Any]
    reply_id: str = ""

    def hold(self, *points: str) -> None:
        (self.root / HOLD).mkdir(parents=True, exist_ok=True)
        for point in points:
            (self.root / HOLD / point).touch()

    def release(self) -> None:
        for gate in (self.root / HOLD).glob("*"):
            gate.unlink()

    def ledger(self, what: str, name: str = "") -> list[dict[str, Any]]:
        """Lines of one kind, of one tool's calls where `name` is given."""
        try:
            text = (self.root / LEDGER).read_text()
        except FileNotFoundError:
            return []
        lines = [json.loads(line) for line in text.splitlines()]
        return [line for line in lines if line["what"] == what and name in ("", line.get("name"))]

    def effects(self, name: str) -> int:
        return len(self.ledger("effect", name))

    async def start(self, text: str = "go") -> None:
        self.reply_id = await self.session.submit(text)

    async def is_known(self) -> bool:
        """Whether the server has started it."""
        try:
            await self.handle.describe()
        except RPCError:
            return False
        return True

    async def is_held(self, point: str) -> None:
        async def seen() -> bool:
            return any(line["point"] == point for line in self.ledger("held"))

        await until(seen, f"{self.session.id} is held at {point}")

    async def has_recorded(self, *call_ids: str) -> None:
        async def seen() -> bool:
            return set(call_ids) <= set(await self.results())

        await until(seen, f"{self.session.id} has results of {call_ids}")

    async def is_waiting(self) -> None:
        async def seen() -> bool:
            return (await self.session.status()).status == "waiting"

        await until(seen, f"{self.session.id} waits for a person")

    async def approve(self) -> None:
        """As a signal, so that it needs no worker."""
        body = {"decisions": [{"call_id": "sign", "decision": "allow"}], "approver": "ana"}
        await self.handle.signal("confirm", body)

    async def finish(self, seconds: float = SURE_SECONDS) -> Msg:
        """The final message; `sign` is approved on the way, and nothing else may ask."""
        async with asyncio.timeout(seconds):
            message = await self.session.wait(self.reply_id)
            while message.finished_reason is None:
                waiting = {one.call_id for one in await self.session.pending() if one.waits_for != "resolution"}
                assert waiting <= {"sign"}, f"{self.session.id} waits for {waiting}"
                if waiting:
                    await self.approve()
                message = await self.session.wait(self.reply_id)
            return message

    async def transcript(self) -> list[Msg]:
        return [message async for message in self.session.transcript()]

    async def results(self) -> dict[str, ToolResultBlock]:
        """By call id. Two results of one call are an error."""
        found: dict[str, ToolResultBlock] = {}
        for message in await self.transcript():
            for result in message.get_tool_results():
                assert result.id not in found, f"two results of {result.id}"
                found[result.id] = result
        return found

    async def replays(self) -> None:
        """The workflow's code, run on the recorded history, does the same again."""
        history = await self.handle.fetch_history()
        replayer = Replayer(
            workflows=[AgentSession],
            build_id="replay",
            workflow_runner=UnsandboxedWorkflowRunner(),
            data_converter=DATA_CONVERTER,
            debug_mode=True,  # else a crowded machine, on which it gets no turn for two seconds, looks like a deadlock
        )
        await replayer.replay_workflow(history)

    async def underway(self, activity_type: str) -> PendingActivityInfo | None:
        """What the server knows of an activity that is not done."""
        raw = (await self.handle.describe(rpc_timeout=timedelta(seconds=5))).raw_description
        return next((one for one in raw.pending_activities if one.activity_type.name == activity_type), None)

    async def is_running(self, activity_type: str) -> None:
        async def seen() -> bool:
            found = await self.underway(activity_type)
            return found is not None and found.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED

        await until(seen, f"{self.session.id} runs {activity_type}")

    async def is_not_here(self, activity_type: str) -> None:
        async def seen() -> bool:
            found = await self.underway(activity_type)
            return found is not None and found.last_failure.application_failure_info.type == "NotHere"

        await until(seen, f"{activity_type} of {self.session.id} was refused as NotHere")


@dataclass(frozen=True)
class Stage:
    """A task queue of its own on some server, with a directory for all that is on it."""

    app: Longhaul
    address: str
    directory: Path

    @classmethod
    async def on(cls, address: str, directory: Path) -> "Stage":
        settings = Settings(task_queue=f"crash-{uuid.uuid4().hex[:8]}", data_dir=directory)
        async with Longhaul.connect(address, settings=settings) as app:
            return cls(app, address, directory)

    def worker(self, *, tools: str = CRASH_TOOLS, **more: str) -> WorkerSettings:
        """With a log of its own, and the data directory of all workers of this host."""
        return WorkerSettings(
            address=self.address,
            task_queue=self.app.settings.task_queue,
            directory=self.directory / f"worker-{uuid.uuid4().hex[:6]}",
            tools=tools,
            further={"LONGHAUL_DATA_DIR": str(self.directory / "data"), **more},
        )

    def one_directory(self, **more: Any) -> WorkerSettings:
        """For workers that come one after the other; the client reads what they have written there."""
        queue = self.app.settings.task_queue
        return WorkerSettings(address=self.address, task_queue=queue, directory=self.directory, **more)

    def job(self, name: str, script: Sequence[Mapping[str, Any]], hold: Iterable[str] = (), **more: Any) -> Job:
        """Not started yet. `name` is for people; the session gets one of its own. `more` is further of its agent."""
        key = f"{name.replace('.', '-')}-{uuid.uuid4().hex[:6]}"
        root = self.directory / key
        root.mkdir(parents=True)
        file = self.directory / f"{key}.jsonl"
        file.write_text("\n".join(json.dumps(line) for line in script))
        spec = AgentSpec(
            name="crash",
            model=f"scripted:{file}",
            tools=TOOLS,
            permission=PermissionContext(rules=UNASKED),
            workspace=Workspace(root=str(root)),
            stuck=StuckConfig(enabled=False),
            **more,
        )
        session = self.app.session(key, agent=spec)
        job = Job(session, root.resolve(), self.app.client.get_workflow_handle(session.workflow_id))
        job.hold(*hold)
        return job


def assert_well_formed(transcript: Sequence[Msg]) -> None:
    """Each call has exactly one result, after it and before the model is asked again."""
    unanswered: set[str] = set()
    for message in transcript:
        for result in message.get_tool_results():
            assert result.id in unanswered, f"a result of {result.id}, which is not open"
            unanswered.remove(result.id)
        if not message.get_tool_results():
            assert not unanswered, f"{unanswered} have no result when the next message comes"
        unanswered |= {block.id for block in message.get_tool_calls()}
    assert not unanswered


def told(transcript: list[Msg]) -> list[dict[str, Any]]:
    """Without times, how calls ran, and ids that are the session's own."""
    mine = {"id", "created_at", "updated_at", "finished_at", "usage", "metadata"}
    ran = {"content": {"__all__": {"metadata"}}}
    return [message.model_dump(mode="json", exclude={**dict.fromkeys(mine, True), **ran}) for message in transcript]


async def assert_as_if_nothing_was(killed: list[Job], control: Job, messages: int) -> None:
    """Each killed session has the transcript of the one that nobody has disturbed, of so many messages."""
    expected = told(await control.transcript())
    assert len(expected) == messages
    for job in killed:
        transcript = await job.transcript()
        # One by one: what pytest says of two long lists that differ takes it minutes.
        assert [one == other for one, other in zip(told(transcript), expected, strict=True)] == [True] * messages
        assert_well_formed(transcript)
        await job.replays()
