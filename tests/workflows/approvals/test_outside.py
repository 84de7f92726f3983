"""What happens outside while a session waits: results of external tools come in, files change under an approval."""

import pytest

from longhaul.agent.operations.bodies import ExternalExecutionResultEvent
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, next_call, results, until

pytestmark = pytest.mark.server

COURIER = calls("courier", parcel="teapot")


async def test_an_external_call_waits_for_its_result(stage: Stage) -> None:
    session = stage.session(COURIER, {"text": "It came.", "expect": {"last_contains": "delivered at noon"}})
    waiting = await session.reply("Send the teapot")
    (call,) = await session.pending()

    await session.external_result(call, "delivered at noon")
    done = await session.wait(waiting.id)

    assert (call.waits_for, call.tool) == ("outside", "courier")
    assert done.error is None
    assert done.get_text_content() == "It came."
    assert results(done) == [(ToolResultState.SUCCESS, "delivered at noon")]


async def test_an_external_result_may_be_any_json_and_may_be_a_failure(stage: Stage) -> None:
    session = stage.session(COURIER, {"text": "Pity."})
    waiting = await session.reply("Send the teapot")

    await session.external_result("call_0_0", {"lost": True, "at": ["Oslo", 7]}, failed=True)
    done = await session.wait(waiting.id)

    assert results(done) == [(ToolResultState.ERROR, '{"lost": true, "at": ["Oslo", 7]}')]


@pytest.mark.proves("A10")
async def test_the_second_result_of_a_call_is_refused(stage: Stage) -> None:
    session = stage.session(COURIER, COURIER, {"text": "Both came."})
    await session.reply("Send the teapot, and another")
    (first,) = await session.pending()
    await session.external_result(first, "at noon")
    second = await next_call(session, first)

    with pytest.raises(Refused, match=r"call 'call_0_0' does not wait for a result from outside"):
        await session.external_result(first, "at midnight")

    assert [call.call_id for call in await session.pending()] == [second.call_id]


async def test_a_result_of_an_unknown_call_is_refused(stage: Stage) -> None:
    session = stage.session(COURIER)
    await session.reply("Send the teapot")

    with pytest.raises(Refused, match=r"call 'c-umbrella' does not wait .*; waiting: \['call_0_0'\]"):
        await session.external_result("c-umbrella", "rain")


async def test_a_result_can_not_answer_a_call_that_waits_for_a_person(stage: Stage) -> None:
    session = stage.session(calls("send", to="Ana"))
    await session.reply("Write to Ana")

    with pytest.raises(Refused, match="no call needs a result from outside"):
        await session.external_result("call_0_0", "sent, honestly")

    assert [call.waits_for for call in await session.pending()] == ["person"]


async def test_nobody_approves_what_only_the_outside_can_answer(stage: Stage) -> None:
    session = stage.session(COURIER)
    await session.reply("Send the teapot")

    with pytest.raises(Refused, match="no call needs a decision"):
        await session.confirm("call_0_0", allow=True)


@pytest.mark.proves("A10")
async def test_the_event_of_agentscope_hands_in_a_result(stage: Stage) -> None:
    session = stage.session(COURIER, {"text": "It came."})
    waiting = await session.reply("Send the teapot")
    result = ToolResultBlock(id="call_0_0", name="courier", output="by sea", state=ToolResultState.SUCCESS)

    done = await session.reply(ExternalExecutionResultEvent(reply_id=waiting.id, execution_results=(result,)))

    assert done.id == waiting.id
    assert results(done) == [(ToolResultState.SUCCESS, "by sea")]


async def test_a_neighbour_runs_while_an_external_call_waits(stage: Stage) -> None:
    both = {"tool_calls": [*COURIER["tool_calls"], *calls("fetch", page=3, chars=10)["tool_calls"]]}
    session = stage.session(both, {"text": "All here."})
    waiting = await session.reply("Teapot and page 3")
    await until(lambda: answered(session, 1))

    await session.external_result("call_0_0", "by air")
    done = await session.wait(waiting.id)

    assert [text for _, text in results(done)] == ["<<page 3>>", "by air"]


@pytest.mark.proves("A10")
async def test_a_result_comes_in_pieces_and_another_one_has_to_fit_its_schema(stage: Stage) -> None:
    session = stage.session(COURIER, calls("weigh", parcel="teapot"), {"text": "Known."}, tools=["courier", "weigh"])
    waiting = await session.reply("Send the teapot")
    (call,) = await session.pending()

    await session.external_result(call, "left Oslo; ", partial=True)
    shown = [event.delta for event in (await session.events()).events if event.type == "TOOL_RESULT_TEXT_DELTA"]
    await session.external_result(call, "arrived")
    second = await next_call(session, call)
    with pytest.raises(
        Refused, match=r"does not fit what weigh answers with: 'grams' is the text .heavy., but has to be a n"
    ):
        await session.external_result(second, {"grams": "heavy"})
    await session.external_result(second, {"grams": 900})
    done = await session.wait(waiting.id)

    assert shown == ["left Oslo; "]
    assert [text for _, text in results(done)] == ["left Oslo; arrived", '{"grams": 900}']
    assert (await session.status()).refused == 1


async def answered(session: Session, count: int) -> bool:
    """Whether that many calls have their result."""
    return sum(len(message.get_tool_results()) for message in [each async for each in session.transcript()]) == count


@pytest.mark.proves("S12")
async def test_a_file_that_changed_under_its_approval_is_asked_about_again(stage: Stage) -> None:
    note = stage.workspace / "note.txt"
    note.write_text("sun\nrain\n")
    edit = calls("Edit", file_path="note.txt", old_string="rain", new_string="snow")
    session = stage.session(edit, {"text": "Changed."}, tools=["Edit"])
    waiting = await session.reply("Change the weather")
    (asked,) = await session.pending()

    note.write_text("fog\nrain\n")
    await session.confirm(asked, allow=True, approver="bo")
    again = await next_call(session, asked)

    assert note.read_text() == "fog\nrain\n", "nothing was written"
    assert "-sun" not in asked.notice
    assert " sun" in asked.notice
    assert " fog" in again.notice
    assert again.call_id == asked.call_id
    await session.confirm(again, allow=True)
    assert (await session.wait(waiting.id)).get_text_content() == "Changed."
    assert note.read_text() == "fog\nsnow\n"


async def test_a_link_that_leads_elsewhere_after_the_approval_is_asked_about_again(stage: Stage) -> None:
    harmless, precious = stage.workspace / "harmless", stage.folder / "precious"
    harmless.write_text("one")
    precious.write_text("one")
    link = stage.workspace / "link"
    link.symlink_to(harmless)
    session = stage.session(calls("Write", file_path="link", content="two"), tools=["Write"])
    await session.reply("Write")
    (asked,) = await session.pending()

    link.unlink()
    link.symlink_to(precious)
    await session.confirm(asked, allow=True)
    again = await next_call(session, asked)

    assert again.call_id == asked.call_id
    assert (harmless.read_text(), precious.read_text()) == ("one", "one")
