"""What a session has given away to segments is read from there, and nobody who reads notices."""

from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.reading.journal import HistoryUnreadable
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import EventPage, MessagePage
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, push_over

pytestmark = pytest.mark.server


async def whole_transcript(session: Session) -> list[Msg]:
    return [message async for message in session.transcript()]


async def all_events(session: Session) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    while (page := await session.events(len(events) + 1)).events:
        events += page.events
    return events


async def continued_as_new(stage: Stage) -> tuple[Session, list[Msg], list[AgentEvent]]:
    """A session in its second run, with what could be read of it in the first."""
    session = stage.session(calls("fetch", page=1), calls("fetch", page=2), {"text": "Read."}, {"text": "More."})
    await session.reply("Read two pages", request_id="r-pages")
    said, told = await whole_transcript(session), await all_events(session)
    await push_over(stage, session)
    return session, said, told


@pytest.mark.proves("S13")
async def test_messages_and_events_of_earlier_runs_come_from_segments(stage: Stage) -> None:
    session, said, told = await continued_as_new(stage)
    handle = stage.handle(session)
    held = await handle.query("messages", 0, result_type=MessagePage)
    first = (await handle.query("events", 1, result_type=EventPage)).first

    await session.reply("And more")
    messages, events = await whole_transcript(session), await all_events(session)

    assert held.start > 0
    assert first > 1
    assert messages[: len(said)] == said
    assert [message.get_text_content() for message in messages[len(said) :]] == ["And more", "More."]
    assert events[: len(told)] == told
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_a_part_of_them_begins_and_ends_where_it_was_asked_for(stage: Stage) -> None:
    session, said, told = await continued_as_new(stage)

    assert [message async for message in session.transcript(3)] == said[3:]
    assert (await session.events(5)).events == tuple(told[4:])
    assert (await session.events(len(told) + 1)).events == ()


async def test_one_who_follows_misses_nothing_and_hears_nothing_twice(stage: Stage) -> None:
    session, _, told = await continued_as_new(stage)
    heard: list[AgentEvent] = []
    await session.submit("And more")

    async for event in session.follow():
        heard.append(event)
        if event.type == "REPLY_END" and event.seq > told[-1].seq:
            break

    assert heard[: len(told)] == told
    assert [event.seq for event in heard] == list(range(1, len(heard) + 1))


@pytest.mark.proves("X11")
async def test_a_copy_is_made_of_a_step_of_an_earlier_run(stage: Stage) -> None:
    session, said, _ = await continued_as_new(stage)

    copy = await session.stored.fork(f"{session.id}-copy", at=1)

    assert [message.content for message in (await copy.state()).context] == [message.content for message in said[:3]]


async def test_a_client_that_can_not_reach_the_segments_is_told_so_and_reads_the_rest(
    stage: Stage, tmp_path: Path
) -> None:
    session, said, _ = await continued_as_new(stage)
    settings = Settings(task_queue=stage.settings.task_queue, blobs=str(tmp_path / "elsewhere"))
    far = Longhaul(await connect(stage.address), settings).session(session.id, agent=session.spec)

    with pytest.raises(HistoryUnreadable, match=r"Here LONGHAUL_BLOBS leads to .*elsewhere"):
        await whole_transcript(far)

    assert [message async for message in far.context()] == said
    assert (await far.status()).messages == len(said)
