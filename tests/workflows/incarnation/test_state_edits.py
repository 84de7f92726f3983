"""A session's state from outside: exported, imported, edited in places, and copied into another session."""

import json
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from temporalio.client import WorkflowExecutionStatus

from longhaul.agent.incarnation.history import FILES_STAY, NoSuchStep
from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.states.state_json import BadPath
from longhaul.starter.client.wire import MovedOn, Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, calls, until

pytestmark = pytest.mark.server

BRICKS = ({"text": "Forty."}, {"text": "Red."}, {"text": "Square."})


def said(messages: list[Msg]) -> list[str]:
    return [message.get_text_content() for message in messages]


async def talked(session: Session) -> list[str]:
    return said((await session.state()).context)


async def first_text(session: Session) -> str:
    return await anext(message.get_text_content() async for message in session.context())


async def audit(session: Session) -> list[dict[str, str]]:
    found, page = [], await session.events()
    while page.events:
        found += [event.value for event in page.events if event.name == "state_replaced"]
        page = await session.events(page.events[-1].seq + 1)
    return found


async def test_an_export_goes_into_a_session_that_does_not_exist_yet(stage: Stage) -> None:
    first = stage.session(*BRICKS)
    await first.reply("How many bricks?")
    second = stage.session({"text": "Still forty."})

    await second.stored.import_state(await first.stored.export(), by="ana", why="moved house")
    await second.reply("And now?")

    assert await talked(second) == ["How many bricks?", "Forty.", "And now?", "Still forty."]
    assert await audit(second) == [{"by": "ana", "why": "moved house"}]


async def test_an_export_says_which_version_it_has_and_is_the_state(stage: Stage) -> None:
    session = stage.session(*BRICKS)
    await session.reply("How many bricks?")

    exported = json.loads(await session.stored.export())

    assert exported.pop("version") == 1
    assert (exported.pop("reply_id"), exported.pop("cur_iter")) == ("", 0)
    assert exported == (await session.state()).model_dump(mode="json")


FIELDS_OF_AGENTSCOPE = {
    *("session_id", "user_id", "summary", "context", "reply_id", "cur_iter", "reply_context", "permission_context"),
    *("tool_context", "tasks_context", "plan_mode_context"),
}


async def test_an_export_has_each_field_that_agentscope_names_also_while_it_is_empty(stage: Stage) -> None:
    session = stage.session(calls("fetch", page=1), *ASKS, user="ana")
    message = await session.reply("Read, and send")
    fresh = stage.session({"text": "-"})
    await fresh.observe("Nothing is asked yet.")

    state = await session.state()
    waiting, empty = [json.loads(await one.stored.export()) for one in (session, fresh)]
    other = stage.session({"text": "-"})
    left_out = await other.stored.import_state(waiting)

    assert set(waiting) >= FIELDS_OF_AGENTSCOPE
    assert set(empty) >= FIELDS_OF_AGENTSCOPE
    assert (waiting["session_id"], waiting["user_id"], waiting["reply_id"]) == (session.id, "ana", message.id)
    assert waiting["cur_iter"] == waiting["reply_context"]["cur_iter"] == 1
    assert (state.reply_id, state.cur_iter) == (message.id, 1)
    assert waiting["tool_context"]["activated_groups"] == []
    assert (empty["tasks_context"], empty["plan_mode_context"]) == ({"tasks": []}, {"active": False})
    assert (empty["reply_id"], empty["cur_iter"], empty["reply_context"]) == ("", 0, None)
    assert left_out == ()
    assert (await other.state()).reply_id == ""


async def test_an_import_that_is_wrong_names_the_place_and_starts_nothing(stage: Stage) -> None:
    first = stage.session(*BRICKS)
    await first.reply("How many bricks?")
    broken = json.loads(await first.stored.export())
    broken["context"][1]["content"][0]["text"] = 40
    second = stage.session(*BRICKS)

    with pytest.raises(Refused, match=r"context\[1\]\.content\[0\]\.text: Input should be a valid string"):
        await second.stored.import_state(broken)

    assert [card for card in await stage.app.sessions() if card.workflow_id == second.workflow_id] == []


