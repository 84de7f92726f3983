"""What is too large for a history goes by reference; a reference that leads nowhere is refused, and stops nothing."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from longhaul.starter.client.reading.queries import HistoryLost, Stuck
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.stores.blobs.blobs import delete_session_blobs, key_of, session_prefix
from longhaul.workflows.contract import DATA_CONVERTER, TASK_TIMEOUT, WORKFLOW
from longhaul.workflows.payload_converter import KEY, MISSING, BlobGone
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, approve_and_finish, raw, refused_signal, refused_update, until
from tests.workflows.roomy import Moody, Roomy, failure_of_replay, worker_with

pytestmark = pytest.mark.server

MEGABYTE = 1_000_000
REFERENCE = b"temporal.api.sdk.v1.ExternalStorageReference"


@pytest.fixture
async def roomy(unserved: Stage) -> Roomy:
    """Without a worker yet."""
    return await Roomy.over(unserved)


@pytest.fixture
async def stage(roomy: Roomy) -> AsyncIterator[Roomy]:
    async with roomy.another_worker():
        yield roomy


def reference(key: str, driver: str = "longhaul") -> RawValue:
    """A reference as the SDK writes it, made by hand."""
    text = json.dumps({"driverName": driver, "claimData": {"key": key}})
    return raw(text.encode(), "json/protobuf", messageType=REFERENCE)


def payload_bytes(value: object) -> bytes:
    """What a client stores for a value."""
    return raw(json.dumps(value).encode()).payload.SerializeToString(deterministic=True)


async def largest_event(handle: WorkflowHandle[Any, Any]) -> int:
    return max([event.ByteSize() async for event in handle.fetch_history_events()])


async def test_a_message_of_10_mb_is_answered_and_the_history_stays_small(stage: Roomy) -> None:
    session = await stage.opened({"text": "That was long."}, {"text": "Still here."})
    text = "fog " * (10 * MEGABYTE // 4)

    done = await session.reply(text)

    assert done.get_text_content() == "That was long."
    assert (await session.reply("And now?")).get_text_content() == "Still here."
    assert await largest_event(stage.handle(session)) < 100_000
    said = [message async for message in session.transcript()]
    assert said[0].get_text_content() == text


FORGED: dict[str, RawValue] = {
    "of another session": reference(key_of(session_prefix("default", "longhaul:bo:harbour"), b"x")),
    "of another namespace": reference(key_of(session_prefix("prod", "longhaul:bo:harbour"), b"x")),
    "a path": reference("../../../../etc/passwd"),
    "nothing": reference(""),
    "no claim": raw(b'{"driverName": "longhaul"}', "json/protobuf", messageType=REFERENCE),
    "another driver": reference("x", driver="s3"),
    "not JSON": raw(b"{{{", "json/protobuf", messageType=REFERENCE),
    "deep": raw(b"[" * 9_000, "json/protobuf", messageType=REFERENCE),
    "an old one": raw(b'{"driver_name": "longhaul"}', "json/external-storage-reference"),
    "marked as one": raw(b"{}", "json/plain", __temporal_external_storage_reference=b"true"),
    "what a missing one looks like": raw(b"?", MISSING.decode()),
    "the same with a key": raw(b"?", MISSING.decode(), **{KEY: b"a" * 64}),
}


@pytest.mark.parametrize("label", FORGED)
async def test_a_forged_reference_is_refused_and_the_reply_goes_on(stage: Roomy, label: str) -> None:
    session = await stage.opened(*ASKS)
    waiting = await session.reply("Write to Ana")

    recorded = await refused_signal(stage, session, "confirm", FORGED[label])
    answered = await refused_update(stage, session, "confirm", FORGED[label])

    assert recorded == answered
    assert recorded
    assert await approve_and_finish(session, waiting.id) == "Written."


async def test_a_reference_to_what_is_not_there_is_refused_and_stays_refused_when_it_is_there(stage: Roomy) -> None:
    """A replay that took it would decide otherwise than the session did."""
    session = await stage.opened(*ASKS, {"text": "Hello."})
    waiting = await session.reply("Write to Ana")
    body = {"messages": [{"name": "ana", "role": "user", "content": "fog " * 100_000}]}
    data = payload_bytes(body)
    key = key_of(session_prefix("default", session.workflow_id), data)

    recorded = await refused_signal(stage, session, "observe", reference(key))
    await refused_update(stage, session, "observe", reference(key))
    await stage.blobs.put(key, data)
    assert await failure_of_replay(stage, session) is None
    await stage.handle(session).execute_update("observe", reference(key))
    await approve_and_finish(session, waiting.id)

    assert "was not there" in recorded
    assert "LONGHAUL_BLOBS" in recorded
    assert await failure_of_replay(stage, session) is None
    await stage.blobs.delete_prefix(session_prefix("default", session.workflow_id))
    assert "can't be replayed" in str(await failure_of_replay(stage, session))


@pytest.mark.parametrize("mine", [True, False], ids=["absent", "of another session"])
async def test_a_session_can_not_be_started_by_a_forged_reference(roomy: Roomy, *, mine: bool) -> None:
    name = f"{roomy.name}-forged"
    whose = session_prefix("default", name if mine else "longhaul:bo:harbour")
    handle = await roomy.client.start_workflow(
        WORKFLOW,
        reference(key_of(whose, b"x")),
        id=name,
        task_queue=roomy.settings.task_queue,
        task_timeout=TASK_TIMEOUT,
    )

    async with roomy.worker_process():
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()

    assert isinstance(failure.value.cause, ApplicationError)
    assert "was sent by reference, and" in failure.value.cause.message


async def a_task_has_failed(handle: WorkflowHandle[Any, Any]) -> bool:
    kinds = [event.event_type async for event in handle.fetch_history_events()]
    return EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED in kinds


async def lets_in(session: Session) -> bool:
    """The server lets nobody in before the next try has succeeded, and tries ever less often."""
    try:
        await session.status()
    except HistoryLost:
        return False
    return True


@pytest.mark.usefixtures("impatient")
async def test_a_session_whose_blobs_are_deleted_says_so_and_goes_on_when_they_are_back(roomy: Roomy) -> None:
    async with roomy.another_worker():
        session = await roomy.opened({"text": "One."}, {"text": "Two."})
        await session.reply("fog " * MEGABYTE)
        kept = {key: await roomy.blobs.get(key) for key in await roomy.stored(session)}
        await delete_session_blobs(roomy.blobs, session.workflow_id)

    async with roomy.another_worker():
        with pytest.raises(HistoryLost, match=r"can't be replayed.*LONGHAUL_BLOBS"):
            await session.status()
        await roomy.handle(session).signal("interrupt")
        await until(lambda: a_task_has_failed(roomy.handle(session)))
        asked = [session.status(), session.submit("Are you there?"), session.interrupt()]
        for silence in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(silence, Stuck), silence
            assert re.search(r"can't be replayed.*LONGHAUL_BLOBS", str(silence))
        assert (await roomy.handle(session).describe()).status is WorkflowExecutionStatus.RUNNING

        for key, data in kept.items():
            await roomy.blobs.put(key, data)
        await until(lambda: lets_in(session))
        assert (await session.reply("Back again")).get_text_content() == "Two."


@pytest.mark.parametrize("words", [100_000, 600_000])
async def test_a_large_reply_of_the_model_goes_by_reference(stage: Roomy, words: int) -> None:
    session = await stage.opened({"text": "word " * words})

    done = await session.reply("Write a book")

    assert len(done.get_text_content()) == 5 * words
    assert await stage.stored(session)
    assert await largest_event(stage.handle(session)) < 100_000
    assert await failure_of_replay(stage, session) is None


async def test_a_client_that_does_not_reach_the_blobs_is_told_which_setting_it_lacks(stage: Roomy) -> None:
    session = await stage.opened({"text": "word " * 100_000})
    await session.reply("Write a book")
    history = await stage.handle(session).fetch_history()
    results = [
        event.activity_task_completed_event_attributes.result.payloads[0]
        for event in history.events
        if event.HasField("activity_task_completed_event_attributes")
    ]

    with pytest.raises(BlobGone, match="set LONGHAUL_BLOBS"):
        await DATA_CONVERTER.decode(results)


async def test_more_than_a_session_can_carry_is_refused_before_it_is_sent(stage: Roomy) -> None:
    session = await stage.opened({"text": "Hello."})

    with pytest.raises(Refused, match="the most is 15500 kB"):
        await session.submit("x" * 16 * MEGABYTE)
    reason = await refused_update(stage, session, "submit", {"messages": "x" * 17 * MEGABYTE})

    assert "the most is 16000 kB" in reason
    assert (await session.reply("Are you there?")).get_text_content() == "Hello."


async def test_a_result_that_was_lost_on_its_way_ends_the_reply_and_a_replay_ends_it_too(roomy: Roomy) -> None:
    blobs = Moody(roomy.blobs, losing=b"")
    async with worker_with(blobs, roomy):
        session = await roomy.opened({"text": "word " * 100_000})

        done = await session.reply("Write a book")
        blobs.losing = None

        assert done.error is not None
        assert "its outcome is lost" in done.error.message
        assert (await session.reply("Once more")).error is None
        assert await failure_of_replay(roomy, session) is None
        for key, data in blobs.lost.items():
            await roomy.blobs.put(key, data)
        assert await failure_of_replay(roomy, session) is None


async def test_results_stay_in_the_history_while_no_blob_can_be_stored(roomy: Roomy) -> None:
    async with worker_with(Moody(roomy.blobs, away=True), roomy):
        session = await roomy.opened({"text": "word " * 100_000})

        done = await session.reply("Write a book")

        assert len(done.get_text_content()) == 500_000
        assert await largest_event(roomy.handle(session)) > 500_000


@pytest.mark.proves("S17")
async def test_a_session_waits_while_its_blobs_can_not_be_reached(roomy: Roomy) -> None:
    blobs = Moody(roomy.blobs, away=True)
    async with worker_with(blobs, roomy):
        session = await roomy.opened({"text": "That was long."})
        asking = asyncio.create_task(session.reply("fog " * MEGABYTE))
        await asyncio.sleep(1)
        assert not asking.done()

        blobs.away = False

        assert (await asking).get_text_content() == "That was long."
