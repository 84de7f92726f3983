"""Budgets over a tree on the server: what is put aside below comes out of the root's, and is settled once."""

from typing import Any

import pytest

from longhaul.activities.contract import CALL_MODEL
from longhaul.agent.values.budget import Raise
from longhaul.agent.views.session_views import BudgetStanding
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.workflows.children.trees import SUMMED_UP, agent, child_of, lead, tasks
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import calls, push_over, results, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

BILLED = {"usage": {"input_tokens": 700, "output_tokens": 300}}
ROOM = {"max_output_tokens": 1_000}


def paid(*lines: Line) -> list[Line]:
    return [{**BILLED, **line} for line in lines]


def scout(stage: Stage, *lines: Line, **spec: Any) -> dict[str, Any]:
    return agent(stage, *paid(*lines), model_config=ROOM, **spec)


async def standing(session: Session) -> BudgetStanding:
    found = (await session.status()).budget
    assert found is not None
    return found


async def asks(session: Session) -> str:
    async def parked() -> bool:
        return await session.has_started() and bool((await standing(session)).asks)

    await until(parked)
    return (await standing(session)).asks


@pytest.mark.proves("X8")
async def test_what_two_sub_agents_spend_is_spent_at_the_root_to_the_token(stage: Stage) -> None:
    one = scout(stage, calls("fetch", page=7), {"text": "Read."})
    session = lead(
        stage,
        {"scout": one},
        *paid(tasks("t1 scout", "t2 scout"), SUMMED_UP),
        budget={"max_tokens": 100_000, "max_calls": 10},
        model_config=ROOM,
    )

    await session.reply("Go")

    told = await standing(session)
    assert (told.spent["tokens"], told.spent["calls"]) == (6_000, 6)
    assert told.reserved == {"tokens": 0, "cost": 0, "calls": 0}
    assert told.doubtful == {}
    assert await failure_of_replay(stage, session) is None


async def test_a_sub_agent_stands_still_at_its_share_is_given_more_and_goes_on_over_continue_as_new(
    stage: Stage,
) -> None:
    one = scout(stage, calls("fetch", page=7), {"text": "Read."}, budget={"max_calls": 1})
    session = lead(
        stage, {"scout": one}, *paid(tasks("t1 scout"), SUMMED_UP), budget={"max_calls": 3}, model_config=ROOM
    )
    reply = await session.submit("Go")
    child = child_of(stage, session)
    await asks(child)
    assert (await standing(session)).reserved["calls"] == 1

    with pytest.raises(Refused, match=f"put aside by the session '{session.id}'; send it there, with child='t1'"):
        await child.change_budget({"calls": 1})
    with pytest.raises(Refused, match="1 call of this session's own budget is left; raise that first"):
        await session.change_budget({"calls": 2}, child="t1")
    await push_over(stage, session)
    await push_over(stage, child)
    await session.change_budget(Raise(calls=1), child="t1", request_id="once")
    await session.change_budget(Raise(calls=1), child="t1", request_id="once")

    await asks(session)
    assert (await standing(session)).spent["calls"] == 3
    await session.change_budget(Raise(calls=1))

    async def ended() -> bool:
        return (await session.status()).status == "idle"

    await until(ended)
    assert results(await session.wait(reply))[0][1] == "Read."
    assert (await standing(child)).limits == {"calls": 2}
    assert await failure_of_replay(stage, session) is None


async def test_what_a_grandchild_may_spend_comes_out_of_its_parent_s_share(stage: Stage) -> None:
    digger = scout(stage, {"text": "Dug."})
    one = scout(stage, tasks("d1 digger"), {"text": "The digger has it."}, agents={"digger": digger})
    session = lead(
        stage, {"scout": one}, *paid(tasks("t1 scout"), SUMMED_UP), budget={"max_calls": 12}, model_config=ROOM
    )

    await session.reply("Dig")

    child = child_of(stage, session)
    deep = child_of(stage, child, "d1", "digger")
    limits = [(await standing(one)).limits["calls"] for one in (session, child, deep)]
    assert limits == [12, 6, 3]
    assert [(await standing(one)).spent["calls"] for one in (deep, child, session)] == [1, 3, 5]
    assert [(await standing(one)).left["calls"] for one in (deep, child, session)] == [0, 0, 7]


CREW = [f"t{number}" for number in range(20)]


async def all_parked(stage: Stage, session: Session, number: int) -> list[str]:
    """Calls whose sub-agents wait for budget, once so many do."""
    found = list[str]()

    async def listed() -> bool:
        nonlocal found
        waiting = [card.session_id for card, call in (await stage.app.inbox()).calls if call.waits_for == "budget"]
        found = [one.rpartition(".")[2] for one in waiting if one.startswith(f"{session.id}.")]
        return len(found) == number

    await until(listed)
    return found


async def made_calls(stage: Stage, session: Session) -> int:
    """Of models by the whole tree, as the server has counted them."""
    tree = [session, *(child_of(stage, session, one) for one in CREW)]
    return sum([(await stage.scheduled(one)).count(CALL_MODEL) for one in tree])


@pytest.mark.proves("X8")
async def test_twenty_at_once_make_no_call_more_than_the_root_allows_and_go_on_when_it_is_raised(stage: Stage) -> None:
    one = scout(stage, calls("fetch", page=7), {"text": "Read."})
    session = lead(
        stage,
        {"scout": one},
        *paid(tasks(*(f"{call_id} scout" for call_id in CREW)), SUMMED_UP),
        budget={"max_calls": 26},
        model_config=ROOM,
    )
    reply = await session.submit("Go")

    # 25 calls are left, for twenty and the lead: four have two, sixteen one, and the lead keeps the last.
    waiting = await all_parked(stage, session, 16)
    assert await made_calls(stage, session) == 25
    root = stage.handle(session)
    await root.signal("budget", {"more": {"calls": 16}, "by": "ana"})
    for call_id in waiting:
        await root.signal("budget", {"more": {"calls": 1}, "child": call_id, "by": "ana", "request_id": call_id})

    done = await session.wait(reply)
    assert [said for _, said in results(done)] == ["Read."] * 20
    told = await standing(session)
    assert (told.spent["calls"], told.left["calls"], told.spent["tokens"]) == (42, 0, 42_000)
    assert await made_calls(stage, session) == 42


@pytest.mark.proves("X8")
async def test_where_more_is_billed_than_was_estimated_only_the_calls_in_flight_go_past(stage: Stage) -> None:
    dear = {"usage": {"input_tokens": 9_700, "output_tokens": 300}}
    one = agent(
        stage, {**calls("fetch", page=7), **dear}, {"text": "Never."}, model_config=ROOM, budget={"max_tokens": 3_000}
    )
    session = lead(
        stage,
        {"scout": one},
        *paid(tasks(*(f"{call_id} scout" for call_id in CREW)), SUMMED_UP),
        budget={"max_tokens": 64_000},
        model_config=ROOM,
    )
    reply = await session.submit("Go")

    await all_parked(stage, session, 20)
    # Each had put 3,000 aside for its one call, which cost 10,000; none makes another one.
    assert await made_calls(stage, session) == 1 + 20
    await session.interrupt()
    await session.wait(reply)
    assert (await standing(session)).spent["tokens"] == 1_000 + 20 * 10_000
