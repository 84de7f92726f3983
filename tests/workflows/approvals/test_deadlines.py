"""Calls that wait too long: reminded of, handed up and given up, on time or late, and never twice."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.e2e.processes import worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, push_over, results, until

pytestmark = pytest.mark.server

TELL_ANA = calls("send", to="Ana")
STAGES = ["reminded", "escalated", "expired"]


def within(**deadline: Any) -> dict[str, Any]:
    return {"permission": {"deadline": deadline}}


async def told(session: Session) -> list[AgentEvent]:
    """The events about deadlines."""
    events: list[AgentEvent] = []
    while (page := await session.events(events[-1].seq + 1 if events else 1)).events:
        events += page.events
    return [event for event in events if event.name in STAGES]


async def timers(stage: Stage, session: Session) -> list[str]:
    """The kinds of the timer events of this run, but for the one of its idle time, which comes first."""
    history = await stage.handle(session).fetch_history()
    kinds = [event.WhichOneof("attributes") for event in history.events]
    return [kind.removesuffix("_event_attributes") for kind in kinds if kind and kind.startswith("timer_")][1:]


@pytest.mark.proves("F4", "S11")
@pytest.mark.alone
async def test_a_call_is_reminded_of_handed_up_and_denied(stage: Stage) -> None:
    deadline = within(remind_after=1, escalate_after=1.5, escalate_to="the night shift", expire_after=2)
    session = stage.session(
        TELL_ANA, {"text": "I could not.", "expect": {"last_contains": "Nobody decided"}}, **deadline
    )
    waiting = await session.reply("Tell Ana")
    (call,) = await session.pending()
    assert (call.escalate_to, call.on_expiry) == ("the night shift", "deny")
    assert call.asked_at < call.remind_at < call.escalate_at < call.expires_at

    async def finished() -> bool:
        return (await session.result(waiting.id)).status == "finished"

    await until(finished)
    done = await session.wait(waiting.id)

    assert done.error is None
    assert done.get_text_content() == "I could not."
    assert [state for state, _ in results(done)] == [ToolResultState.DENIED]
    assert [event.name for event in await told(session)] == STAGES
    assert await timers(stage, session) == ["timer_started", "timer_fired"] * 3
    with pytest.raises(Refused, match=r"'call_0_0' expired at .*; it was denied"):
        await session.confirm(call, allow=True)
    assert [event.name for event in await told(session)] == STAGES


async def test_an_answer_in_time_stops_the_timer_and_a_session_without_deadline_has_none(stage: Stage) -> None:
    patient = stage.session(TELL_ANA, {"text": "Delivered."})
    hurried = stage.session(TELL_ANA, {"text": "Delivered."}, **within(expire_after="1h"))
    for session, expected in ((patient, []), (hurried, ["timer_started", "timer_canceled"])):
        waiting = await session.reply("Tell Ana")
        for number in range(5):
            await session.observe(f"The clock strikes {number}")
        await session.confirm("call_0_0", allow=True)
        await session.wait(waiting.id)
        await session.status()

        assert await timers(stage, session) == expected
        assert await told(session) == []


@pytest.mark.proves("F4")
async def test_a_deadline_that_passed_while_no_worker_ran_comes_late_but_once(unserved: Stage) -> None:
    stage = unserved
    session = stage.session(
        TELL_ANA, {"text": "I could not."}, **within(remind_after=5, escalate_after=6, escalate_to="bo", expire_after=7)
    )
    settings = stage.worker_settings
    async with worker(settings) as first:
        waiting = await session.reply("Tell Ana")
        (call,) = await session.pending()
        await first.kill()
        over = datetime.fromisoformat(call.expires_at) - datetime.now(UTC)
        await asyncio.sleep(over.total_seconds() + 0.1)
    async with stage.another_worker():

        async def finished() -> bool:
            return (await session.result(waiting.id)).status == "finished"

        await until(finished)
        events = await told(session)
        again = await session.pending()

    assert [event.name for event in events] == ["expired"]
    assert events[0].value["due_at"] - events[0].value["asked_at"] == 7_000
    assert events[0].created_at > call.expires_at
    assert again == []


async def test_a_continue_as_new_keeps_the_deadline_and_a_late_result_is_refused(stage: Stage) -> None:
    courier = calls("courier", parcel="teapot")
    session = stage.session(courier, {"text": "It may have come."}, **within(courier={"expire_after": 15}))
    waiting = await session.reply("Send the teapot")
    (before,) = await session.pending()

    await push_over(stage, session)

    (after,) = await session.pending()
    assert (after.asked_at, after.expires_at) == (before.asked_at, before.expires_at)

    async def finished() -> bool:
        return (await session.result(waiting.id)).status == "finished"

    await until(finished)
    (event,) = await told(session)
    assert event.created_at >= before.expires_at
    with pytest.raises(Refused, match="its outcome is unknown, see `resolve`"):
        await session.external_result(before, "delivered")