@pytest.mark.proves("E6")
async def test_the_model_reads_what_was_edited_and_the_record_says_who_did_it(stage: Stage) -> None:
    session = stage.session({"text": "Forty."}, {"text": "I see.", "expect": {"messages": 4, "last_contains": "Sure"}})
    await session.reply("How many bricks?")

    await session.stored.edit("context[1].content[0].text", "Fifty.", by="ben", why="recounted")
    await session.stored.edit("summary", "They count bricks.", by="ben")
    answer = await session.reply("Sure?")

    assert answer.error is None
    assert await talked(session) == ["How many bricks?", "Fifty.", "Sure?", "I see."]
    assert await first_text(session) == "They count bricks."
    assert await audit(session) == [{"by": "ben", "why": "recounted"}, {"by": "ben", "why": ""}]


async def test_what_was_said_before_an_edit_stays_in_the_transcript(stage: Stage) -> None:
    session = stage.session(*BRICKS)
    await session.reply("How many bricks?")

    await session.stored.edit("context[1].content[0].text", "Fifty.")

    everything = said([message async for message in session.transcript()])
    assert everything == ["How many bricks?", "Forty.", "How many bricks?", "Fifty."]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("sumary", "x", "there can be no field of that name"),
        ("summary", 7, "summary: Input should be a valid string"),
        ("context[9].name", "x", "a list of 2 items"),
        ("session_id", "other", "belongs to the session"),
        ("context[1].content[0].type", "tool_result", r"context\[1\]"),
    ],
)
async def test_an_edit_that_can_not_stand_changes_nothing(
    stage: Stage, path: str, value: object, sentence: str
) -> None:
    session = stage.session(*BRICKS)
    await session.reply("How many bricks?")

    with pytest.raises((BadPath, Refused), match=sentence):
        await session.stored.edit(path, value)

    assert await talked(session) == ["How many bricks?", "Forty."]
    assert await audit(session) == []


async def test_a_state_that_was_read_before_something_happened_is_refused(stage: Stage) -> None:
    session = stage.session(*BRICKS)
    await session.reply("How many bricks?")
    state, seq = await session.state(), (await session.status()).seq
    await session.observe("It rains.")

    with pytest.raises(MovedOn, match="is not where the session stands"):
        await session.stored.import_state(state, expected_seq=seq)

    assert await talked(session) == ["How many bricks?", "Forty.", "It rains."]


@pytest.mark.proves("E6")
async def test_a_session_at_work_keeps_its_state(stage: Stage) -> None:
    session = stage.session({"text": "Forty. " * 20, "chunk_chars": 1, "delay_ms": 500})
    reply_id = await session.submit("How many bricks?")

    with pytest.raises(Refused, match="the session is at work"):
        await session.stored.edit("summary", "x")

    await until(
        partial(replies, session)
    )  # before, it looks for its earlier incarnation, and nothing is to be interrupted
    await session.interrupt()
    await session.wait(reply_id)


async def replies(session: Session) -> bool:
    return bool((await session.status()).reply_id)


@pytest.mark.proves("E6", "X10")
async def test_a_fork_goes_on_from_a_step_and_repeats_nothing(stage: Stage) -> None:
    walks = (calls("fetch", page=1), calls("fetch", page=2), {"text": "Read."})
    first = stage.session(*walks, tools=["fetch"])
    await first.reply("Read two pages")

    second = await first.stored.fork(f"{first.id}-copy", at=1, by="ana")
    started = await second.status()
    copied = await talked(second)

    results = [result async for message in second.transcript() for result in message.get_tool_results()]
    assert copied == ["Read two pages", "", ""]
    assert [result.get_text()[:10] for result in results] == ["<<page 1>>"]
    assert (started.status, started.model_calls) == ("idle", 0)
    assert [event["by"] for event in await audit(second)] == ["ana"]
    assert first.workflow_id in (await audit(second))[0]["why"]


