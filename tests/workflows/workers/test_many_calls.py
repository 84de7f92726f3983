"""Hundreds and thousands of calls in one turn of a model: so many as make sense run, some at a time and in their order;
the others are dropped, which the model is told. The session goes on."""

import time
from dataclasses import replace
from typing import Any

import pytest

from longhaul.agent.reducer.all_changes import CALLS_AT_ONCE, CALLS_OF_A_TURN
from longhaul.agent.values.conversation.messages import HintBlock, ToolResultBlock, ToolResultState, problem
from longhaul.agent.values.conversation.tools import ran_in
from longhaul.starter.client.session import Session
from tests.activities.models.rules import assert_taken_by_all
from tests.limits import SURE_SECONDS, usual
from tests.workflows.conftest import Stage
from tests.workflows.operations import results

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"mode": "bypass"}


def turn(calls: int) -> dict[str, Any]:
    return {"tool_calls": [{"name": "fetch", "input": {"page": page}} for page in range(calls)]}


async def hints(session: Session) -> list[str]:
    messages = [each async for each in session.context()]
    return [str(block.hint) for message in messages for block in message.content if isinstance(block, HintBlock)]


@pytest.mark.proves("S8")
@pytest.mark.parametrize("calls", [200, 300, 2_000, 10_000])
async def test_a_turn_of_many_calls_ends_and_the_next_request_is_answered(stage: Stage, calls: int) -> None:
    session = stage.session(turn(calls), {"text": "I have seen them."}, {"text": "Still here."}, permission=FREE)
    began = time.monotonic()

    done = await session.reply("Fetch them all")
    took = time.monotonic() - began
    after = await session.reply("Are you there?")

    ran = min(calls, CALLS_OF_A_TURN)
    context = [message async for message in session.context()]
    assert (done.get_text_content(), after.get_text_content()) == ("I have seen them.", "Still here.")
    assert [state for state, _ in results(done)] == [ToolResultState.SUCCESS] * ran
    assert {text.partition(">>")[0] for _, text in results(done)} == {f"<<page {page}" for page in range(ran)}
    assert sum(len(message.get_tool_calls()) for message in context) == ran
    assert [f"{calls:,} calls" in hint for hint in await hints(session)] == ([True] if calls > ran else [])
    assert problem(context) == ""
    assert_taken_by_all(context[:-1])
    assert took < usual(90)
    print(f"{calls} calls took {took:.1f} s")


@pytest.mark.proves("C8")
async def test_never_more_run_at_once_than_the_bound_and_they_start_in_their_order(stage: Stage) -> None:
    session = stage.session(turn(100), {"text": "I have seen them."}, permission=FREE)

    await session.reply("Fetch them all")

    open_now, most, started = set[int](), 0, list[str]()
    async for event in stage.handle(session).fetch_history_events():
        asked = event.activity_task_scheduled_event_attributes
        if event.HasField("activity_task_scheduled_event_attributes") and asked.activity_type.name == "fetch":
            open_now.add(event.event_id)
            started.append(asked.activity_id)
        if event.HasField("activity_task_completed_event_attributes"):
            open_now.discard(event.activity_task_completed_event_attributes.scheduled_event_id)
        most = max(most, len(open_now))
    assert most == CALLS_AT_ONCE
    assert len(started) == 100
    assert started == sorted(started, key=int)


async def test_an_interrupt_amid_many_calls_gives_each_of_them_its_one_result(stage: Stage) -> None:
    path = stage.folder / "started"
    line = {
        "tool_calls": [
            *turn(150)["tool_calls"],
            {"name": "dawdle", "input": {"path": str(path)}},
            *turn(40)["tool_calls"],
        ]
    }
    session = stage.session(line, {"text": "Still here."}, tools=("fetch", "dawdle"), permission=FREE)
    reply = await session.submit("Fetch them all")

    while not path.exists():
        await session.status()
    await session.interrupt()
    done = await session.wait(reply)
    after = await session.reply("Are you there?")

    states = [state for state, _ in results(done)]
    assert len(states) == 191
    assert states.count(ToolResultState.SUCCESS) == 150
    assert states.count(ToolResultState.INTERRUPTED) == 41
    assert after.get_text_content() == "Still here."


@pytest.mark.proves("A9", "X16")
async def test_many_calls_that_wait_for_a_person_are_shown_and_answered_together(unserved: Stage) -> None:
    tools = unserved.settings.model_copy(update={"tools": "tests.workflows.ending_tools"})
    stage, book = replace(unserved, settings=tools), unserved.folder / "book"
    line = {"tool_calls": [{"name": "ends_async", "input": {"how": "returns None", "book": str(book)}}] * 300}
    session = stage.session(line, {"text": "Done."}, {"text": "Still here."}, tools=("ends_async",))
    async with stage.another_worker():
        waiting = await session.reply("Do them all")
        calls = await session.pending()
        decisions = [{"call_id": call.call_id, "decision": "allow"} for call in calls]
        await stage.handle(session).execute_update("confirm", {"decisions": decisions})
        done = await session.wait(waiting.id)
        after = await session.reply("Are you there?")

    assert len(calls) == CALLS_OF_A_TURN
    assert book.read_text().splitlines() == ["ends_async returns None"] * CALLS_OF_A_TURN
    assert (done.get_text_content(), after.get_text_content()) == ("Done.", "Still here.")


async def test_each_result_says_how_its_call_ran(stage: Stage) -> None:
    """Whatever its tool may do: a command that is proven to read only reads. What nobody ran says nothing."""
    turn = [
        {"name": "fetch", "input": {"page": 1}},
        {"name": "post", "input": {"text": "", "book": "none"}},
        {"name": "Bash", "input": {"command": "ls"}},
        {"name": "Bash", "input": {}},
        {"name": "nothing_of_this_name", "input": {}},
    ]
    session = stage.session({"tool_calls": turn}, {"text": "Done."}, tools=["fetch", "post", "Bash"], permission=FREE)

    done = await session.reply("Do it all")

    blocks = {block.id: block for block in done.content if isinstance(block, ToolResultBlock)}
    ran = [ran_in(blocks[f"call_0_{number}"]) for number in range(5)]
    assert [one.effect if one else None for one in ran] == ["read", "once", "read", None, None]
    assert [one.seconds is not None and 0 <= one.seconds < SURE_SECONDS for one in ran if one] == [True] * 3
