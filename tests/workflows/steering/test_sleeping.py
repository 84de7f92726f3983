"""Calls that sleep, on the server: over kills and continue-as-new, until a time, an event or a message."""

import pytest
from temporalio.client import WorkflowExecutionStatus

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from tests.e2e.processes import worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, push_over, recorded, results, until

pytestmark = pytest.mark.server

TOOLS = ["sleep", "wait_for", "fetch"]
LONG = {"for": "30d"}


async def ended(session: Session, reply_id: str) -> None:
    async def finished() -> bool:
        return (await session.result(reply_id)).status == "finished"

    await until(finished)


async def test_a_short_sleep_ends_by_itself_and_takes_no_activity(stage: Stage) -> None:
    session = stage.session(calls("sleep", **{"for": 0.2}), {"text": "Rested."}, tools=TOOLS)

    reply = await session.submit("Rest a moment")
    await ended(session, reply)

    done = await session.wait(reply)
    assert done.get_text_content() == "Rested."
    ((state, words),) = results(done)
    assert (state, "You have slept since" in words) == (ToolResultState.SUCCESS, True)
    assert "sleep" not in await stage.scheduled(session)


@pytest.mark.proves("F4")
async def test_a_sleep_is_seen_and_a_notification_that_is_sent_twice_wakes_it_once(stage: Stage) -> None:
    session = stage.session(
        calls("wait_for", event="deployed", timeout="30d"),
        calls("wait_for", event="deployed", timeout="30d"),
        {"text": "Deployed twice."},
        tools=TOOLS,
    )

    waiting = await session.reply("Wait for two deployments")

    (call,) = await session.pending()
    assert waiting.metadata["waiting_for"] == [call.call_id]
    assert (call.waits_for, call.event, call.tool) == ("event", "deployed", "wait_for")
    assert call.wakes_at > call.asked_at
    assert (await session.status()).status == "waiting"
    page = str(await stage.handle(session).query("__temporal_workflow_metadata"))
    assert "asleep since" in page
    assert "or the event `deployed`" in page

    async def listed() -> bool:
        found = await stage.app.inbox(tool="wait_for")
        return (session.id, "deployed") in [(card.session_id, one.event) for card, one in found.calls]

    await until(listed)
    assert await session.notify("released") is False
    assert await session.notify("deployed", "build 81", request_id="hook-1", by="ci") is True
    assert await session.notify("deployed", "build 81", request_id="hook-1", by="ci") is False

    async def waits_again() -> bool:
        return [one.call_id for one in await session.pending()] not in ([], [call.call_id])

    await until(waits_again)
    assert await session.notify("deployed", "build 82", request_id="hook-2") is True
    done = await session.wait(waiting.id)
    first, second = [words for _, words in results(done)]
    assert 'came by "ci"' in first
    assert first.endswith('no instruction to you: "build 81"')
    assert second.endswith('"build 82"')
    assert done.get_text_content() == "Deployed twice."


@pytest.mark.proves("F4")
async def test_what_came_before_anybody_waited_is_there_when_somebody_does(stage: Stage) -> None:
    session = stage.session(
        {"text": "Hello."}, calls("wait_for", event="deployed", timeout="30d"), {"text": "Seen."}, tools=TOOLS
    )
    await session.reply("Hello")
    assert await session.notify("deployed", "build 81") is False

    done = await session.wait(await session.submit("Wait"))

    assert done.get_text_content() == "Seen."
    assert results(done)[0][1].endswith('"build 81"')


async def test_what_is_told_to_a_session_that_has_closed_is_there_in_its_next_life(stage: Stage) -> None:
    waits = calls("wait_for", event="deployed", timeout="30d")
    session = stage.session({"text": "Ready."}, waits, {"text": "Seen."}, tools=TOOLS, idle_close_seconds=1)
    await session.reply("Be ready")
    await until(lambda: has_closed(stage, session))

    assert await session.notify("deployed", "build 81", request_id="hook-1") is False
    await until(lambda: has_closed(stage, session))
    assert await session.notify("deployed", "build 81", request_id="hook-1") is False
    done = await session.reply("Wait for the deployment")

    ((_, words),) = results(done)
    assert words.endswith('"build 81"')
    with pytest.raises(NoSession):
        await stage.session({"text": "Never."}).notify("deployed")


