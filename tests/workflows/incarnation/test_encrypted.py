"""Sessions with a key of their own: they work as others do, lie nowhere in clear text, and end with their keys."""

import base64
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.plain.errors import Unavailable
from longhaul.starter.client.reading.queries import BlobsUnreachable, NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, keyring_in, let_go
from longhaul.stores.keys.encrypted_store import UnreadableRecord
from longhaul.stores.keys.keyring import NoKey, WrongMaster
from longhaul.stores.state.open_store import open_store
from longhaul.worker import build
from longhaul.workflows.contract import REFUSED, WORKFLOW, BlobGone, owner_of
from tests.e2e.processes import WorkerSettings, worker
from tests.workflows.conftest import Stage
from tests.workflows.hubs.rooms import heard, member
from tests.workflows.operations import ASKS, approve_and_finish, calls, push_over, results, until

pytestmark = pytest.mark.server

WORD = "Zinnober7731"
"""Stands in what is said, called and answered, and may be found nowhere."""


def master_key(name: str = "first") -> str:
    return f"{name}:{base64.b64encode(os.urandom(32)).decode()}"


@pytest.fixture
async def locked(unserved: Stage) -> AsyncIterator[Stage]:
    """A stage that encrypts, on which no worker polls yet."""
    settings = unserved.settings.model_copy(update={"master_key": SecretStr(master_key())})
    client = await connect(unserved.address, settings=settings)
    yield replace(unserved, client=client, settings=settings)
    await let_go(client)


def of_a_process(locked: Stage) -> WorkerSettings:
    return WorkerSettings(
        address=locked.address,
        task_queue=locked.settings.task_queue,
        directory=locked.settings.data_dir,
        tools=locked.settings.tools,
        further={"LONGHAUL_MASTER_KEY": locked.settings.master_key.get_secret_value()},
    )


async def raw_events(stage: Stage, session: Session) -> bytes:
    """All that the server keeps of its runs, memo and pending activities included."""
    found = bytearray()
    async for row in stage.client.list_workflows(f"WorkflowId = '{session.workflow_id}'"):
        handle = stage.client.get_workflow_handle(row.id, run_id=row.run_id)
        found += (await handle.describe()).raw_description.SerializeToString()
        found += b"".join([event.SerializeToString() async for event in handle.fetch_history_events()])
    return bytes(found)


def raw_files(stage: Stage) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in stage.settings.data_dir.rglob("*") if path.is_file()}


async def first_input(stage: Stage, session: Session) -> Payload:
    history = await stage.handle(session).fetch_history()
    return history.events[0].workflow_execution_started_event_attributes.input.payloads[0]


@pytest.mark.proves("X12")
async def test_a_session_works_on_and_nothing_of_it_lies_in_clear_text(locked: Stage) -> None:
    ask = {"text": f"I write {WORD}.", "tool_calls": [{"name": "send", "input": {"to": WORD}}]}
    session = locked.session(ask, {"text": f"Written to {WORD}."}, calls("fetch", page=1, chars=40_000), {"text": WORD})
    async with worker(of_a_process(locked)):
        reply = await session.submit(f"Write to {WORD}")
        await until(lambda: waits(session))
    async with locked.another_worker():
        written = await approve_and_finish(session, reply)
        await push_over(locked, session)
        again = await session.reply(f"{WORD}, once more " + "fog " * 100_000)
        await until(lambda: is_written_down(session))
        said = [message.get_text_content() async for message in session.transcript()]
        events, files = await raw_events(locked, session), raw_files(locked)
        card = [card for card in await locked.app.sessions() if card.workflow_id == session.workflow_id]

    assert (written, again.get_text_content()) == (f"Written to {WORD}.", WORD)
    assert f"Write to {WORD}" in said
    assert "You can refer to the file in 'recall output=" in results(again)[0][1]
    assert [one.session_id for one in card] == [session.id]
    assert len(events) > 10_000
    assert WORD.encode() not in events
    assert any("/blobs/" in name for name in files)
    assert any("/sessions/" in name for name in files)
    assert any("/streams/" in name for name in files)
    assert [name for name, content in files.items() if WORD.encode() in content] == []


@pytest.mark.proves("X12")
async def test_who_is_refused_reads_the_quote_and_the_history_does_not_hold_it(locked: Stage) -> None:
    """Its worker is a process: the SDK leaves a coroutine behind for a start that can't be read."""
    async with worker(of_a_process(locked)):
        session = locked.session({"text": "Here."})
        await session.reply("Hello")
        with pytest.raises(WorkflowUpdateFailedError) as operation:
            await locked.handle(session).execute_update("submit", {"request_id": "r", "messages": [{"role": WORD}]})
        with pytest.raises(WorkflowUpdateFailedError) as unread:
            await locked.handle(session).execute_update("confirm", {"decisions": WORD})
        started = await locked.client.start_workflow(
            WORKFLOW, {"session_id": "s", "spec": WORD}, id=f"{locked.name}-bad", task_queue=locked.settings.task_queue
        )
        with pytest.raises(WorkflowFailureError) as start:
            await started.result()
        events = await raw_events(locked, session) + b"".join(
            [event.SerializeToString() async for event in started.fetch_history_events()]
        )

    for refused, kind in ((operation, REFUSED), (unread, REFUSED), (start, "BadStart")):
        cause = refused.value.cause
        assert isinstance(cause, ApplicationError)
        assert (cause.type, WORD in cause.message) == (kind, True), cause
        assert kind.encode() in events
    assert WORD.encode() not in events


