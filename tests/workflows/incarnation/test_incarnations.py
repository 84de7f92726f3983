"""A session that closed, or was ended from outside, is opened again as it was: or it says that it can't be."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.session import Session
from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.store import SessionRecord
from longhaul.workflows.contract import Status
from tests.workflows.conftest import Stage, TypeTemporal
from tests.workflows.listener import listening, says
from tests.workflows.operations import calls, results, until
from tests.workflows.roomy import failure_of_replay

# The server takes half a minute to delete the history of a run that has only just ended.
pytestmark = pytest.mark.server

SHORT_LIVED: dict[str, Any] = {"idle_close_seconds": 1}


async def closes(stage: Stage, session: Session) -> str:
    """Wait until the session has closed of itself; its run."""
    handle = stage.handle(session)

    async def closed() -> bool:
        return (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED

    await until(closed)
    return (await handle.describe()).run_id


async def is_saved(session: Session) -> Status:
    async def saved() -> bool:
        status = await session.status()
        return status.saved_seq >= status.seq

    await until(saved)
    return await session.status()


async def is_quarantined(session: Session) -> str:
    async def quarantined() -> bool:
        return (await session.status()).quarantine != ""

    await until(quarantined)
    return (await session.status()).quarantine


async def forget(session: Session, stage: Stage, type_temporal: TypeTemporal, run_id: str) -> None:
    """Delete the history of a run, as the end of its retention does."""
    typed = await type_temporal("workflow", "delete", "--workflow-id", session.workflow_id, "--run-id", run_id)
    assert typed.status == 0, typed.said

    async def forgotten() -> bool:
        try:
            await stage.client.get_workflow_handle(session.workflow_id, run_id=run_id).describe()
        except RPCError:
            return True
        return False

    await until(forgotten)


async def in_the_inbox(stage: Stage, session: Session) -> bool:
    """Whether it stands there as one that waits to be resumed."""
    found = await stage.app.inbox(patience_seconds=1)
    return session.workflow_id in [card.workflow_id for card, status in found.quarantined if status.quarantine]


async def all_events(session: Session) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    while (page := await session.events(len(events) + 1)).events:
        events += page.events
    return events


def stored(stage: Stage) -> Path:
    """The one session's file in the state store."""
    (found,) = stage.settings.data_dir.glob("sessions/*/lamp*/*.json")
    return found


@pytest.mark.proves("E2", "S15")
async def test_an_idle_session_closes_and_goes_on_where_it_was(stage: Stage) -> None:
    async with listening(lambda number: says(("Amber.", "As I said: amber.")[number])) as model:
        session = stage.session(**{**SHORT_LIVED, **model.config})
        await session.configure(mode="bypass", by="ana")
        first = await session.reply("Which colour?", request_id="r-colour")
        before = await all_events(session)
        await closes(stage, session)

        second = await session.reply("Say it again")

    assert (first.get_text_content(), second.get_text_content()) == ("Amber.", "As I said: amber.")
    assert model.texts() == ["Which colour?", "Amber.", "Say it again"]
    assert (await session.state()).permission_context.mode is PermissionMode.BYPASS
    status = await session.status()
    assert (status.incarnation, status.quarantine, status.messages, status.model_calls) == (2, "", 4, 2)
    events = await all_events(session)
    assert events[: len(before)] == before
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.delta for event in events if event.type == "TEXT_BLOCK_DELTA"] == ["Amber.", "As I said: amber."]


@pytest.mark.parametrize("limit", [0, 604_800])
async def test_a_life_that_began_with_another_limit_closes_by_that_of_the_one_that_it_goes_on_with(
    stage: Stage, limit: int
) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."}, **SHORT_LIVED)
    await session.reply("First")
    first = await closes(stage, session)
    patient = stage.app.session(session.id, agent=session.spec.model_copy(update={"idle_close_seconds": limit}))

    reply = await patient.reply("Second")

    assert reply.get_text_content() == "Two."
    assert await closes(stage, session) != first
    assert await failure_of_replay(stage, session) is None


