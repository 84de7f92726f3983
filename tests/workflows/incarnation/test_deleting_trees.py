"""A session is deleted with its sub-agents, and theirs; the folders that they worked in stay, and are named."""

from pathlib import Path

import pytest
from pydantic import SecretStr
from temporalio.client import WorkflowExecutionStatus

from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.stores.state.open_store import open_store
from tests.workflows.children.trees import SUMMED_UP, agent, child_of, lead, listed, tasks
from tests.workflows.conftest import Stage
from tests.workflows.incarnation.test_deleting import elsewhere
from tests.workflows.incarnation.test_encrypted import master_key
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

DUG = {"text": "Dug."}


async def is_open(stage: Stage, session: Session) -> bool:
    return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.RUNNING


async def stored(stage: Stage, session: Session) -> bool:
    store = open_store(stage.settings.store, data_dir=stage.settings.data_dir)
    found = await store.get_session(session.user, session.spec.name, session.id)
    return found is not None and not found.deleted_at


@pytest.mark.parametrize("encrypted", [False, True])
async def test_sub_agents_that_work_and_those_that_have_ended_go_with_their_lead(
    unserved: Stage, tmp_path: Path, *, encrypted: bool
) -> None:
    stage = await elsewhere(unserved, **({"master_key": SecretStr(master_key())} if encrypted else {}))
    (tmp_path / "pit").mkdir()
    digger = agent(stage, calls("send", to="Bo"), DUG, workspace=Workspace(root=str(tmp_path / "pit")).model_dump())
    scout = agent(stage, tasks("d1 digger"), DUG, agents={"digger": digger})
    async with stage.another_worker():
        session = lead(
            stage, {"scout": scout, "clerk": agent(stage, DUG)}, tasks("t1 scout", "t2 clerk"), SUMMED_UP, user="ana"
        )
        await session.submit("Go")
        (at_work, ended) = (child_of(stage, session), child_of(stage, session, "t2", "clerk"))
        below = child_of(stage, at_work, "d1", "digger")
        await listed(stage, below)

        async def clerk_has_closed() -> bool:
            return await ended.has_started() and not await is_open(stage, ended) and await stored(stage, ended)

        await until(clerk_has_closed)

        done = await session.stored.delete(terminate=True, by="ana")

        assert set(done.subagents) == {at_work.id, ended.id, below.id}
        assert set(done.workspaces) == {str(stage.workspace), str(tmp_path / "pit")}
        assert (done.terminated, done.key, done.runs >= 4) == (True, encrypted, True)
        assert [await stored(stage, each) for each in (session, at_work, ended, below)] == [False] * 4

        async def all_have_ended() -> bool:
            for each in (session, at_work, ended, below):
                if await each.has_started() and await is_open(stage, each):
                    return False
            return True

        await until(all_have_ended)
    assert stage.workspace.is_dir()


async def test_a_lead_that_closed_is_not_deleted_while_a_sub_agent_is_open(stage: Stage) -> None:
    scout = agent(stage, DUG, idle_close_seconds=3_600)
    session = lead(stage, {"scout": scout}, idle_close_seconds=1)
    await session.reply("Go")
    child = child_of(stage, session)

    async def lead_has_closed() -> bool:
        return not await is_open(stage, session)

    await until(lead_has_closed)
    with pytest.raises(Refused, match=rf"has a sub-agent that is open, '{child.id}'"):
        await session.stored.delete()
    kept = await stored(stage, session), await is_open(stage, child)
    done = await session.stored.delete(terminate=True)

    assert kept == (True, True)
    assert (done.terminated, done.subagents) == (False, (child.id,))
    assert not await child.stored.is_known()


async def test_a_sub_agent_is_deleted_by_itself_and_its_lead_stays(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, DUG)})
    await session.reply("Go")
    child = child_of(stage, session)

    done = await child.stored.delete(terminate=True)

    assert (done.subagents, done.workspaces) == ((), (str(stage.workspace),))
    assert (await session.status()).status == "idle"
