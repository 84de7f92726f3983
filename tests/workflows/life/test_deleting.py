"""A session that is deleted leaves nothing but its workspace; one that is gone can be read where it was stored."""

import json

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from longhaul.agent.values.conversation.messages import ToolResultBlock
from longhaul.starter.client.reading.asking import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.reach.connection import Unreachable, blobs_of
from longhaul.stores.blobs.blobs import session_prefix
from longhaul.stores.names import safe_name
from longhaul.stores.offload.redis import RedisOffloader
from longhaul.stores.state.opening import open_store
from tests.stores.state.records import record
from tests.workflows.conftest import Stage
from tests.workflows.letters import until

# The server takes half a minute to delete the history of a run that has only just ended.
pytestmark = pytest.mark.server


async def kept_by(stage: Stage, session: Session) -> int:
    """How many records and blobs there are of it."""
    store = open_store(stage.settings.store, data_dir=stage.settings.data_dir)
    stored = await store.get_session(session.user, "lamp", session.id)
    prefix = session_prefix(stage.client.namespace, session.workflow_id)
    return (stored is not None) + len(await blobs_of(stage.settings).keys(prefix))


async def is_written_down(session: Session) -> None:
    async def saved() -> bool:
        status = await session.status()
        return status.saved_seq >= status.seq > 0

    await until(saved)


async def test_an_open_session_is_deleted_only_when_it_may_be_terminated(stage: Stage) -> None:
    session = stage.session({"text": "Amber."}, {"text": "Blue."}, user="ana")
    other = stage.session({"text": "Green."}, user="ana")
    await session.reply("fog " * 200_000)
    await other.reply("Which colour?")
    await is_written_down(session)
    await is_written_down(other)
    offloaded = stage.settings.data_dir / "offload" / "lamp" / "ana" / "sessions" / safe_name(session.id)
    offloaded.mkdir(parents=True)
    (offloaded / "context.jsonl").write_text("{}\n")
    kept = await kept_by(stage, session)

    with pytest.raises(Refused, match="is open; terminate it to delete it"):
        await session.stored.delete(by="ana")
    before = (await stage.handle(session).describe()).status
    done = await session.stored.delete(terminate=True, by="ana")

    assert (before, kept > 1) == (WorkflowExecutionStatus.RUNNING, True)
    assert (done.terminated, done.record, done.blobs, done.offloaded) == (True, True, kept - 1, 1)
    assert done.stream
    assert done.runs >= 1
    assert not offloaded.exists()
    assert await kept_by(stage, session) == 0
    assert await kept_by(stage, other) >= 1
    assert (await other.status()).status == "idle"
    assert stage.workspace.is_dir()


async def test_a_session_that_closed_is_deleted_with_its_history(stage: Stage) -> None:
    session = stage.session({"text": "Amber."}, idle_close_seconds=1)
    await session.reply("Which colour?")

    async def closed() -> bool:
        return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.COMPLETED

    await until(closed)
    done = await session.stored.delete()
    again = await session.stored.delete()

    async def gone() -> bool:
        try:
            await stage.handle(session).describe()
        except RPCError:
            return True
        return False

    assert (done.terminated, done.runs, done.record) == (False, 1, True)
    assert (again.record, again.blobs) == (False, 0)
    await until(gone)


async def test_a_session_that_never_was_has_nothing_to_delete(unserved: Stage) -> None:
    assert not (await unserved.session().stored.delete()).anything


async def test_a_session_whose_run_is_gone_is_exported_as_it_was_stored(unserved: Stage) -> None:
    session, never = unserved.session(id=unserved.name, user="ana"), unserved.session()
    store = open_store(unserved.settings.store, data_dir=unserved.settings.data_dir)
    await store.upsert_session(record(9, user="ana", agent="lamp", session=session.id, text="How many?", closed=True))

    exported = json.loads(await session.stored.export())

    assert (exported["summary"], exported["context"][0]["content"][0]["text"]) == ("1.9", "How many?")
    with pytest.raises(NoSession):
        await never.stored.export()


async def test_a_store_that_is_damaged_is_said_and_nothing_is_taken_for_empty(unserved: Stage) -> None:
    session = unserved.session(id=unserved.name, user="ana")
    store = open_store(unserved.settings.store, data_dir=unserved.settings.data_dir)
    await store.upsert_session(record(9, user="ana", agent="lamp", session=session.id))
    [file] = (unserved.settings.data_dir / "sessions").rglob("*.json")
    file.write_text("{")

    with pytest.raises(Unreachable, match=r"can't be used.*LONGHAUL_STORE"):
        await session.stored.export()


@pytest.mark.redis
async def test_keys_in_redis_go_with_the_session_and_with_no_other(unserved: Stage, redis_url: str) -> None:
    app = unserved.app
    app.settings = unserved.settings.model_copy(update={"redis_url": redis_url})
    session = app.session("deleted*", user="ana", agent=unserved.agent())
    offloader = RedisOffloader(redis_url, "longhaul:offload:lamp/ana")
    for name in ("deleted*", "deleted2"):
        await offloader.offload_tool_result(name, ToolResultBlock(id="c1", name="fetch", output="far too long"))

    assert (await session.stored.delete()).offloaded == 1
    session = app.session("deleted2", user="ana", agent=unserved.agent())
    assert (await session.stored.delete()).offloaded == 1