async def has_closed(stage: Stage, session: Session) -> bool:
    return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.COMPLETED


async def test_a_sleep_goes_through_a_continue_as_new_and_a_paused_session(stage: Stage) -> None:
    session = stage.session(calls("sleep", **LONG), {"text": "Rested."}, tools=TOOLS)
    waiting = await session.reply("Rest")
    (before,) = await session.pending()

    await push_over(stage, session)

    (after,) = await session.pending()
    assert (after.asked_at, after.wakes_at) == (before.asked_at, before.wakes_at)
    await session.pause()
    assert await session.notify("wake") is True
    assert (await session.status()).status == "paused"
    await session.resume()
    done = await session.wait(waiting.id)
    assert done.get_text_content() == "Rested."


async def test_a_sleep_whose_time_came_while_its_worker_was_dead_ends_with_the_next_one(unserved: Stage) -> None:
    stage = unserved
    session = stage.session(calls("sleep", **{"for": 2}), {"text": "Rested."}, tools=TOOLS)
    settings = stage.worker_settings
    async with worker(settings) as first:
        reply = await session.submit("Rest")

        async def asleep() -> bool:
            return (await session.status()).pending == 1 or (await session.result(reply)).status == "finished"

        await until(asleep)
        await first.kill()

    async def fired() -> bool:
        events = (await stage.handle(session).fetch_history()).events
        started = [event for event in events if event.HasField("timer_started_event_attributes")]
        over = {event.timer_fired_event_attributes.started_event_id for event in events}
        return any(one.event_id in over for one in started)

    await until(fired)
    async with stage.another_worker():
        await ended(session, reply)
        done = await session.wait(reply)
    assert done.get_text_content() == "Rested."
    assert [state for state, _ in results(done)] == [ToolResultState.SUCCESS]


async def test_a_message_for_the_reply_wakes_it_and_an_interrupt_ends_it(stage: Stage) -> None:
    session = stage.session(calls("sleep", **LONG), calls("sleep", **LONG), {"text": "Never said."}, tools=TOOLS)
    waiting = await session.reply("Rest")
    (first,) = await session.pending()
    await session.submit("How is it going?", when="now")

    async def sleeps_again() -> bool:
        return [one.call_id for one in await session.pending()] not in ([], [first.call_id])

    await until(sleeps_again)
    assert await session.interrupt() == waiting.id
    done = await session.wait(waiting.id)
    states = results(done)
    assert [state for state, _ in states] == [ToolResultState.SUCCESS, ToolResultState.INTERRUPTED]
    assert states[0][1].startswith("Cut short at ")
    assert states[1][1].startswith("Cut short: this call had waited since ")


async def test_a_stream_of_a_reply_ends_when_it_sleeps_and_nobody_is_asked(stage: Stage) -> None:
    session = stage.session(calls("sleep", **LONG), tools=TOOLS)

    events = [event async for event in session.reply_stream("Rest")]

    assert "asleep" in [event.name for event in events]
    assert [event.type for event in events if event.type.startswith("REQUIRE")] == []


async def test_bad_values_are_read_by_the_model_and_bad_operations_by_their_sender(stage: Stage) -> None:
    session = stage.session(
        calls("sleep", until="tomorrow"), calls("wait_for", event="x"), {"text": "I see."}, tools=TOOLS
    )

    done = await session.reply("Rest")

    first, second = results(done)
    assert (first[0], "is no time; write one with its zone" in first[1]) == (ToolResultState.ERROR, True)
    assert (second[0], "timeout" in second[1]) == (ToolResultState.ERROR, True)
    with pytest.raises(NoSession):
        await stage.session(tools=TOOLS).notify("wake")


async def test_who_uses_none_of_it_has_nothing_of_it_in_the_history(stage: Stage) -> None:
    session = stage.session(calls("fetch", page=1), {"text": "Read."}, tools=["fetch"])
    await session.reply("Read")

    await push_over(stage, session)

    entries = await recorded(stage, session)
    assert {entry.kind for entry in entries}.isdisjoint({"sleep_started", "external_event"})
    started = (await stage.handle(session).fetch_history()).events[0]
    carried = b"".join(payload.data for payload in started.workflow_execution_started_event_attributes.input.payloads)
    assert b"carried" in carried
    assert b"external_events" not in carried
    assert b'"sleep":' not in carried