@pytest.mark.proves("S10")
async def test_a_request_is_not_answered_again_in_a_later_life(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."}, **SHORT_LIVED)
    first = await session.submit("Hello", request_id="r-amber")
    await session.wait(first)
    await closes(stage, session)

    again = await session.submit("Hello", request_id="r-amber")

    async def open_again() -> bool:
        return (await session.status()).incarnation == 2

    await until(open_again)
    assert again == first
    assert (await session.result(first)).status == "finished"
    assert (await session.status()).model_calls == 1


@pytest.mark.proves("E2")
async def test_a_closed_session_outlives_its_history(stage: Stage, type_temporal: TypeTemporal) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."}, **SHORT_LIVED)
    await session.reply("First")
    run_id = await closes(stage, session)
    await forget(session, stage, type_temporal, run_id)

    reply = await session.reply("Second")

    status = await session.status()
    assert (reply.get_text_content(), status.quarantine, status.incarnation, status.messages) == ("Two.", "", 2, 4)


@pytest.mark.proves("S16")
async def test_a_session_that_was_terminated_in_mid_reply_is_rebuilt(
    unserved: Stage, type_temporal: TypeTemporal
) -> None:
    stage = unserved
    marks = stage.workspace / "sent.txt"
    slow = calls("dawdle", path=str(marks))
    allowed: dict[str, Any] = {"permission": {"mode": "bypass"}, "tools": ["dawdle"]}
    session = stage.session({"text": "Forty."}, {"text": "I begin.", **slow}, {"text": "Done."}, **allowed)
    async with stage.another_worker():
        await session.reply("How many?")
        cut_off = await session.submit("Do it")

        async def started() -> bool:
            return marks.exists()

        await until(started)
        typed = await type_temporal("workflow", "terminate", "--workflow-id", session.workflow_id)
        assert typed.status == 0, typed.said

        after = await session.reply("And now?")

        status = await session.status()
        whole = [message async for message in session.transcript()]
        ended = (await session.result(cut_off)).message
        marks.with_suffix(".enough").touch()
    assert (after.get_text_content(), status.quarantine, status.incarnation) == ("Done.", "", 2)
    assert marks.read_text() == "started\n"
    assert ended is not None
    assert [state for state, _ in results(ended)] == [ToolResultState.UNKNOWN]
    assert "Outcome unknown" in results(ended)[0][1]
    texts = [message.get_text_content() for message in whole if message.get_text_content()]
    assert texts == ["How many?", "Forty.", "Do it", "I begin.", "And now?", "Done."]


@pytest.mark.proves("S16")
async def test_what_came_after_the_last_checkpoint_is_said_to_be_unknown(
    stage: Stage, type_temporal: TypeTemporal
) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."})
    await session.reply("First")
    saved = (await is_saved(session)).saved_seq
    handle = stage.handle(session)
    run_id = (await handle.describe()).run_id
    await handle.terminate()
    await forget(session, stage, type_temporal, run_id)

    waiting = await session.submit("Second")
    quarantine = await is_quarantined(session)
    await until(lambda: in_the_inbox(stage, session))

    assert (await session.status()).status == "waiting"
    assert (await session.result(waiting)).status == "queued"
    await session.resume(by="ana")
    reply = await session.wait(waiting)
    assert f"longhaul resume {session.id}" in quarantine
    assert int(quarantine.partition("checkpoint of entry ")[2].partition(";")[0]) >= saved
    assert (reply.get_text_content(), (await session.status()).messages) == ("Two.", 4)


async def test_a_session_of_which_nothing_is_left_says_so(stage: Stage, type_temporal: TypeTemporal) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."})
    await session.reply("First")
    await is_saved(session)
    handle = stage.handle(session)
    run_id = (await handle.describe()).run_id
    record = json.loads(stored(stage).read_text())
    blank = {**record["state"], "context": []}
    claim = {"claim": {"source": "nothing"}, "seq": 0, "state": blank, "segments": []}
    kept = {name: value for name, value in record.items() if name not in ("carried", "state_digest")}
    stored(stage).write_text(_spelt({**kept, **claim}))
    await handle.terminate()
    await forget(session, stage, type_temporal, run_id)

    await session.submit("Second")

    assert "no checkpoint of it is left" in await is_quarantined(session)


def _spelt(record: dict[str, Any]) -> str:
    """As the file store has it: what is small on the first line."""
    large = {name: record.pop(name) for name in ("segments", "state")}
    return f"{json.dumps(record)[:-1]},\n{json.dumps(large)[1:]}\n"


async def test_malformed_input_in_the_store_is_replaced_from_the_history(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."}, **SHORT_LIVED)
    await session.reply("First")
    await closes(stage, session)
    stored(stage).write_bytes(b"\x00\xffrubbish")

    await session.reply("Second")

    status = await is_saved(session)
    assert (status.quarantine, status.messages, status.incarnation) == ("", 4, 2)
    assert json.loads(stored(stage).read_text())["seq"] >= status.saved_seq


async def test_malformed_input_under_a_running_session_is_replaced_by_its_next_checkpoint(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."})
    await session.reply("First")
    await is_saved(session)
    stored(stage).write_bytes(b"\x00\xffrubbish")

    await session.reply("Second")

    status = await is_saved(session)
    assert status.checkpoint_error == ""
    assert json.loads(stored(stage).read_text())["seq"] >= status.saved_seq


async def test_malformed_input_in_the_store_is_named_when_there_is_nothing_else(
    stage: Stage, type_temporal: TypeTemporal
) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."}, **SHORT_LIVED)
    await session.reply("First")
    run_id = await closes(stage, session)
    whole = stored(stage).read_bytes()
    stored(stage).write_bytes(whole[: len(whole) // 2])
    await forget(session, stage, type_temporal, run_id)

    waiting = await session.submit("Second")
    quarantine = await is_quarantined(session)
    stored(stage).write_bytes(whole)
    await session.resume()
    reply = await session.wait(waiting)

    assert "can't be used" in quarantine
    assert "backup" in quarantine
    status = await session.status()
    assert (reply.get_text_content(), status.quarantine, status.messages) == ("Two.", "", 4)


@pytest.mark.proves("S17")
async def test_a_store_that_is_down_at_a_checkpoint_costs_nothing(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."}, {"text": "Three."}, idle_close_seconds=8)
    await session.reply("First")
    await is_saved(session)
    folder = stage.settings.data_dir / "sessions"
    folder.rename(folder.with_name("away"))
    folder.write_text("no directory")
    await session.reply("Second")

    async def complains() -> bool:
        return (await session.status()).checkpoint_error != ""

    await until(complains)
    error = (await session.status()).checkpoint_error
    folder.unlink()
    folder.with_name("away").rename(folder)
    await closes(stage, session)
    await session.reply("Third")

    assert "the file store in" in error
    assert (await session.status()).messages == 6


async def test_operations_that_came_before_a_life_began_are_not_lost(stage: Stage) -> None:
    session = stage.session({"text": "One."}, {"text": "Two."}, {"text": "Three."}, **SHORT_LIVED)
    await session.reply("First")
    await closes(stage, session)
    folder = stage.settings.data_dir / "sessions"
    folder.rename(folder.with_name("away"))
    folder.write_text("no directory")
    second = await session.submit("Second")
    await stage.handle(session).terminate()
    folder.unlink()
    folder.with_name("away").rename(folder)

    third = await session.reply("Third")

    assert (await session.wait(second)).get_text_content() == "Two."
    status = await session.status()
    assert (third.get_text_content(), status.messages, status.quarantine) == ("Three.", 6, "")


async def test_an_edited_state_is_gone_on_with(stage: Stage) -> None:
    async with listening(lambda number: says(("Amber.", "Blue.")[number])) as model:
        session = stage.session(**{**SHORT_LIVED, **model.config})
        await session.reply("Which colour?", request_id="r-colour")
        await closes(stage, session)
        record = json.loads(stored(stage).read_text())
        record["state"]["context"][1]["content"][0]["text"] = "Blue."
        stored(stage).write_text(_spelt(record))

        await session.reply("Say it again")
        again = await session.submit("Which colour?", request_id="r-colour")

    assert model.texts() == ["Which colour?", "Blue.", "Say it again"]
    assert (await session.result(again)).status == "finished"
    assert "put into the state store" in (await session.status()).note


async def test_a_state_that_somebody_put_into_the_store_is_started_with(stage: Stage) -> None:
    async with listening(lambda _: says("Blue.")) as model:
        first = stage.session(**{**SHORT_LIVED, **model.config})
        await first.reply("Which colour?")
        await closes(stage, first)
        record = json.loads(stored(stage).read_text())
        second = stage.app.session("another", agent=first.spec)
        ours = {name: record[name] for name in ("version", "user_id", "agent_id", "state", "segments")}
        shutil.rmtree(stage.settings.data_dir / "sessions")
        await _put(stage, {**ours, "session_id": "another", "segments": []})

        await second.reply("Say it again")

    assert model.texts() == ["Which colour?", "Blue.", "Say it again"]


async def _put(stage: Stage, record: dict[str, Any]) -> None:
    await open_store("file", data_dir=stage.settings.data_dir).upsert_session(SessionRecord.model_validate(record))
