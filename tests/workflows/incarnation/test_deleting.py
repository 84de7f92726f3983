"""A session that is deleted leaves nothing but its workspace, and does not come back; one that is gone can be read
where it was stored."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from longhaul.agent.values.conversation.messages import ToolResultBlock
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.connection.connect import Unreachable, blobs_of, connect, let_go
from longhaul.stores.blobs.blobs import session_prefix
from longhaul.stores.names import safe_name
from longhaul.stores.offload.redis_offloader import RedisOffloader
from longhaul.stores.state.open_store import open_store
from tests.stores.state.records import record
from tests.workflows.conftest import Stage
from tests.workflows.incarnation.test_encrypted import master_key
from tests.workflows.operations import calls, until
from tests.workflows.roomy import failure_of_replay

# The server takes half a minute to delete the history of a run that has only just ended.
pytestmark = pytest.mark.server


async def kept_by(stage: Stage, session: Session) -> int:
    """How many records and blobs there are of it."""
    store = open_store(stage.settings.store, data_dir=stage.settings.data_dir)
    stored = await store.get_session(session.user, "lamp", session.id)
    prefix = session_prefix(stage.client.namespace, session.workflow_id)
    return (stored is not None and not stored.deleted_at) + len(await blobs_of(stage.settings).keys(prefix))


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


STORES = [
    "file",
    "sqlite",
    pytest.param("redis", marks=pytest.mark.redis),
    pytest.param("postgres", marks=pytest.mark.sql),
]


async def keeping(stage: Stage, kind: str, request: pytest.FixtureRequest, tmp_path: Path, *, encrypted: bool) -> Stage:
    """The stage with another store, and its sessions encrypted or not; it has no worker yet."""
    urls = {"redis": "redis_url", "postgres": "postgres_url"}
    store = f"sqlite:///{tmp_path / 'kept.db'}" if kind == "sqlite" else kind
    places: dict[str, Any] = {"store": request.getfixturevalue(urls[kind]) if kind in urls else store}
    if encrypted:
        places["master_key"] = SecretStr(master_key())
    return await elsewhere(stage, **places)


async def elsewhere(stage: Stage, **places: Any) -> Stage:
    stage.settings = stage.settings.model_copy(update=places)
    stage.client = await connect(stage.address, settings=stage.settings)
    stage.rest.push_async_callback(let_go, stage.client)
    return stage


async def texts(session: Session) -> list[str]:
    return [message.get_text_content() async for message in session.transcript()]


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("kind", STORES)
async def test_a_session_that_was_deleted_does_not_come_back(
    unserved: Stage, kind: str, request: pytest.FixtureRequest, tmp_path: Path, *, encrypted: bool
) -> None:
    stage = await keeping(unserved, kind, request, tmp_path, encrypted=encrypted)
    async with stage.another_worker():
        said: dict[float, list[str]] = {}
        for pause in (0, 0.5, 2):
            session = stage.session({"text": "ZANZI."}, {"text": "Still here."}, user="ana")
            await session.reply("The word is zanzi")
            await is_written_down(session)
            done = await session.stored.delete(terminate=True, by="ana")
            await asyncio.sleep(pause)

            await session.reply("Who are you?")

            assert (done.record, done.terminated, done.key) == (True, True, encrypted)
            said[pause] = await texts(session)
            assert await failure_of_replay(stage, session) is None

    fresh = ["Who are you?", "ZANZI."]  # its script begins again, too
    assert said == {0: fresh, 0.5: fresh, 2: fresh}


@pytest.mark.parametrize("encrypted", [False, True])
async def test_another_worker_and_another_client_that_know_its_key_bring_nothing_back(
    unserved: Stage, *, encrypted: bool
) -> None:
    stage = await elsewhere(unserved, **({"master_key": SecretStr(master_key())} if encrypted else {}))
    client = await connect(stage.address, settings=stage.settings)
    async with stage.another_worker(), stage.another_worker():
        session = stage.session({"text": "ZANZI."}, user="ana")
        queued = Longhaul(client, stage.settings).session(session.id, user="ana", agent=session.spec)
        await session.reply("The word is zanzi")
        await queued.observe("It rains.")
        await session.stored.delete(terminate=True)

        await queued.reply("Who are you?")

    # Once more where nobody remembers anything: all that was written since the deletion can be read.
    await let_go(client)
    fresh = await connect(stage.address, settings=stage.settings)
    async with stage.another_worker():
        reread = Longhaul(fresh, stage.settings).session(session.id, user="ana", agent=session.spec)
        assert await texts(reread) == ["Who are you?", "ZANZI."]
    await let_go(fresh)


@pytest.mark.parametrize("state", ["closed", "waiting", "working"])
async def test_whatever_it_did_when_it_was_deleted(stage: Stage, tmp_path: Path, state: str) -> None:
    ledger = tmp_path / "ledger"
    mode: dict[str, Any] = {"permission": {"mode": "bypass"}} if state == "working" else {}
    line = {"text": "ZANZI."} if state == "closed" else calls("dawdle", path=str(ledger))
    more: dict[str, Any] = {"idle_close_seconds": 1} if state == "closed" else {}
    session = stage.session(line, tools=("dawdle",), **mode, **more)
    reply = await session.submit("The word is zanzi")

    async def is_there() -> bool:
        how = (await stage.handle(session).describe()).status
        return {
            "closed": how is WorkflowExecutionStatus.COMPLETED,
            "waiting": bool(await session.pending()) if state == "waiting" else False,
            "working": ledger.exists(),
        }[state]

    await until(is_there)
    await session.stored.delete(terminate=True)
    again = await session.stored.delete()
    waiting = stage.app.session(session.id, agent=stage.agent({"text": "Hello."}))

    await waiting.reply("Who are you?")
    ledger.with_suffix(".enough").touch()

    assert again.record is False
    assert await texts(waiting) == ["Who are you?", "Hello."]
    assert (await waiting.result(reply)).status == "unknown"


async def test_a_message_that_meets_the_deletion_brings_nothing_back(stage: Stage) -> None:
    sessions = [stage.session({"text": "ZANZI."}, {"text": "Again."}) for _ in range(6)]
    for session in sessions:
        await session.reply("The word is zanzi")

    async def say(number: int, session: Session) -> None:
        await asyncio.sleep(number * 0.03)
        await session.submit("Who are you?")

    await asyncio.gather(
        *(session.stored.delete(terminate=True) for session in sessions),
        *(say(number, session) for number, session in enumerate(sessions)),
        return_exceptions=True,
    )

    for session in sessions:
        await session.reply("Are you there?")
        assert "The word is zanzi" not in await texts(session)


async def test_what_is_put_under_the_name_of_a_deleted_session_is_there_at_once(stage: Stage) -> None:
    source = stage.session({"text": "Amber."}, {"text": "Blue."})
    await source.reply("Which colour?")
    exported = await source.stored.export()
    for name in ("imported", "copied"):
        old = stage.session({"text": "ZANZI."}, id=f"{stage.name}-{name}")
        await old.reply("The word is zanzi")
        await old.stored.delete(terminate=True)
    imported = stage.session({"text": "Blue."}, id=f"{stage.name}-imported")

    await imported.stored.import_state(exported)
    copied = await source.stored.fork(f"{stage.name}-copied")

    assert [message.get_text_content() async for message in imported.context()] == ["Which colour?", "Amber."]
    assert [message.get_text_content() async for message in copied.context()] == ["Which colour?", "Amber."]


async def test_what_a_deleted_session_writes_late_is_not_taken_and_the_mark_holds_names_and_times_alone(
    stage: Stage,
) -> None:
    session = stage.session({"text": "ZANZI."}, user="ana")
    await session.reply("The word is zanzi")
    await is_written_down(session)
    store = open_store(stage.settings.store, data_dir=stage.settings.data_dir)
    written = await store.get_session("ana", "lamp", session.id)
    assert written is not None
    await session.stored.delete(terminate=True)

    late = await store.save_checkpoint(written.model_copy(update={"seq": written.seq + 9, "closed": True}))

    mark = await store.get_session("ana", "lamp", session.id)
    assert (late, mark is not None and bool(mark.deleted_at)) == (False, True)
    assert mark is not None
    assert not mark.deleting
    assert "zanzi" not in mark.model_dump_json().lower()
    with pytest.raises(KeyError):
        await store.update_session_state("ana", "lamp", session.id, mark.state)
    assert not await session.stored.is_known()
    with pytest.raises(NoSession, match="was deleted"):
        await session.stored.export()


@pytest.mark.parametrize("kind", STORES)
async def test_old_marks_go_with_the_next_deletion(
    unserved: Stage, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    stage = await keeping(unserved, kind, request, tmp_path, encrypted=False)
    user = f"ana-{stage.name}"
    store = open_store(stage.settings.store, data_dir=stage.settings.data_dir)
    for name, days in (("long-ago", 31), ("lately", 29)):
        at = (datetime.now(UTC) - timedelta(days=days)).isoformat()
        mark = record(9, user=user, agent="lamp", session=name).model_copy(update={"deleted_at": at})
        await store.upsert_session(mark)
    await store.upsert_session(record(9, user=user, agent="lamp", session="third"))

    await stage.session(id="third", user=user).stored.delete()

    left = {row.session_id for row in await store.list_sessions(user) if row.deleted_at}
    assert left == {"lately", "third"}
    await store.close()
