"""A person stops what works in the background of an idle session: it is dead, and the agent hears so later."""

import asyncio

import pytest

from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.e2e.processes import a_while, running_with, worker
from tests.workflows.children.trees import agent, asked, child_of, lead, outcomes
from tests.workflows.conftest import Stage
from tests.workflows.operations import push_over, recorded, until
from tests.workflows.roomy import failure_of_replay
from tests.workflows.steering.test_background_commands import BYPASS, STUBBORN, fates, hints, session_of, started

pytestmark = pytest.mark.server

ASKS = ({"tool_calls": [{"name": "send", "input": {"to": "Ana"}}]}, {"text": "Sent."})
GIVEN = {
    "tool_calls": [{"id": "t1", "name": "Agent", "input": {"agent": "scout", "task": "go", "run_in_background": True}}]
}


async def at_work(mark: str) -> None:
    """Until the stubborn command with this number, and the child that has left its group, both run."""

    async def runs() -> bool:
        return len(running_with(f"sleep\0{mark}")) >= 2

    await until(runs)


async def replies(stage: Stage, session: Session) -> int:
    return len([entry for entry in await recorded(stage, session) if entry.kind == "started"])


@pytest.mark.proves("C3")
async def test_a_command_that_ignores_its_end_is_dead_with_all_that_it_started(stage: Stage) -> None:
    mark = a_while()
    session = session_of(
        stage, started("b1", f"echo up; {STUBBORN.format(mark)}"), {"text": "I wait."}, {"text": "So be it."}
    )
    await session.reply("Go")
    await at_work(mark)
    with pytest.raises(Refused, match="has the id 'b9'; at work there: 'b1'"):
        await session.stop_background("b9")

    first, second = await asyncio.gather(*(session.stop_background("b1", by=who) for who in ("ana", "ben")))

    assert running_with(mark) == []
    assert first == second == await session.stop_background("b1", by="eve") == {"b1": "stopped"}
    assert await session.stop_background() == {}
    asks = [entry for entry in await recorded(stage, session) if entry.kind == "stop_asked"]
    assert [(entry.call_ids, entry.by) for entry in asks] in [[(("b1",), "ana")], [(("b1",), "ben")]]
    (hint,) = await hints(session)
    assert f"'b1' is over: stopped. It was to stop: '{asks[0].by}' asked for that." in hint
    assert (await session.status()).status == "idle"
    assert await replies(stage, session) == 1
    assert (await session.reply("And?")).get_text_content() == "So be it."
    assert await failure_of_replay(stage, session) is None


@pytest.mark.proves("C3")
async def test_a_sub_agent_stops_where_it_waits_and_its_lead_reads_how_far_it_came(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *ASKS)}, GIVEN, {"text": "I wait."}, {"text": "So be it."})
    await session.reply("Go")
    child = child_of(stage, session)
    await asked(child)

    assert await session.stop_background(by="ana") == {"t1": "interrupted"}

    assert await outcomes(session) == [("t1", "scout", "interrupted")]
    told = [str(block.hint) async for m in session.transcript() for block in m.content if block.type == "hint"]
    assert "ended its task in the background: interrupted. It was to stop: 'ana' asked for that." in told[-1]
    assert child.id in told[-1]
    assert (await session.status()).status == "idle"
    assert await replies(stage, session) == 1
    assert await child.end() == "completed"
    assert [await failure_of_replay(stage, one) for one in (session, child)] == [None, None]


async def test_it_reaches_what_an_earlier_run_has_started(stage: Stage) -> None:
    mark = a_while()
    session = stage.session(
        {"tool_calls": [*started("b1", STUBBORN.format(mark))["tool_calls"], *GIVEN["tool_calls"]]},
        {"text": "I wait."},
        tools=("Bash",),
        agents={"scout": agent(stage, *ASKS, permission={"rules": [{"tool_name": "send", "behavior": "ask"}]})},
        permission=BYPASS,
    )
    await session.reply("Go")
    await asked(child_of(stage, session))
    await at_work(mark)
    await push_over(stage, session)

    assert await session.stop_background(by="ana") == {"b1": "stopped", "t1": "interrupted"}

    assert running_with(mark) == []
    assert await failure_of_replay(stage, session) is None


async def test_of_one_whose_worker_is_gone_it_says_unknown(unserved: Stage) -> None:
    mark = a_while()
    stage = unserved
    settings = stage.worker_settings
    session = session_of(stage, started("b1", STUBBORN.format(mark)), {"text": "I wait."})
    async with worker(settings) as first:
        await session.reply("Go")
        await at_work(mark)
        await first.kill()
    async with stage.another_worker():
        ends = await session.stop_background(by="ana")
        assert ends in ({"b1": ""}, {"b1": "unknown"}), "no worker has seen it stop"

        async def told() -> bool:
            return await fates(session) == ["unknown"]

        await until(told)
        (hint,) = await hints(session)
        assert "is over: unknown. It was to stop: 'ana' asked for that." in hint
        assert "Outcome unknown" in hint
        assert (await session.status()).status == "idle"
        assert await session.stop_background() == {}


async def test_a_session_that_was_ended_from_outside_is_opened_for_it(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *ASKS)}, GIVEN, {"text": "I wait."})
    await session.reply("Go")
    child = child_of(stage, session)
    await asked(child)
    await stage.handle(session).terminate("by hand")

    assert await session.stop_background("t1", by="ana") == {"t1": "interrupted"}

    assert (await child.status()).status == "idle"
    assert [(one.outcome, one.stopped_by) for one in (await session.status()).children] == [("interrupted", "ana")]
