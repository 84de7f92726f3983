"""A lead, five foremen and fifteen hands while workers and the server are killed: nothing is done, started, told or
paid twice, and nothing is lost."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from longhaul.starter.client.session import Session
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.crash.crash_stage import Job, Stage, assert_well_formed
from tests.e2e.tree_provider import FOREMEN, HANDS, INPUT_TOKENS, OUTPUT_TOKENS, SIGNING, TURNS, tree_provider
from tests.e2e.tree_storm import Storm, below, standing, tree
from tests.workflows.operations import until

pytestmark = [pytest.mark.server, pytest.mark.timeout(4_200)]
SEED = 7


@pytest.fixture
async def mortal_server(temporal_cli: Path, tmp_path: Path) -> AsyncIterator[DevServer]:
    settings = DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    async with DevServer(settings) as server:
        yield server


@pytest.mark.proves("X14", "X8")
@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.chaos)])
async def test_a_tree_in_a_storm(mortal_server: DevServer, tmp_path: Path, kills: int) -> None:
    stage = await Stage.on(mortal_server.address, tmp_path / "stage")
    async with tree_provider() as provider:
        job = tree(stage, provider.url, SEED)
        storm = Storm(stage, mortal_server, job, provider.url, random.Random(SEED))  # noqa: S311  no secret
        await storm.play(kills)
        try:
            members = below(stage, job.session)
            await effects_are_true(job, members)
            await each_was_started_and_heard_of_once(stage, job, members)
            await the_budget_is_settled(job.session, provider.billed)
        finally:
            await storm.end()
    assert storm.kills == kills


async def effects_are_true(job: Job, members: dict[str, Session]) -> None:
    """Each `once` effect at most once, and as its session says."""
    for task, tool in [*((one, "sign") for one in SIGNING), *((one, "send") for one in HANDS)]:
        done = len(job.ledger("effect", task))
        transcript = [message async for message in members[task].transcript()]
        assert_well_formed(transcript)
        (result,) = [one for m in transcript for one in m.get_tool_results() if one.name == tool]
        assert done <= 1, task
        if result.state is ToolResultState.SUCCESS:
            assert done == 1, task
        else:
            assert result.state is ToolResultState.UNKNOWN, (task, result)


async def each_was_started_and_heard_of_once(stage: Stage, job: Job, members: dict[str, Session]) -> None:
    app = job.session
    expected = {job.session.workflow_id: FOREMEN} | {
        members[one].workflow_id: tuple(hand for hand in HANDS if hand.startswith(one)) for one in FOREMEN
    }
    for session in (app, *(members[one] for one in FOREMEN)):
        transcript = [message async for message in session.transcript()]
        assert_well_formed(transcript)
        told = Counter(one.get_text() for m in transcript for one in m.get_tool_results() if one.name == "Agent")
        assert told == Counter(f"{one} is done." for one in expected[session.workflow_id])
        outcomes = [child.outcome for child in (await session.status()).children]
        assert outcomes == ["success"] * len(expected[session.workflow_id])
        last = [message for message in transcript if message.role == "assistant"][-1]
        assert last.finished_reason in (FinishedReason.COMPLETED, None)

    async def counted() -> bool:
        query = f"TaskQueue = '{stage.app.settings.task_queue}'"
        started = [row.id async for row in stage.app.client.list_workflows(query)]
        return Counter(started) == Counter([app.workflow_id, *(one.workflow_id for one in members.values())])

    await until(counted)
    await job.replays()


async def the_budget_is_settled(root: Session, billed: Counter[str]) -> None:
    """To the token: each answer that a session has heard is spent once, at the root, and each attempt beside it that
    the provider has in its journal is named as of unknown outcome."""
    told = await standing(root)
    doubtful = told.doubtful.get("calls", 0)
    doubtful_tokens = told.doubtful.get("tokens", 0)
    assert len(billed) == TURNS
    assert told.spent["calls"] - doubtful == TURNS
    assert told.spent["tokens"] - doubtful_tokens == TURNS * (INPUT_TOKENS + OUTPUT_TOKENS)
    assert not any(told.reserved.values())
    assert billed.total() <= told.spent["calls"]
