"""A reply followed event by event: each event once, in order, and an end when it is done or waits for somebody."""

import pytest

from agent.bodies import ConfirmResult, UserConfirmResultEvent
from agent.event import AgentEvent
from agent.messages import FinishedReason
from starter.session import Inputs, Session
from tests.workflows.conftest import Stage
from tests.workflows.letters import ASKS, calls

pytestmark = pytest.mark.server


async def streamed(session: Session, inputs: Inputs, request_id: str | None = None) -> list[AgentEvent]:
    return [event async for event in session.reply_stream(inputs, request_id=request_id) if event.seq]


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
