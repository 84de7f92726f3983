"""Many clients at once on a machine that has more to do than it can: nothing is lost, and no task is decided twice."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType

from longhaul.starter.client.session import Session
from longhaul.starter.dev_server.processes import bound_to_parent
from tests.replay.everything import unreplayable
from tests.workflows.conftest import Stage

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
CLIENTS, REQUESTS = 3, 40
BURNERS = 3
"""Processes that only burn CPU."""


@pytest.mark.proves("E1")
async def test_a_storm_from_three_clients_is_answered_once_each(unserved: Stage) -> None:
    session = unserved.session(*[{"text": f"answer {number}"} for number in range(CLIENTS * REQUESTS)])

    async with unserved.worker_process(), busy_machine():
        answered = await asyncio.gather(*[ask(unserved, session, f"client-{number}") for number in range(CLIENTS)])

    texts = [text for replies in answered for text in replies.values()]
    assert sorted(texts) == sorted(f"answer {number}" for number in range(CLIENTS * REQUESTS))
    assert len({reply for replies in answered for reply in replies}) == CLIENTS * REQUESTS
    await assert_that_no_task_failed(unserved, session)
    assert await unreplayable(unserved.client, f"WorkflowId = '{session.workflow_id}'") == {}


async def ask(stage: Stage, session: Session, name: str) -> dict[str, str]:
    """From a process of its own: reply ids and texts."""
    spec = session.spec.model_dump_json()
    queue = stage.settings.task_queue
    client = ["-m", "tests.workflows.storm_client", stage.address, queue, session.id, spec, name, str(REQUESTS)]
    process = await asyncio.create_subprocess_exec(*bound_to_parent([sys.executable, *client]), cwd=ROOT, stdout=PIPE)
    said, _ = await process.communicate()
    answered: dict[str, str] = json.loads(said.splitlines()[-1])
    return answered


@asynccontextmanager
async def busy_machine() -> AsyncIterator[None]:
    burn = bound_to_parent([sys.executable, "-c", "while True: pass"])
    burning = [await asyncio.create_subprocess_exec(*burn) for _ in range(BURNERS)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            await process.wait()


async def assert_that_no_task_failed(stage: Stage, session: Session) -> None:
    history = await stage.handle(session).fetch_history()
    failed = [
        event.event_id for event in history.events if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]
    assert failed == []
