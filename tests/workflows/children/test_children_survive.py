"""Kills, continue-as-new and ends from outside in mid-task: each sub-agent is started once, and heard of once."""

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.e2e.processes import worker
from tests.workflows.children.trees import SUMMED_UP, agent, asked, child_of, lead, listed, outcomes, runs, tasks
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, push_over, results, until

pytestmark = pytest.mark.server

SENDS = (calls("send", to="Ana"), {"text": "Sent."})
SUCCESS, ERROR = ToolResultState.SUCCESS, ToolResultState.ERROR


async def test_a_lead_that_continues_as_new_hears_of_what_it_started_before(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)})
    reply = await session.submit("Go")
    child = child_of(stage, session)
    call = await asked(child)

    await push_over(stage, session)
    assert await outcomes(session) == [("t1", "scout", "")]
    await child.confirm(call, allow=True)

    assert results(await session.wait(reply)) == [(SUCCESS, "Sent.")]
    assert await runs(stage, child) == 1


async def test_a_sub_agent_that_continues_as_new_still_knows_whom_to_tell(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)})
    reply = await session.submit("Go")
    child = child_of(stage, session)
    call = await asked(child)

    await push_over(stage, child)
    await child.confirm(call, allow=True)

    assert results(await session.wait(reply)) == [(SUCCESS, "Sent.")]


@pytest.mark.proves("X14")
async def test_a_worker_that_is_killed_in_mid_task_starts_nothing_twice_and_loses_no_result(unserved: Stage) -> None:
    stage = unserved
    settings = stage.worker_settings
    slow = {"tool_calls": calls("send", to="Ana")["tool_calls"], "delay_ms": 100}
    session = lead(
        stage,
        {"scout": agent(stage, slow, {"text": "Sent.", "delay_ms": 100})},
        tasks("t1 scout", "t2 scout"),
        SUMMED_UP,
    )
    children = [child_of(stage, session, one) for one in ("t1", "t2")]
    async with worker(settings) as first:
        reply = await session.submit("Go")

        async def has_started() -> bool:
            return len((await session.status()).children) == 2

        await until(has_started)
        await first.kill()
    async with stage.another_worker():
        waiting = [await listed(stage, child) for child in children]
        for child, call in zip(children, waiting, strict=True):
            await child.confirm(call, allow=True)
        done = await session.wait(reply)

        assert results(done) == [(SUCCESS, "Sent."), (SUCCESS, "Sent.")]
        assert await outcomes(session) == [("t1", "scout", "success"), ("t2", "scout", "success")]
        assert [await runs(stage, child) for child in children] == [1, 1]


@pytest.mark.parametrize("rolled", [False, True], ids=["in the run that started it", "behind a continue-as-new"])
async def test_one_whose_session_is_terminated_is_told_as_lost(stage: Stage, *, rolled: bool) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)})
    reply = await session.submit("Go")
    child = child_of(stage, session)
    await asked(child)

    if rolled:
        await push_over(stage, session)
    await stage.handle(child).terminate("by hand")

    ((state, said),) = results(await session.wait(reply))
    assert state is ERROR
    assert said.startswith(f"No result: the session '{child.id}' of the sub-agent 'scout' was ended from outside (")
    assert await outcomes(session) == [("t1", "scout", "lost")]


async def test_a_lead_that_is_terminated_leaves_a_sub_agent_that_ends_its_task_and_is_well(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS, {"text": "Still here."})})
    await session.submit("Go")
    child = child_of(stage, session)
    call = await asked(child)

    await stage.handle(session).terminate("by hand")
    await child.confirm(call, allow=True)

    async def is_idle() -> bool:
        return (await child.status()).status == "idle"

    await until(is_idle)
    assert (await child.reply("Are you there?")).get_text_content() == "Still here."


async def test_a_session_of_that_name_is_never_taken_for_the_sub_agent(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)})
    stranger = child_of(stage, session)
    stranger = stage.app.session(stranger.id, agent=stage.agent({"text": "I am not yours."}, name="scout"))
    await stranger.reply("Hello")

    done = await session.reply("Go")

    ((state, said),) = results(done)
    assert state is ERROR
    assert f"session '{stranger.id}' could not be started: there is a session of that name already" in said
    assert done.get_text_content() == "Summed up."
    assert (await stranger.status()).model_calls == 1
