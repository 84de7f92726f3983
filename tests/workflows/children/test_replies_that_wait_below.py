"""A reply of a lead comes back when nothing moves without an answer to what its sub-agents ask."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cost import free_port, requests
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.reading.event_reader import SHORTEST_BELOW_SECONDS
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.telemetry.switches import runtime_with
from tests.workflows.children.trees import SUMMED_UP, agent, lead, tasks
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

SENT = {"text": "Sent."}
SUCCESS = ToolResultState.SUCCESS


async def test_the_loop_of_the_readme_answers_what_two_sub_agents_and_one_below_them_ask(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    digger = agent(stage, calls("send", to="Bo"), SENT)
    scout = agent(stage, tasks("d1 digger"), {"text": "The digger has it."}, agents={"digger": digger})
    clerk = agent(stage, calls("send", to="Ana"), SENT)
    session = lead(stage, {"scout": scout, "clerk": clerk}, tasks("t1 scout", "t2 clerk"), SUMMED_UP)
    page = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    (loop,) = re.findall(r"( +message = await session\.reply.*?print\(message[^\n]*)", page, re.DOTALL)
    made: dict[str, Any] = {"asyncio": asyncio, "input": lambda _question: "y"}
    exec(f"async def run(session):\n{loop}", made)  # noqa: S102  our own page

    await made["run"](session)

    *asked, said = capsys.readouterr().out.splitlines()
    assert sorted(line.split(" ", 1)[0] for line in asked) == ["send", "send"]
    assert {"Ana" in line for line in asked} == {True, False}
    assert said == "Summed up."
    assert await session.pending() == []


async def test_a_reply_that_waits_below_names_the_calls_that_pending_lists(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, calls("send", to="Ana"), SENT)})

    message = await session.reply("Go")

    (call,) = await session.pending()
    assert (message.finished_reason, message.metadata["waiting_for"]) == (None, [call.call_id])
    assert call.path == "lamp › scout › send"
    assert call.at is not None
    assert (call.at.session_id, call.at.agent) == (f"{session.id}.t1", "scout")
    assert await session.own_pending() == []
    with pytest.raises(Refused):
        await session.confirm(call.model_copy(update={"digest": "of something else"}), allow=True)
    await session.confirm(call, allow=False, reason="Not to Ana.")
    assert results(await session.wait(message.id)) == [(SUCCESS, "Sent.")]


async def test_a_reply_comes_back_for_a_budget_that_runs_out_below(stage: Stage) -> None:
    tight: dict[str, Any] = {"budget": {"max_calls": 1}}
    scout = agent(stage, calls("fetch", page=1), {"text": "Dug."}, **tight)
    session = lead(stage, {"scout": scout}, budget={"max_calls": 5})

    message = await session.reply("Go")

    assert message.finished_reason is None
    (waiting,) = await session.pending()
    assert (waiting.waits_for, waiting.at and waiting.at.session_id) == ("budget", f"{session.id}.t1")
    with pytest.raises(Refused, match=r"more: .*calls"):
        await session.tree.raise_budget(waiting, {"cals": 4})
    await session.tree.raise_budget(waiting, {"calls": 4}, by="ana")
    assert results(await session.wait(message.id)) == [(SUCCESS, "Dug.")]
    with pytest.raises(Refused, match="no longer waits"):
        await session.tree.raise_budget(waiting, {"calls": 4})


async def test_a_result_from_outside_is_handed_in_at_the_lead(stage: Stage) -> None:
    scout = agent(stage, calls("courier", parcel="a ring"), {"text": "Brought."}) | {"tools": ["courier"]}
    session = lead(stage, {"scout": scout})
    message = await session.reply("Go")
    (call,) = await session.pending()

    await session.external_result(call, "delivered")

    assert results(await session.wait(message.id)) == [(SUCCESS, "Brought.")]


@pytest.mark.parametrize("live", [True, False])
async def test_a_stream_of_a_lead_ends_as_its_reply_does(stage: Stage, *, live: bool) -> None:
    session = lead(stage, {"scout": agent(stage, calls("send", to="Ana"), SENT)})

    events = [event async for event in session.reply_stream("Go", live=live)]

    (call,) = await session.pending()
    last = events[-1]
    assert (last.type, last.name, last.seq) == ("CUSTOM", "waits_below", 0)
    assert last.value["waiting_for"] == [call.call_id]
    assert [one["path"] for one in last.value["calls"]] == ["lamp › scout › send"]
    assert last.value["calls"][0]["session_id"] == f"{session.id}.t1"
    again = session.until(last.reply_id)
    async with aclosing(again):
        told = list[AgentEvent]()
        while not again.over:
            told += await again.next()
    assert (again.over, told[-1].name, told[-1].reply_id) == ("waiting", "waits_below", last.reply_id)
    await session.confirm(call, allow=True)
    rest = session.until(last.reply_id, start=told[-2].seq + 1)
    async with aclosing(rest):
        while not rest.over:
            told += await rest.next()
    assert (rest.over, told[-1].type) == ("finished", "REPLY_END")
    assert results(await session.wait(last.reply_id)) == [(SUCCESS, "Sent.")]


async def test_what_waits_in_a_session_without_sub_agents_is_one_question(unserved: Stage) -> None:
    port = free_port()
    client = await connect(unserved.address, settings=unserved.settings, runtime=runtime_with(f"127.0.0.1:{port}"))
    async with unserved.another_worker():
        session = unserved.session(calls("send", to="Ana"), SENT)
        await session.reply("Go")
        counted = Longhaul(client, unserved.settings).session(session.id, agent=session.spec)

        pending = await counted.pending()

    assert [call.tool for call in pending] == ["send"]
    assert requests(port)["QueryWorkflow"] == 1
    await let_go(client)


BACKGROUND = "after one in the background"


def looking(stage: Stage, where: str, path: Path) -> Session:
    """A session of which one that gives a task looks at that path too, while its sub-agent asks."""
    look: Line = {"id": "k1", "name": "look_along", "input": {"path": str(path)}}
    in_background: Line = {"agent": "scout", "task": "go", "run_in_background": True}
    scout = agent(stage, calls("send", to="Ana"), SENT)
    both: Line = {"tool_calls": [*tasks("t1 scout")["tool_calls"], look]}
    own: dict[str, Any] = {"tools": ("look_along",), "permission": {"rules": [{"tool_name": "look_along"}]}}
    if where == BACKGROUND:
        given: Line = {"tool_calls": [{"id": "t1", "name": "Agent", "input": in_background}]}
        lines = [given, {"tool_calls": [look]}, SUMMED_UP, {"text": "Heard."}]
        return stage.session(*lines, agents={"scout": scout}, **own)
    if where == "next to one":
        return stage.session(both, SUMMED_UP, agents={"scout": scout}, **own)
    middle = agent(stage, both, SUMMED_UP, agents={"scout": scout}) | own
    return lead(stage, {"middle": middle}, tasks("m1 middle"), SUMMED_UP)


async def told_below(session: Session, reply: str) -> AsyncIterator[AgentEvent]:
    """The event that ends a stream of a reply whose sub-agents wait; none where it ends otherwise."""
    async with aclosing(session.until(reply)) as until_then:
        while not until_then.over:
            for event in await until_then.next():
                if event.name == "waits_below":
                    yield event


@pytest.mark.parametrize("where", [BACKGROUND, "next to one", "in a sub-agent next to one below it"])
async def test_a_reply_goes_on_whose_sub_agents_wait_while_a_tool_runs(stage: Stage, where: str) -> None:
    path = stage.folder / "looked"
    session = looking(stage, where, path)
    reply = await session.submit("Go")

    async def waits_in_the_index() -> bool:
        return bool(await asyncio.to_thread(path.exists)) and (await session.tree.asking())[1]

    waiting = asyncio.create_task(session.wait(reply))
    streamed = asyncio.create_task(anext(told_below(session, reply), None))
    await until(waits_in_the_index)
    await asyncio.wait({waiting, streamed}, timeout=4 * SHORTEST_BELOW_SECONDS, return_when="FIRST_COMPLETED")
    early = [task for task in (waiting, streamed) if task.done()]
    still = await session.tree.standing_still()
    path.with_suffix(".enough").touch()

    assert (early, still) == ([], [])
    told = await streamed
    if where != BACKGROUND:
        (call,) = await session.pending()
        assert told is not None
        assert (await waiting).metadata["waiting_for"] == told.value["waiting_for"] == [call.call_id]
        await session.confirm(call, allow=True)
    assert (await session.wait(reply)).get_text_content() == "Summed up."
