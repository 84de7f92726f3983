"""A Redis that is emptied under sessions: what was there is written again, or its loss is named; nothing is made up."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import WorkflowExecutionStatus, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.starter.client.reading.journal import HistoryUnreadable
from longhaul.starter.client.reading.queries import HistoryLost
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, let_go
from tests.limits import usual
from tests.servers.redis_server import find_redis, redis_server
from tests.workflows.conftest import Stage
from tests.workflows.operations import until

pytestmark = [pytest.mark.server, pytest.mark.redis]

SHORT_LIVED: dict[str, Any] = {"idle_close_seconds": 2}


@pytest.fixture
def redis(redis_url: str, tmp_path: Path) -> Iterator[str]:
    """One of this test's own; the shared one is asked for so that there is a Redis at all."""
    del redis_url
    with redis_server(find_redis(print), tmp_path) as url:
        yield url


async def keeping(stage: Stage, **places: str) -> Stage:
    """The stage with its store, or its blobs too, elsewhere; it has no worker yet."""
    stage.settings = stage.settings.model_copy(update=places)
    stage.client = await connect(stage.address, settings=stage.settings)
    stage.rest.push_async_callback(let_go, stage.client)
    return stage


def empty(url: str) -> None:
    with Redis.from_url(url) as client:
        assert client.dbsize()
        client.flushall()


async def is_saved(session: Session) -> None:
    async def saved() -> bool:
        status = await session.status()
        return status.saved_seq >= status.seq

    await until(saved)


async def closes(stage: Stage, session: Session) -> None:
    async def closed() -> bool:
        return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.COMPLETED

    await until(closed)


async def forgotten(stage: Stage, session: Session) -> None:
    """As the server forgets a closed session when its retention is over."""
    handle = stage.handle(session)
    run_id = (await handle.describe()).run_id
    await stage.client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(
            namespace=stage.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=run_id),
        )
    )

    async def gone() -> bool:
        try:
            await handle.describe()
        except RPCError as error:
            return error.status is RPCStatusCode.NOT_FOUND
        return False

    await until(gone)


async def is_quarantined(session: Session) -> str:
    """Why, once it is."""

    async def quarantined() -> bool:
        return (await session.status()).quarantine != ""

    await until(quarantined)
    return (await session.status()).quarantine


async def fails_for_good(stage: Stage, session: Session) -> None:
    """Until the server lets nobody ask any more, which stays so when the run is over."""
    handle = stage.handle(session)
    await handle.signal("knock")

    async def given_up() -> bool:
        try:
            await handle.query("status", rpc_timeout=timedelta(seconds=2))
        except RPCError as error:
            return error.status is RPCStatusCode.FAILED_PRECONDITION
        except WorkflowQueryFailedError:
            return False
        return False

    await until(given_up)


async def texts(session: Session) -> list[str]:
    return [message.get_text_content() async for message in session.transcript()]


async def test_a_store_that_was_emptied_under_a_session_is_filled_again_by_it(unserved: Stage, redis: str) -> None:
    stage = await keeping(unserved, store=redis)
    async with stage.another_worker():
        session = stage.session({"text": "One."}, {"text": "Two."}, {"text": "Three."}, idle_close_seconds=6)
        await session.reply("First")
        await is_saved(session)
        empty(redis)
        await session.reply("Second")
        await closes(stage, session)

        await session.reply("Third")

        status = await session.status()
        assert await texts(session) == ["First", "One.", "Second", "Two.", "Third", "Three."]
    assert (status.incarnation, status.quarantine, status.checkpoint_error) == (2, "", "")


