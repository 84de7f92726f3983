"""A tree of 21 agents in a storm: workers and the server die under it at random, and what came of it is told."""

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from temporalio.service import RPCError

from longhaul.agent.values.permission import PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.agent.views.session_views import BudgetStanding
from longhaul.starter.client.reading.queries import SILENCES, NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Job, Stage
from tests.e2e.processes import WorkerProcess
from tests.e2e.tree_provider import FOREMEN, HANDS, SIGNING

PATIENCE_SECONDS = 900.0
KILL_SECONDS = 15.0
"""That a kill and a new start may take on a busy machine, beside that patience."""
STARTS = 20
"""Tries to start a worker: the server may be away just then."""
WORKERS = 2
SERVER_SHARE = 0.2
"""Of the kills."""

Answer = TypeVar("Answer")


@dataclass
class Storm:
    stage: Stage
    server: DevServer
    job: Job
    url: str
    """Of the provider."""
    chance: random.Random
    workers: list[WorkerProcess] = field(default_factory=list[WorkerProcess])
    signed: set[str] = field(default_factory=set[str])
    """Paths of the calls that were approved."""
    kills: int = 0

    async def play(self, kills: int) -> None:
        """Ask the lead, kill so often, approve what asks for it in between: the tree is at work till the last kill."""
        self.workers = [await _started(self.stage, self.url) for _ in range(WORKERS)]
        try:
            async with asyncio.timeout(PATIENCE_SECONDS + kills * KILL_SECONDS):
                await self.job.start("lead")
                answering = asyncio.create_task(self._approve(kills))
                for _ in range(kills):
                    await asyncio.sleep(self.chance.uniform(0.1, 1.0))
                    await self._strike()
                await answering
                await insisting(lambda: self.job.finish(PATIENCE_SECONDS))
        except BaseException:
            await self.end()
            raise

    async def end(self) -> None:
        for process in self.workers:
            await process.kill()

    async def _strike(self) -> None:
        if self.chance.random() < SERVER_SHARE:
            await self.server.kill()
            await self.server.start()
        else:
            number = self.chance.randrange(WORKERS)
            await self.workers[number].kill()
            self.workers[number] = await _started(self.stage, self.url)
        self.kills += 1

    async def _approve(self, kills: int) -> None:
        """One by one, so that some of the tree is left for each part of the storm."""
        while len(self.signed) < len(SIGNING):
            await insisting(self._is_at_work)
            if self.kills * len(SIGNING) >= kills * (len(self.signed) + 1):
                await insisting(self._approve_one)
            await asyncio.sleep(0.1)

    async def _is_at_work(self) -> None:
        """Raises AssertionError for a reply that has ended before all was asked."""
        found = await self.job.session.result(self.job.reply_id)
        assert found.status != "finished", found.message

    async def _approve_one(self) -> None:
        for waiting in await self.job.session.tree.pending():
            if waiting.call.waits_for == "person" and waiting.session.id not in self.signed:
                try:
                    await waiting.session.confirm(waiting.call, allow=True, approver="ana")
                except Refused:
                    continue  # the operation of a try before this one had come through
                assert waiting.call.path == "lead › foreman › sign"
                self.signed.add(waiting.session.id)
                return


def tree(stage: Stage, url: str, seed: int) -> Job:
    """The lead's session, not started yet."""
    key = f"tree-{seed}-{uuid.uuid4().hex[:6]}"
    root = stage.directory / key
    root.mkdir(parents=True)
    profile = {"provider": "openai-chat", "base_url": url, "api_key_env": "none", "model": "m", "family": "other"}
    about = {
        "model": "tree",
        "models": {"tree": profile},
        "model_config": {"max_output_tokens": 200, "max_retries": 8},
        "stuck": StuckConfig(enabled=False).model_dump(),
    }
    allowed = PermissionContext(rules=(PermissionRule(tool_name="send"),)).model_dump(mode="json")
    hand = {**about, "tools": ["send"], "permission": allowed}
    foreman = {**about, "tools": ["sign"], "agents": {"hand": hand}}
    spec = AgentSpec.model_validate(
        {
            **about,
            "name": "lead",
            "agents": {"foreman": foreman},
            "workspace": Workspace(root=str(root)),
            "budget": {"max_tokens": 100_000_000, "max_calls": 100_000},
        }
    )
    session = stage.app.session(key, agent=spec)
    return Job(session, root.resolve(), stage.app.client.get_workflow_handle(session.workflow_id))


def below(stage: Stage, root: Session) -> dict[str, Session]:
    """Each sub-agent's session, by its task."""
    found = dict[str, Session]()
    for task in (*FOREMEN, *HANDS):
        name = "foreman" if task in FOREMEN else "hand"
        above = root if task in FOREMEN else found[task[:2]]
        spec = root.spec.model_copy(update={"name": name})
        found[task] = stage.app.session(f"{above.id}.Agent-{task}", agent=spec)
    return found


async def standing(session: Session) -> BudgetStanding:
    found = (await session.status()).budget
    assert found is not None
    return found


async def insisting(act: Callable[[], Awaitable[Answer]]) -> Answer:
    """Again while the server is away, or no worker lives long enough to answer."""
    while True:
        try:
            return await act()
        except (RPCError, NoSession, *SILENCES):
            await asyncio.sleep(0.2)


async def _started(stage: Stage, url: str) -> WorkerProcess:
    for left in range(STARTS, 0, -1):
        try:
            return await WorkerProcess.start(stage.one_directory(further={"LONGHAUL_MODEL_KEYS": f"none={url}"}))
        except RuntimeError:
            if left == 1:
                raise
            await asyncio.sleep(0.5)
    raise AssertionError
