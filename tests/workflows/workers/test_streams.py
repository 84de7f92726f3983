"""A reply followed event by event: each event once, in order, and an end when it is done or waits for somebody."""

import asyncio

import pytest

from longhaul.agent.operations.bodies import ConfirmResult, ExternalExecutionResultEvent, UserConfirmResultEvent
from longhaul.agent.values.conversation.messages import FinishedReason, ToolCallBlock, ToolResultBlock
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.session import Inputs, Session
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, calls

pytestmark = pytest.mark.server


async def streamed(session: Session, inputs: Inputs, request_id: str | None = None) -> list[AgentEvent]:
    return [event async for event in session.reply_stream(inputs, request_id=request_id, live=False)]


def answer(asked: AgentEvent, *, allow: bool) -> UserConfirmResultEvent:
    results = tuple(ConfirmResult(confirmed=allow, tool_call=call) for call in asked.tool_calls)
    return UserConfirmResultEvent(reply_id=asked.reply_id, confirm_results=results)


def brought(asked: AgentEvent, call: ToolCallBlock) -> ExternalExecutionResultEvent:
    result = ToolResultBlock(id=call.id, name=call.name, output="brought")
    return ExternalExecutionResultEvent(reply_id=asked.reply_id, execution_results=(result,))


async def test_a_stream_begins_with_the_reply_and_ends_with_it(stage: Stage) -> None:
    session = stage.session(calls("fetch", chars=3), {"text": "Read."})

    events = await streamed(session, "Read it")

    assert (events[0].type, events[-1].type) == ("REPLY_START", "REPLY_END")
    assert events[-1].finished_reason is FinishedReason.COMPLETED
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert "".join(event.delta for event in events if event.type == "TEXT_BLOCK_DELTA") == "Read."


async def test_a_second_stream_tells_nothing_of_the_first_reply(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."})
    first = await streamed(session, "Count")

    second = await streamed(session, "Go on")

    assert [event.delta for event in second if event.delta] == ["Two."]
    assert second[0].seq == first[-1].seq + 1


async def test_a_request_sent_again_streams_the_reply_that_it_came_to(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."})
    first = await streamed(session, "Count", "r-count")

    assert await streamed(session, "Count", "r-count") == first


async def test_a_stream_ends_when_somebody_is_asked_and_goes_on_with_the_answer(stage: Stage) -> None:
    session = stage.session(*ASKS)

    asked = await streamed(session, "Write to Ana")
    (block,) = asked[-1].tool_calls
    answer = UserConfirmResultEvent(
        reply_id=asked[-1].reply_id, confirm_results=(ConfirmResult(confirmed=True, tool_call=block),)
    )
    rest = await streamed(session, answer)

    assert (asked[-1].type, block.name) == ("REQUIRE_USER_CONFIRM", "send")
    assert (rest[0].type, rest[-1].type) == ("USER_CONFIRM_RESULT", "REPLY_END")
    assert rest[0].seq == asked[-1].seq + 1


@pytest.mark.parametrize("stops", [True, False])
async def test_the_stream_of_a_denial_begins_with_it_also_when_it_ends_the_reply(stage: Stage, stops: bool) -> None:
    session = stage.session(*ASKS, react_config={"stop_on_reject": stops})
    asked = await streamed(session, "Write to Ana")

    rest = await streamed(session, answer(asked[-1], allow=False))

    assert (rest[0].type, rest[0].seq) == ("USER_CONFIRM_RESULT", asked[-1].seq + 1)
    assert rest[-1].type == "REPLY_END"
    assert ("REPLY_START" in [event.type for event in rest], "Written." in [event.delta for event in rest]) == (
        False,
        not stops,
    )


async def test_after_an_answer_to_some_of_the_calls_the_others_are_asked_about_again(stage: Stage) -> None:
    parcels = {"tool_calls": [{"name": "courier", "input": {"parcel": name}} for name in ("box", "vase")]}
    session = stage.session(parcels, {"text": "Both are here."})
    async with asyncio.timeout(SURE_SECONDS):
        (*_, asked) = await streamed(session, "Fetch both")
        box, vase = asked.tool_calls
        some = [event async for event in session.reply_stream(brought(asked, box))]
        rest = [event async for event in session.reply_stream(brought(asked, vase))]

    assert [call.id for event in some[:-1] for call in event.tool_calls] == []
    assert (some[-1].type, some[-1].seq, some[-1].tool_calls) == ("REQUIRE_EXTERNAL_EXECUTION", 0, (vase,))
    assert (rest[0].type, rest[-1].type) == ("EXTERNAL_EXECUTION_RESULT", "REPLY_END")


async def test_a_request_sent_again_tells_its_reply_as_far_as_the_question_that_is_open(stage: Stage) -> None:
    session = stage.session(calls("send", to="Ana"), calls("send", to="Cy"), {"text": "Both."})
    first = await streamed(session, "Write to both", "r-both")
    second = await streamed(session, answer(first[-1], allow=True))

    async with asyncio.timeout(SURE_SECONDS):
        again = await streamed(session, "Write to both", "r-both")
        (*_, end) = await streamed(session, answer(again[-1], allow=True))

    assert again == [*first, *second]
    assert [event.type for event in again].count("REQUIRE_USER_CONFIRM") == 2
    assert end.type == "REPLY_END"
