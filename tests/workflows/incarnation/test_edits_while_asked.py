"""The state of a session that waits for somebody, changed from outside: its question stays, or is asked again."""

import json

import pytest

from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

LETTER = calls("send", to="ana", text="Come at noon")
DONE = {"text": "It is on its way."}


@pytest.mark.proves("E6")
async def test_a_question_outlives_an_edit_of_the_rest(stage: Stage) -> None:
    session = stage.session(LETTER, DONE)
    waiting = await session.reply("Write to Ana")
    (asked,) = await session.pending()

    await session.stored.edit("context[0].content[0].text", "Write to Ana, please", by="ben", why="manners")
    (still,) = await session.pending()
    await session.confirm(asked, allow=True)
    final = await session.wait(asked.reply_id)

    assert (still.call_id, still.digest, still.reply_id) == (asked.call_id, asked.digest, waiting.id)
    assert final.finished_reason == "completed"
    assert [result.get_text() for result in final.get_tool_results()] == ["sent 'Come at noon' to ana"]
    assert [call.id for call in final.get_tool_calls()] == [asked.call_id], "told once, though it was recorded twice"
    assert (await session.state()).context[0].get_text_content() == "Write to Ana, please"


async def waits(session: Session) -> bool:
    return bool(await session.pending())


async def test_a_call_whose_arguments_are_edited_is_asked_about_again(stage: Stage) -> None:
    session = stage.session(LETTER, DONE)
    await session.reply("Write to Ana")
    (asked,) = await session.pending()
    place = "context[1].content[0].input"

    await session.stored.edit(place, json.dumps({"to": "bo", "text": "Stay away"}), by="ben")
    with pytest.raises(Refused):
        await session.confirm(asked, allow=True)
    await until(lambda: waits(session))  # what was edited is looked at first
    (again,) = await session.pending()
    await session.confirm(again, allow=True)
    final = await session.wait(again.reply_id)

    assert json.loads(again.input) == {"to": "bo", "text": "Stay away"}
    assert [result.get_text() for result in final.get_tool_results()] == ["sent 'Stay away' to bo"]
    questions = [e for e in (await session.events(1)).events if e.type == "REQUIRE_USER_CONFIRM"]
    assert [json.loads(question.tool_calls[0].input)["to"] for question in questions] == ["ana", "bo"]


async def test_a_question_for_an_outside_system_outlives_an_edit(stage: Stage) -> None:
    session = stage.session(calls("courier", parcel="box"), DONE)
    await session.reply("Send the box")
    (asked,) = await session.pending()

    await session.stored.edit("summary", "They send boxes.", by="ben")
    await session.external_result(asked.call_id, "brought")

    final = await session.wait(asked.reply_id)
    assert [result.get_text() for result in final.get_tool_results()] == ["brought"]


async def test_a_rule_that_an_edit_adds_holds_for_the_call_that_waits(stage: Stage) -> None:
    session = stage.session(LETTER, {"text": "Then not."})
    await session.reply("Write to Ana")
    (asked,) = await session.pending()

    await session.stored.edit("permission_context.rules", [{"tool_name": "send", "behavior": "deny"}], by="ben")
    with pytest.raises(Refused, match="other rules hold now"):
        await session.confirm(asked, allow=True)
    await until(lambda: waits(session))  # what was edited is looked at first
    (again,) = await session.pending()
    await session.confirm(again, allow=True)

    final = await session.wait(asked.reply_id)
    assert [result.state for result in final.get_tool_results()] == ["denied"]


async def test_an_export_of_the_session_itself_leaves_its_question_open(stage: Stage) -> None:
    session = stage.session(LETTER, DONE)
    await session.reply("Write to Ana")
    (asked,) = await session.pending()

    state = json.loads(await session.stored.export())
    state["summary"] = "They write operations."
    await session.stored.import_state(state, by="ana")
    (still,) = await session.pending()
    await session.confirm(asked, allow=True)

    assert still.digest == asked.digest
    assert (await session.wait(asked.reply_id)).finished_reason == "completed"
    assert (await session.state()).summary == "They write operations."


@pytest.mark.proves("E6")
async def test_another_state_ends_the_reply_that_asked(stage: Stage) -> None:
    other = stage.session({"text": "Forty."})
    await other.reply("How many bricks?")
    session = stage.session(LETTER, {"text": "Fifty."})
    await session.reply("Write to Ana")
    (asked,) = await session.pending()

    await session.stored.import_state(await other.stored.export(), by="ana")
    ended = await session.wait(asked.reply_id)
    with pytest.raises(Refused, match="no call"):
        await session.confirm(asked, allow=True)
    answer = await session.reply("And now?")

    assert (ended.finished_reason, ended.error and ended.error.message) == (
        "interrupted",
        "This reply was cut off: somebody has put another state in its place.",
    )
    assert [result.get_text() for result in ended.get_tool_results()] == [
        "Cancelled before start: this call did not run."
    ]
    assert answer.get_text_content() == "Fifty."
    said = [message.get_text_content() for message in (await session.state()).context]
    assert said == ["How many bricks?", "Forty.", "And now?", "Fifty."]


async def test_a_call_that_waits_can_not_become_one_of_another_tool(stage: Stage) -> None:
    session = stage.session(LETTER, DONE)
    await session.reply("Write to Ana")

    with pytest.raises(Refused, match="has no result"):
        await session.stored.edit("context[1].content[0].name", "fetch", by="ben")

    (asked,) = await session.pending()
    assert asked.tool == "send"
