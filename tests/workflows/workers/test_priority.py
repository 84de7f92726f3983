"""Priority and fairness key of sessions and of what they start, as a real server has them."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client, ScheduleActionStartWorkflow
from temporalio.common import Priority

from longhaul.activities.models.providers import Providers
from longhaul.agent.plain.ids import fairness_key
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import BadAgent
from longhaul.starter.client.schedule_cards import PREFIX
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import Naming, connect, let_go
from longhaul.starter.connection.pollers import backlog_of
from longhaul.starter.dev_server.dev_server import DYNAMIC_CONFIG, DevServer, DevServerSettings
from longhaul.testing import settings_for
from longhaul.workflows.contract import SEARCH_ATTRIBUTES, priority_of
from tests.limits import SURE_SECONDS
from tests.workflows.children.trees import SUMMED_UP, child_of, tasks
from tests.workflows.conftest import UNWATCHED, Line, Stage
from tests.workflows.incarnation.test_incarnations import closes
from tests.workflows.operations import push_over, results, until
from tests.workflows.slot_tools import SHIFTS, TOOLS

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"tools": ("toil",), "permission": {"mode": "bypass"}}
QUEUED = int(os.environ.get("QUEUED", "40"))
"""Sessions of one user that wait for the only worker."""
FAIR = {"matching.enableFairness": True}
"""Of the server: it orders tasks by priority, and in one priority by fairness key."""


def toil(shift: str, seconds: float = 0) -> Line:
    return {"tool_calls": [{"id": "t0", "name": "toil", "input": {"shift": shift, "seconds": seconds}}]}


async def turn_of(client: Client, session: Session) -> tuple[int, str]:
    """Priority and fairness key of its newest run, as the server describes them."""
    described = await client.get_workflow_handle(session.workflow_id).describe()
    found = described.raw_description.workflow_execution_info.priority
    return found.priority_key, found.fairness_key


async def turns_of_calls(session: Session) -> list[str]:
    """The same, as the server told the worker with each call."""
    return [said async for each in session.transcript() for _, said in results(each)]


async def test_calls_and_sub_agents_have_the_turn_of_their_session_unless_they_name_their_own(unserved: Stage) -> None:
    # Of an activity that its worker begins without a poll the server says no priority.
    stage = unserved.with_settings(tools=TOOLS, activities_per_second=1_000)
    scout = {"model": stage.script(toil(stage.name), {"text": "Seen."}), "tools": ["toil"], "stuck": UNWATCHED}
    agents = {"scout": scout, "medic": {**scout, "priority": 1}}
    lines = (toil(stage.name), tasks("t1 scout", "t2 medic"), SUMMED_UP)
    session = stage.session(*lines, user="ana", priority=2, agents=agents, **FREE)
    async with stage.another_worker():
        await session.reply("Go")

        below = [child_of(stage, session, "t1", "scout"), child_of(stage, session, "t2", "medic")]
        assert [await turn_of(stage.client, each) for each in (session, *below)] == [(2, "ana"), (2, "ana"), (1, "ana")]
        assert [await turns_of_calls(each) for each in below] == [["2 ana"], ["1 ana"]]
        assert (await turns_of_calls(session))[0] == "2 ana"


async def test_a_sub_agents_own_key_is_hashed_where_the_server_would_refuse_it(stage: Stage) -> None:
    key = "ü" * 64
    scout = {"model": stage.script({"text": "Seen."}), "fairness_key": key, "stuck": UNWATCHED}
    session = stage.session(tasks("t1 scout"), SUMMED_UP, user="ana", agents={"scout": scout})
    await session.reply("Go")

    assert await turn_of(stage.client, child_of(stage, session, "t1", "scout")) == (0, fairness_key(key))


async def test_a_session_that_continues_as_new_or_is_opened_again_keeps_its_turn(stage: Stage) -> None:
    session = stage.session({"text": "One."}, user="ben", priority=4, idle_close_seconds=5)
    await session.reply("Go")

    await push_over(stage, session)
    continued = await turn_of(stage.client, session)
    first = await closes(stage, session)
    unknown = stage.app.session(session.id, user="ben", agent=AgentSpec(name=session.spec.name))
    await unknown.notify("tide")
    described = await stage.handle(session).describe()

    assert continued == (4, "ben")
    assert (described.run_id != first, await turn_of(stage.client, session)) == (True, (4, "ben"))


async def test_the_callers_priority_stands_in_place_of_the_agents(stage: Stage) -> None:
    agent = stage.agent({"text": "One."}, priority=5, team="harbour")
    sessions = [stage.app.session(f"{stage.name}-{given}", agent=agent, priority=given) for given in (1, None)]
    await asyncio.gather(*(each.reply("Go") for each in sessions))

    assert [await turn_of(stage.client, each) for each in sessions] == [(1, "harbour"), (5, "harbour")]


async def test_a_run_of_a_schedule_has_the_turn_of_the_session_that_it_asks(stage: Stage) -> None:
    name = f"tide-{uuid4().hex[:8]}"
    agent = stage.agent({"text": "Low."}, priority=5)
    await stage.app.schedules.add(name, "Look", agent=agent, user="ana", session=name, cron="0 0 1 1 *")
    try:
        action = (await stage.client.get_schedule_handle(PREFIX + name).describe()).schedule.action
        await stage.app.schedules.trigger(name)
        session = stage.app.session(name, user="ana", agent=agent)
        await until(session.has_started)
    finally:
        await stage.app.schedules.remove(name)

    assert isinstance(action, ScheduleActionStartWorkflow)
    assert action.priority == Priority(priority_key=5, fairness_key="ana")
    assert await turn_of(stage.client, session) == (5, "ana")


async def test_a_hub_has_the_turn_of_its_user(stage: Stage) -> None:
    one = stage.session({"text": "One."}, user="ana")
    async with stage.app.hub(f"jury-{stage.name[-6:]}", one) as hub:
        described = await stage.client.get_workflow_handle(hub.workflow_id).describe()

    assert described.raw_description.workflow_execution_info.priority.fairness_key == "ana"


def test_the_fairness_key_is_the_agents_own_or_the_user_or_the_team(tmp_path: Path) -> None:
    opaque = Naming(settings_for(tmp_path, opaque_ids=True, id_key=SecretStr("k" * 20))).indexed
    plain, of_team = AgentSpec(), AgentSpec(team="harbour")
    own = AgentSpec(team="harbour", fairness_key="batch")
    known = [(own, "ana"), (of_team, "ana"), (of_team, None), (of_team, ""), (plain, None)]

    keys = [priority_of(spec, user, str).fairness_key for spec, user in known]
    hidden = priority_of(plain, "ana", opaque).fairness_key

    assert keys == ["batch", "ana", "harbour", "harbour", None]
    assert (hidden, len(hidden or "")) == (opaque("ana"), 40)


@pytest.mark.parametrize("priority", [0, 6])
def test_a_priority_that_there_is_not_is_refused(unserved: Stage, priority: int) -> None:
    with pytest.raises(BadAgent, match=rf"agent 'lamp': priority: .* or equal to [15] \(it is {priority}\)"):
        unserved.app.session("s", agent=unserved.agent({"text": "One."}), priority=priority)


@pytest.fixture
async def fair(temporal_cli: Path, tmp_path: Path) -> AsyncIterator[Stage]:
    """A stage on a server of its own, which orders tasks; nobody polls yet."""
    settings = DevServerSettings(
        temporal=temporal_cli,
        directory=tmp_path / "temporal",
        search_attributes=SEARCH_ATTRIBUTES,
        dynamic_config={**DYNAMIC_CONFIG, **FAIR},
        start_seconds=SURE_SECONDS,
    )
    own = settings_for(tmp_path, tools=TOOLS, activity_slots=1)
    (tmp_path / "workspace").mkdir()
    async with DevServer(settings) as server:
        client = await connect(server.address, settings=own)
        stage = Stage(client, own, tmp_path, tmp_path / "workspace", own.task_queue, Providers({}, []))
        yield stage
        await stage.providers.close()
        await let_go(client)


async def test_another_user_and_an_urgent_session_pass_the_queue_of_one_user(fair: Stage) -> None:
    theirs = f"{fair.name}-crowd"
    turns: tuple[dict[str, Any], ...] = ({"user": "ben"}, {"user": "ana", "priority": 1})
    crowd = [fair.session(toil(theirs, 0.2), {"text": "Done."}, user="ana", **FREE) for _ in range(QUEUED)]
    async with fair.another_worker():
        await asyncio.gather(*(each.submit("Go") for each in crowd))
        waiting = await backlog_of(fair.client, fair.settings.task_queue, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY)

        for turn in turns:
            await fair.session(toil(fair.name), {"text": "Done."}, **turn, **FREE).reply("Go")

    # In the order in which they came, all calls of the crowd would have been made by now.
    assert waiting.tasks > QUEUED // 2
    assert len(SHIFTS[theirs].started if theirs in SHIFTS else ()) < QUEUED // 4