async def test_a_copy_of_a_copy_goes_on_in_the_script_where_the_first_session_was(stage: Stage) -> None:
    lines = (calls("fetch", page=1), calls("fetch", page=2), {"text": "Both read."}, {"text": "And thought over."})
    first = stage.session(*lines, tools=["fetch"])
    await first.reply("Read two pages")

    now = await first.stored.fork(f"{first.id}-now")
    back = await first.stored.fork(f"{first.id}-back", at=1)
    again = await back.stored.fork(f"{first.id}-again")
    messages = [await one.reply("Go on") for one in (now, back, again)]

    assert [said([message])[0] for message in messages] == ["And thought over.", "Both read.", "Both read."]
    fetched = [block.input for message in messages for block in message.get_tool_calls()]
    assert [json.loads(one)["page"] for one in fetched] == [2, 2]
    assert (await back.status()).model_calls == 2, "the calls of the first session are not its own"


@pytest.mark.proves("X10")
async def test_a_fork_says_what_became_of_its_files(stage: Stage) -> None:
    shared = stage.session(*BRICKS)
    own = stage.session(*BRICKS, workspace=None)
    for session in (shared, own):
        await session.reply("How many bricks?")

    among, apart = [await session.stored.fork(f"{session.id}-copy") for session in (shared, own)]

    root = (await own.status()).workspace_root
    notes = [(await copy.status()).note for copy in (among, apart)]
    assert notes[0].startswith("it works in the same files ")
    assert str(stage.workspace) in notes[0]
    assert notes[1].startswith("it has a folder of its own, which is empty: ")
    assert notes[1].endswith(root)
    assert await talked(among) == ["How many bricks?", "Forty."]
    hints = [block for message in (await apart.state()).context for block in message.content if block.type == "hint"]
    assert [hint.hint for hint in hints] == [FILES_STAY], "its model is told, too"
    assert (await apart.reply("And now?")).finished_reason == "completed"
    assert (await apart.status()).workspace_root != root


async def test_a_fork_of_a_session_that_waits_closes_the_call_and_leaves_the_first_one_waiting(stage: Stage) -> None:
    first = stage.session(*ASKS)
    await first.reply("Write to Ana")
    await first.observe("She has moved.")

    second = await first.stored.fork(f"{first.id}-copy")

    (result,) = [result async for message in second.transcript() for result in message.get_tool_results()]
    assert result.get_text() == "Cancelled before start: this call did not run."
    assert (await talked(second))[-1] == "She has moved."
    assert (await second.status()).status == "idle"
    assert len(await first.pending()) == 1
    assert await audit(first) == []


async def test_a_fork_never_overwrites_a_session(stage: Stage) -> None:
    first, other = stage.session(*BRICKS), stage.session(*BRICKS)
    await first.reply("How many bricks?")
    await other.reply("What colour?")

    with pytest.raises(Refused, match="already; take another name"):
        await first.stored.fork(other.id)
    with pytest.raises(NoSuchStep, match="has made 1 model calls"):
        await first.stored.fork(f"{first.id}-copy", at=2)

    assert await talked(other) == ["What colour?", "Forty."]


async def test_a_session_that_has_closed_is_opened_again_to_be_edited_and_copied(stage: Stage) -> None:
    session = stage.session(*BRICKS, idle_close_seconds=1)
    await session.reply("How many bricks?")
    await until(closed(stage, session))

    await session.stored.edit("context[1].content[0].text", "Fifty.", by="ben", why="recounted")
    edited = await session.status()
    await until(closed(stage, session))
    copy = await session.stored.fork(f"{session.id}-copy", at=1, by="ana")
    await until(closed(stage, session))
    await session.stored.import_state(await session.stored.export(), by="eve")
    answer = await session.reply("And now?")

    assert edited.incarnation == 2
    assert await talked(copy) == ["How many bricks?", "Forty."]
    assert await talked(session) == ["How many bricks?", "Fifty.", "And now?", "Red."]
    assert answer.get_text_content() == "Red."
    assert [(event["by"], event["why"]) for event in await audit(session)] == [("ben", "recounted"), ("eve", "")]


async def test_what_never_was_is_not_started_by_an_edit_or_a_copy(stage: Stage) -> None:
    session = stage.session(*BRICKS)

    with pytest.raises(NoSession, match="open or stored"):
        await session.stored.edit("summary", "x")
    with pytest.raises(NoSession, match="open or stored"):
        await session.stored.fork(f"{session.id}-copy")


def closed(stage: Stage, session: Session) -> Callable[[], Awaitable[bool]]:
    async def looked() -> bool:
        return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.COMPLETED

    return looked