@pytest.mark.usefixtures("impatient")
async def test_a_session_that_lost_its_history_says_so_is_ended_and_goes_on_from_its_checkpoint(
    unserved: Stage, redis: str
) -> None:
    stage = await keeping(unserved, blobs=redis)
    session = stage.session({"text": "One."}, {"text": "Two."})
    async with stage.another_worker():
        await session.reply("fog " * 100_000)
        await is_saved(session)
    empty(redis)
    async with stage.another_worker():
        with pytest.raises(HistoryLost) as stuck:
            await session.status()
        await fails_for_good(stage, session)
        began = time.monotonic()
        quarantine = (await session.rescue(by="as the sentence says")).quarantine
        took = time.monotonic() - began
        waiting = await session.submit("Second")
        await session.resume(by="ana")
        done = await session.wait(waiting)
        said = [message.get_text_content()[:4] async for message in session.context()]

    assert "there is no blob" in str(stuck.value)
    assert str(stuck.value).endswith("; `longhaul rescue` restores it from its last checkpoint")
    assert "temporal workflow terminate" not in str(stuck.value), "one way, not two"
    assert took < usual(60)
    assert quarantine.startswith("restored from the checkpoint of entry ")
    assert "its history can't be read: this session's history can't be replayed: a value was stored" in quarantine
    assert "there is no blob" in quarantine
    assert f"longhaul resume {session.id}" in quarantine
    assert (done.get_text_content(), said) == ("Two.", ["fog ", "One.", "", "Seco", "Two."])


@pytest.mark.usefixtures("impatient")
async def test_a_terminated_session_whose_queue_nobody_polls_is_restored_and_read_from_its_checkpoint(
    unserved: Stage, redis: str
) -> None:
    stage = await keeping(unserved, store=redis)
    session = stage.session({"text": "One."}, {"text": "Two."})
    async with stage.another_worker():
        await session.reply("First")
        await is_saved(session)
        await stage.handle(session).terminate("moved")
    found = await session.stored.found()
    stage.settings = stage.settings.model_copy(update={"task_queue": f"{stage.name}-new"})
    moved = stage.app.session(session.id, agent=session.spec)
    async with stage.another_worker():
        waiting = await moved.submit("Second")
        quarantine = await is_quarantined(moved)
        await moved.resume(by="ana")
        done = await moved.wait(waiting)

    assert [message.get_text_content() for message in found.state.context] == ["First", "One."]
    assert found.note.startswith("this is the checkpoint of entry ")
    assert "no worker answers for it" in quarantine
    assert done.get_text_content() == "Two."


async def test_what_was_lost_of_a_closed_session_is_named_and_what_its_model_reads_is_whole(
    unserved: Stage, redis: str
) -> None:
    stage = await keeping(unserved, store=redis, blobs=redis)
    async with stage.another_worker():
        session = stage.session({"text": "One."}, {"text": "Two."}, **SHORT_LIVED)
        await session.reply("First")
        await closes(stage, session)
        empty(redis)

        done = await session.reply("Second")

        assert done.get_text_content() == "Two."
        context = [message.get_text_content() async for message in session.context()]
        assert context == ["First", "One.", "Second", "Two."]
        assert (await session.status()).note.startswith("It was rebuilt from the history")
        with pytest.raises(HistoryUnreadable, match=r"segment .* can't be used"):
            await texts(session)


async def test_of_one_whose_history_and_record_are_gone_its_workspace_tells_that_it_was_there(
    unserved: Stage, redis: str
) -> None:
    stage = await keeping(unserved, store=redis)
    spec = {"workspace": None, **SHORT_LIVED}
    async with stage.another_worker():
        session = stage.session({"text": "One."}, {"text": "Two."}, **spec)
        await session.reply("First")
        await closes(stage, session)
        await forgotten(stage, session)
        empty(redis)

        waiting = await session.submit("Second")
        quarantine = await is_quarantined(session)
        await session.resume(by="ana")
        done = await session.wait(waiting)
        of_another = await stage.session({"text": "One."}, **spec).reply("First")

    assert "the server has deleted its history (its workspace" in quarantine
    assert "no checkpoint of it is left" in quarantine
    assert done.get_text_content() == "One.", "its script begins anew, as it does"
    assert of_another.get_text_content() == "One."
