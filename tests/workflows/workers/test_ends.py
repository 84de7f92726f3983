"""However a `once` call ends, it was started one time, the model reads what is true of it, and the session goes on."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.ending_tools import DONE, FORMS, HANGS, HOWS, RAISED
from tests.workflows.operations import results
from tests.workflows.roomy import Moody, Roomy, worker_with

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"mode": "bypass"}
THINGS_RAISED = {*(f"raises {how}" for how in RAISED), *DONE}


@pytest.fixture
async def ending(unserved: Stage) -> AsyncIterator[Stage]:
    """A stage with one worker, whose tools are those that end in every way."""
    tools = unserved.settings.model_copy(update={"tools": "tests.workflows.ending_tools"})
    stage = replace(unserved, settings=tools)
    async with stage.another_worker():
        yield stage


def turn(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """One turn of a model with these calls."""
    return {"tool_calls": [{"name": name, "input": given} for name, given in calls]}


@pytest.mark.proves("X2")
@pytest.mark.parametrize("form", FORMS)
async def test_a_once_tool_is_run_one_time_however_it_ends(ending: Stage, form: str) -> None:
    book = ending.folder / "book"
    session = ending.session(
        turn(*((form, {"how": how, "book": str(book)}) for how in HOWS)),
        {"text": "I see."},
        {"text": "And on."},
        tools=(form,),
        permission=FREE,
    )

    done = await session.reply("End in every way")
    after = await session.reply("Go on")

    ran = Counter(book.read_text().splitlines())
    assert ran == {f"{form} {how}": 1 for how in HOWS}
    told = dict(zip(HOWS, await in_order(session), strict=True))
    assert {how for how, (state, _) in told.items() if state is ToolResultState.UNKNOWN} == {HANGS}
    succeeded = {how for how, (state, _) in told.items() if state is ToolResultState.SUCCESS}
    assert not succeeded & THINGS_RAISED
    assert all(text for _, text in told.values())
    assert (done.get_text_content(), after.get_text_content()) == ("I see.", "And on.")


async def in_order(session: Session) -> list[tuple[ToolResultState, str]]:
    """What the calls came to, in the order in which the model made them."""
    context = [message async for message in session.context()]
    asked = [call.id for message in context for call in message.get_tool_calls()]
    came_to = {result.id: result for message in context for result in message.get_tool_results()}
    assert len(asked) == len(came_to)
    return [(came_to[call_id].state, came_to[call_id].get_text()) for call_id in asked]


class Unheard(Exception):
    """A failure around an activity of which no list of ours knows."""


class Breaking(Moody):
    """A blob store that breaks, in a way of its own, on what holds these bytes."""

    async def put(self, key: str, data: bytes) -> None:
        if b'"begun null' in data and b'"kind":"returned"' in data:
            raise Unheard("the disk is on fire")
        await super().put(key, data)


@pytest.mark.proves("X2")
async def test_a_failure_that_nobody_has_thought_of_does_not_begin_a_once_call_again(unserved: Stage) -> None:
    tools = unserved.settings.model_copy(update={"tools": "tests.workflows.ending_tools"})
    roomy = await Roomy.over(replace(unserved, settings=tools))
    book = roomy.folder / "book"
    call = ("ends_generator", {"how": "returns None", "book": str(book)})
    async with worker_with(Breaking(roomy.blobs), roomy, from_bytes=30):
        session = roomy.session(
            turn(call),
            {"text": "I see."},
            tools=("ends_generator",),
            permission=FREE,
        )

        done = await session.reply("End")

    ((state, text),) = results(done)
    assert book.read_text().splitlines() == ["ends_generator returns None"]
    assert state is ToolResultState.UNKNOWN
    assert "its attempt ended in a failure of its worker (Unheard)" in text
    assert done.get_text_content() == "I see."


@pytest.mark.proves("A7")
async def test_what_generators_yield_is_their_result(ending: Stage) -> None:
    session = ending.session(
        turn(("count_up", {"to": 3})),
        turn(("count_slowly", {"to": 3})),
        turn(("count_slowly", {"to": 9})),
        {"text": "Counted."},
        tools=("count_up", "count_slowly"),
        permission=FREE,
    )

    seen = [event async for event in session.reply_stream("Count")]

    context = [message async for message in session.context()]
    told = [(r.state, r.get_text()) for message in context for r in message.get_tool_results()]
    assert told == [
        (ToolResultState.SUCCESS, '1 2 3 {"counted": 3}\n'),
        (ToolResultState.SUCCESS, "1 2 3 "),
        (ToolResultState.ERROR, "1 2 3\n\nThen it failed: ValueError: more than three"),
    ]
    shown = "".join(event.delta for event in seen if event.type == "TOOL_RESULT_TEXT_DELTA")
    assert shown.startswith("1 2 3 ")
