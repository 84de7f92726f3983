"""Queries look and leave nothing behind, whatever comes in beside them."""

import asyncio
import time

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from longhaul.starter.client.session import Session
from longhaul.starter.worker_host.open_tasks import OpenTasks
from longhaul.workflows.session import AgentSession
from tests.limits import usual
from tests.workflows.conftest import Stage

pytestmark = pytest.mark.server

PROMPT_SECONDS = 3.0
"""Half of what it takes to give up asking."""
SESSIONS = 8
"""Whether a worker that starts gets the waiting query before the waiting task is the server's choice: for each of these
it chooses again."""


async def test_a_query_that_a_new_worker_answers_first_does_not_disturb_what_came_in_after_it(unserved: Stage) -> None:
    sessions = [unserved.session({"text": "Good day."}, {"text": "One."}, {"text": "Two."}) for _ in range(SESSIONS)]
    async with unserved.another_worker():
        for session in sessions:
            await session.reply("Hello")

    asked = [asyncio.create_task(unserved.handle(session).query("status")) for session in sessions]
    await asyncio.sleep(1)
    signalled = [
        unserved.handle(session).signal("submit", {"request_id": "r-one", "messages": []}) for session in sessions
    ]
    await asyncio.gather(*signalled)
    sent = [asyncio.create_task(session.submit("And two?")) for session in sessions]
    await asyncio.sleep(0.5)
    async with unserved.another_worker():
        said = [
            (await session.wait(await reply)).get_text_content() for session, reply in zip(sessions, sent, strict=True)
        ]
        await asyncio.gather(*asked)

    assert said == ["Two."] * SESSIONS
    await replay_in_new_worker(unserved, sessions)


async def test_a_run_is_kept_for_a_query_by_the_worker_that_has_done_its_last_task_alone(unserved: Stage) -> None:
    session = unserved.session({"text": "Good day."})
    async with unserved.another_worker():
        await session.reply("Hello")
    history = await unserved.handle(session).fetch_history()
    (*_, end) = [event for event in history.events if event.HasField("workflow_task_completed_event_attributes")]
    done = end.workflow_task_completed_event_attributes
    started = done.started_event_id

    async def kept(identity: str, event: int) -> bool:
        ends = OpenTasks(unserved.client, identity)
        return await asyncio.to_thread(ends.decided, session.workflow_id, history.run_id, event)

    assert await kept(done.identity, started)
    assert not await kept("7@elsewhere", started)
    assert not await kept(done.identity, len(history.events))
    assert not await kept(done.identity, 1_000)


async def test_a_session_that_was_ended_with_news_that_it_had_not_read_answers_as_it_was(unserved: Stage) -> None:
    session = unserved.session({"text": "Good day."})
    async with unserved.another_worker():
        await session.reply("Hello")
    handle = unserved.handle(session)
    await handle.signal("submit", {"request_id": "r-unread", "messages": []})
    ends = OpenTasks(unserved.client, "7@elsewhere")
    run = session.workflow_id, (await handle.describe()).run_id

    open_still = await asyncio.to_thread(ends.over, *run)
    await handle.terminate("enough")
    async with unserved.another_worker():
        began = time.monotonic()
        said = [message.get_text_content() async for message in session.transcript()]
        took = time.monotonic() - began
        again = [message.get_text_content() async for message in session.transcript()]

    assert (open_still, await asyncio.to_thread(ends.over, *run)) == (False, True)
    assert said == again == ["Hello", "Good day."]
    assert took < usual(PROMPT_SECONDS), "it was asked in vain, and what was stored answered"


async def replay_in_new_worker(stage: Stage, sessions: list[Session]) -> None:
    """Raises NondeterminismError for a history that no other worker could go on from."""
    histories: list[WorkflowHistory] = [await stage.handle(session).fetch_history() for session in sessions]
    replayer = Replayer(
        workflows=[AgentSession],
        build_id="replay",
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=stage.client.data_converter,
    )
    for history in histories:
        await replayer.replay_workflow(history)
