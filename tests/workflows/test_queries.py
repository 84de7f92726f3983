"""Queries look and leave nothing behind, whatever comes in beside them."""

import asyncio

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from starter.session import Session
from tests.workflows.conftest import Stage
from workflows.session import AgentSession

pytestmark = pytest.mark.server

SESSIONS = 8
"""Whether a worker that starts gets the waiting query before the waiting task is the server's choice: for each of these
it chooses anew."""


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


async def replay_in_new_worker(stage: Stage, sessions: list[Session]) -> None:
    """Raises NondeterminismError for a history that no other worker could go on from."""
    histories: list[WorkflowHistory] = [await stage.handle(session).fetch_history() for session in sessions]
    replayer = Replayer(
        workflows=[AgentSession],
        workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=stage.client.data_converter,
    )
    for history in histories:
        await replayer.replay_workflow(history)
