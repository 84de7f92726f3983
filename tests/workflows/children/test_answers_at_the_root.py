"""What sub-agents wait for is found and answered from the root, each answer bound to what was shown."""

import re
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from longhaul.agent.values.budget import Raise
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.permission import PermissionContext
from longhaul.starter.cli.session_lookup import FOUND_FROM_ROOT, by_session, place_of, waiting_in
from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import WaitingBelow
from longhaul.starter.client.wire import Refused
from tests.workflows.children.trees import SUMMED_UP, agent, child_of, ended, lead, tasks
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

SENDS = (calls("send", to="Ana"), {"text": "Sent, I hope."})
SUCCESS = ToolResultState.SUCCESS


async def waiting(session: Session, number: int) -> list[WaitingBelow]:
    found = list[WaitingBelow]()

    async def all_there() -> bool:
        if not await session.has_started():
            return False
        found[:] = await session.tree.pending()
        return len(found) == number

    await until(all_there)
    return found


async def are_open_below(session: Session, number: int) -> bool:
    """And all that wait, as the index has it."""
    found = await session.tree.open_below()
    return len(found) == number and sum(len(each.asks) for each in found) == 2


@pytest.mark.proves("X14")
async def test_approvals_of_three_levels_are_listed_and_answered_at_the_root(stage: Stage) -> None:
    digger = agent(stage, *SENDS)
    scout = agent(stage, tasks("d1 digger"), {"text": "The digger has it."}, agents={"digger": digger})
    clerk = agent(stage, *SENDS)
    session = lead(stage, {"scout": scout, "clerk": clerk}, tasks("t1 scout", "t2 clerk"), SUMMED_UP)
    reply = await session.submit("Go")

    found = await waiting(session, 2)

    paths = sorted(each.call.path for each in found)
    assert paths == ["lamp › clerk › send", "lamp › scout › digger › send"]
    (deep,) = (each for each in found if "digger" in each.call.path)
    assert [call_id for _, call_id in deep.above] == ["t1", "d1"]
    await until(lambda: are_open_below(session, 3))
    scout_at_work = deep.above[1][0]
    (only,) = await scout_at_work.tree.open_below()
    assert (only.session.id, [call.call_id for call in only.asks]) == (deep.session.id, [deep.call.call_id])
    assert await deep.session.tree.open_below() == []
    changed = deep.call.model_copy(update={"digest": "of something else"})
    with pytest.raises(Refused):
        await deep.session.confirm(changed, allow=True)
    page = (Path(__file__).parents[3] / "docs" / "agents" / "subagents.md").read_text(encoding="utf-8")
    (listing,) = (text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "tree.pending" in text)
    made: dict[str, Any] = {}
    exec(f"async def run(session):\n{indent(listing, '    ')}", made)  # noqa: S102  our own page
    await made["run"](session)
    told = dict.fromkeys(said for _, said in results(await session.wait(reply)))
    assert list(told) in (["The digger has it.", "Sent, I hope."], ["Sent, I hope.", "The digger has it."])
    assert await session.tree.pending() == []


async def test_a_command_at_the_lead_s_name_finds_where_a_call_waits(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)})
    reply = await session.submit("Go")
    (only,) = await waiting(session, 1)

    found = await waiting_in(session, [], "person")
    ((place, asked),) = by_session(session, found, [])
    assert (place.id, list(asked)) == (f"{session.id}.t1", [only.call.call_id])
    ((at_root, missing),) = by_session(session, await waiting_in(session, ["zz"], "person"), ["zz"])
    assert (at_root.id, missing) == (session.id, {"zz": None})
    assert (await place_of(session, only.call.call_id, "person")).id == place.id
    assert (await place_of(session, only.call.call_id, "outside")).id == session.id

    await place.confirm(only.call, allow=True)
    assert results(await session.wait(reply)) == [(SUCCESS, "Sent, I hope.")]


@pytest.mark.parametrize("kind", [each for each in FOUND_FROM_ROOT if each != "budget"])  # which is below
async def test_whatever_waits_below_is_shown_with_its_path_and_answered_from_the_root(stage: Stage, kind: str) -> None:
    asks = {
        "person": calls("send", to="Ana"),
        "outside": calls("courier", parcel="a ring"),
        "resolution": calls("engrave", text="Ana"),
    }[kind]
    scout = agent(stage, asks, {"text": "Seen."}) | {
        "tools": ["send", "courier", "engrave"],
        "permission": {"rules": [{"tool_name": "engrave"}]},
        "on_unknown_outcome": "tell",  # the task ends, and the unknown outcome stays
    }
    deadline = {"remind_after": "1d", "expire_after": "2d"}
    session = lead(stage, {"scout": scout}, permission=PermissionContext.model_validate({"deadline": deadline}))
    reply = await session.submit("Go")
    if kind == "resolution":
        await session.wait(reply)

    (found,) = await waiting(session, 1)

    tool = asks["tool_calls"][0]["name"]
    assert (found.call.path, found.call.waits_for) == (f"lamp › scout › {tool}", kind)
    assert bool(found.call.remind_at and found.call.expires_at) is (kind != "resolution")
    place = await place_of(session, found.call.call_id, kind)
    assert place.id == f"{session.id}.t1"
    match kind:
        case "person":
            await place.confirm(found.call, allow=True)
        case "outside":
            await session.external_result(found.call.call_id, "delivered")
        case _:
            with pytest.raises(Refused, match="zz"):
                await session.resolve("zz", happened=True, by="bo")
            await session.resolve(found.call.call_id, happened=True, by="bo")
    assert results(await session.wait(reply)) == [(SUCCESS, "Seen.")]
    await waiting(session, 0)


async def test_a_deadline_below_ends_a_call_and_the_lead_goes_on(stage: Stage) -> None:
    heard = {"text": "Nobody was there.", "expect": {"last_contains": "Nobody decided"}}
    scout = agent(stage, calls("send", to="Ana"), heard)
    deadline = {"remind_after": "1s", "expire_after": "2s"}
    session = lead(stage, {"scout": scout}, permission=PermissionContext.model_validate({"deadline": deadline}))

    reply = await session.submit("Go")

    assert results(await ended(session, reply)) == [(SUCCESS, "Nobody was there.")]


async def test_a_budget_that_a_grandchild_waits_for_is_raised_from_the_root_down(stage: Stage) -> None:
    tight: dict[str, Any] = {"budget": {"max_calls": 1}}
    digger = agent(stage, calls("fetch", page=1), {"text": "Dug."}, **tight)
    scout = agent(
        stage, tasks("d1 digger"), {"text": "The digger has it."}, agents={"digger": digger}, budget={"max_calls": 3}
    )
    session = lead(stage, {"scout": scout}, budget={"max_calls": 5})
    reply = await session.submit("Go")
    (asks,) = await waiting(session, 1)
    assert (asks.call.waits_for, asks.session.id) == ("budget", f"{session.id}.t1.d1")

    await session.tree.raise_budget(asks, Raise(calls=1), by="ana")

    assert results(await session.wait(reply)) == [(SUCCESS, "The digger has it.")]
    budgets = [(await one.status()).budget for one in (session, child_of(stage, session), asks.session)]
    assert [each.limits["calls"] for each in budgets if each] == [6, 4, 2]
    assert [each.spent["calls"] for each in budgets if each] == [6, 4, 2]