async def waits(session: Session) -> bool:
    return bool(await session.pending())


async def answers(session: Session) -> bool:
    """False while the server keeps back a task that has failed: the pause before it tries again grows."""
    try:
        return bool(await session.pending())
    except Unavailable:
        return False


async def is_written_down(session: Session) -> bool:
    status = await session.status()
    return status.saved_seq >= status.seq > 0


async def raw_redis(url: str, mark: str) -> dict[str, bytes]:
    """What lies under the keys that hold this mark, by key."""
    client = Redis.from_url(url)
    found = dict[str, bytes]()
    async for key in client.scan_iter(match=f"*{mark}*"):
        match await client.type(key):
            case b"string":
                found[key.decode()] = repr(await client.get(key)).encode()
            case b"hash":
                found[key.decode()] = repr(await client.hgetall(key)).encode()
            case b"stream":
                found[key.decode()] = repr(await client.xrange(key)).encode()
            case b"set":
                found[key.decode()] = repr(await client.smembers(key)).encode()
            case other:
                raise AssertionError(other)
    await client.aclose()
    return found


@pytest.mark.redis
async def test_nothing_lies_in_redis_in_clear_text(unserved: Stage, redis_url: str) -> None:
    mark = uuid4().hex
    places = {name: f"{redis_url}?prefix={name}{mark}:" for name in ("store", "blobs", "keys", "redis_url")}
    settings = unserved.settings.model_copy(update={**places, "master_key": SecretStr(master_key())})
    client = await connect(unserved.address, settings=settings)
    stage = replace(unserved, client=client, settings=settings)
    try:
        session = stage.session({"text": WORD}, {"text": "Blue."}, offloader="redis")
        async with stage.another_worker():
            await session.reply(f"Say {WORD} " + "fog " * 100_000)
            await until(lambda: is_written_down(session))
            lying = await raw_redis(redis_url, mark)
            heard = [event async for event in session.reply_stream("And now?")]
            done = await session.stored.delete(terminate=True, by="ana")
    finally:
        await let_go(client)

    assert {name.partition(mark)[0] for name in lying} == {*places}
    assert [name for name, content in lying.items() if WORD.encode() in content] == []
    assert heard[-1].type == "REPLY_END"
    assert (done.key, done.record, done.stream) == (True, True, True)
    assert done.blobs > 0


@pytest.mark.proves("X12")
@pytest.mark.usefixtures("impatient")
async def test_nobody_reads_a_session_whose_key_is_deleted_and_others_go_on(locked: Stage) -> None:
    session, other = locked.session({"text": WORD}, user="ana"), locked.session({"text": "Blue."}, {"text": "Red."})
    async with locked.another_worker():
        await session.reply(f"Say {WORD}")
        await other.reply("Which colour?")
        await until(lambda: is_written_down(session))
        copied, kept = await first_input(locked, session), await first_input(locked, other)
        async with open_store(locked.settings.store, data_dir=locked.settings.data_dir) as store:
            record = await store.get_session("ana", "lamp", session.id)
            done = await session.stored.delete(terminate=True, by="ana")
            assert record is not None
            await store.upsert_session(record)  # as a backup would bring it back
        after = await other.reply("And now?")
    with pytest.raises(UnreadableRecord, match="its key was deleted at 20"):
        await session.stored.export()
    fresh = await connect(locked.address, settings=locked.settings)
    try:
        with pytest.raises(BlobGone, match="the session was deleted: its key was deleted at 20"):
            await fresh.data_converter.decode([copied])
        assert await fresh.data_converter.decode([kept], [dict])
    finally:
        await let_go(fresh)

    assert (done.key, done.record) == (True, True)
    assert after.get_text_content() == "Red."


@pytest.mark.proves("X12")
async def test_what_the_server_still_lists_says_that_it_was_deleted(locked: Stage) -> None:
    session = locked.session(*ASKS)
    keys = keyring_in(locked.client)
    assert keys is not None
    async with locked.another_worker():
        await session.submit("Write to Ana")
        await until(lambda: waits(session))
        await keys.delete(owner_of(locked.client.namespace, session.workflow_id))
        cards = {card.workflow_id: card for card in await locked.app.sessions()}
        with pytest.raises(NoSession, match="no longer exists: its key was deleted at 20"):
            await session.status()

    assert cards[session.workflow_id].status == "deleted"


@pytest.mark.proves("X12")
async def test_a_worker_without_the_right_master_key_does_not_start(locked: Stage) -> None:
    async with locked.another_worker():
        pass
    for wrong, why in ((master_key(), "the key named 'first' is another"), (master_key("new"), "'first' is needed")):
        settings = locked.settings.model_copy(update={"master_key": SecretStr(wrong)})
        client = await connect(locked.address, settings=settings)
        try:
            with pytest.raises(WrongMaster, match=why):
                async with build(client, settings, locked.providers):
                    pass
        finally:
            await let_go(client)


@pytest.mark.proves("X12")
@pytest.mark.usefixtures("impatient")
async def test_a_key_store_that_is_away_is_waited_for(locked: Stage) -> None:
    session = locked.session(*ASKS)
    async with locked.another_worker():
        reply = await session.submit("Write to Ana")
        await until(lambda: waits(session))
    keys, aside = locked.settings.data_dir / "keys.db", locked.folder / "aside.db"
    keys.rename(aside)
    keys.mkdir()
    async with locked.another_worker():
        with pytest.raises(BlobsUnreachable, match="it continues by itself when that can be reached"):
            await session.status()
        keys.rmdir()
        aside.rename(keys)
        await until(lambda: answers(session))
        written = await approve_and_finish(session, reply)

    assert written == "Written."


async def test_a_sub_agent_shares_the_key_of_who_started_it(locked: Stage) -> None:
    """By its payloads' key: deleting the lead's deletes what the sub-agent was told, too."""
    helper = locked.agent({"text": WORD}, name="helper", tools=())
    task = calls("Agent", agent="helper", task=f"Look for {WORD}")
    session = locked.session(task, {"text": "Done."}, tools=("Agent",), agents={"helper": helper})
    async with locked.another_worker():
        done = await session.reply("Have it looked for")
        (child,) = (await session.status()).children
    start = (await locked.client.get_workflow_handle(child.workflow_id).fetch_history()).events[0]
    told = start.workflow_execution_started_event_attributes.input.payloads[0]

    assert (child.outcome, done.get_tool_results()[0].get_text()) == ("success", WORD)
    assert [name for name, content in raw_files(locked).items() if WORD.encode() in content] == []
    assert told.metadata["key"] == (await first_input(locked, session)).metadata["key"]


async def test_a_client_without_the_master_key_is_told_which_setting_it_lacks(locked: Stage, unserved: Stage) -> None:
    session = locked.session({"text": WORD})
    async with locked.another_worker():
        await session.reply(f"Say {WORD}")
        with pytest.raises(BlobGone, match="this process has no key: set LONGHAUL_MASTER_KEY"):
            await unserved.app.session(session.id, agent=session.spec).status()
        # Such as somebody types, or an older client sends; who has no key may still be heard.
        await unserved.handle(session).signal(
            "observe", {"messages": [{"name": "ana", "role": "user", "content": "x"}]}
        )
        status = await session.status()

    assert status.status == "idle"


async def test_a_hub_is_deleted_with_its_key_and_its_members_keep_what_they_heard(locked: Stage) -> None:
    keys = keyring_in(locked.client)
    assert keys is not None
    ana = member(locked, {"text": "Heard."})
    async with locked.another_worker():
        hub = locked.app.hub(f"jury-{locked.name}", {"ana": ana}, announcement=WORD)
        await hub.start()
        history = await locked.client.get_workflow_handle(hub.workflow_id).fetch_history()
        started = history.events[0].workflow_execution_started_event_attributes.input.payloads[0]
        key_id = started.metadata["key"].decode()
        assert await keys.decrypt(None, key_id, started.data)

        await hub.end(delete=True)
        await hub.end(delete=True)  # done again after a failure on the way
        told = await heard(ana)

    with pytest.raises(NoKey, match="its key was deleted"):
        await keys.decrypt(None, key_id, started.data)
    await until(lambda: is_unknown(locked, hub.workflow_id))
    assert told == [f"user: {WORD}"]


async def is_unknown(stage: Stage, workflow_id: str) -> bool:
    try:
        await stage.client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND
    return False


async def test_what_an_activity_fails_with_is_encrypted_and_told(locked: Stage) -> None:
    """The provider's words may quote what it was sent: the server sees none of them, and people are told."""
    session = locked.session(model=f"scripted:/nowhere/{WORD}.jsonl")
    async with locked.another_worker():
        await session.submit("Which colour?")
        await until(lambda: has_failed(locked, session))
        events = await raw_events(locked, session)

    assert b"Encoded failure" in events
    assert f"/nowhere/{WORD}".encode() not in events


async def has_failed(stage: Stage, session: Session) -> bool:
    described = (await stage.handle(session).describe()).raw_description
    if any(one.HasField("last_failure") for one in described.pending_activities):
        return True
    history = await stage.handle(session).fetch_history()
    return any(event.HasField("activity_task_failed_event_attributes") for event in history.events)
