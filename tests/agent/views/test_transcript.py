"""The journal as people read it: one message per reply, and pages."""

import pytest

from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    ErrorInfo,
    FinishedReason,
    Msg,
    TextBlock,
    ToolResultBlock,
    Usage,
    UserMsg,
)
from longhaul.agent.views.transcript import final_text, page, reply_message
from tests.agent.play import Play, calls, text


@pytest.mark.proves("A1")
def test_a_reply_is_one_message_with_all_of_its_blocks() -> None:
    play = Play([[TextBlock(text="I look."), *calls("a Look")], text("Forty.")])
    play.say("How many?")
    play.run()

    message = reply_message(play.journal, "reply-of-r1")

    assert message is not None
    assert [block.type for block in message.content] == ["text", "tool_call", "tool_result", "text"]
    assert message.get_tool_calls()[0].state == "finished"
    assert (message.id, message.name, message.role) == ("reply-of-r1", "mason", "assistant")
    assert message.finished_reason is FinishedReason.COMPLETED
    assert message.usage == Usage(input_tokens=20, output_tokens=6)
    assert message.created_at == "2025-11-25T12:00:00.002+00:00"
    assert message.finished_at > message.created_at
    assert final_text(message) == "Forty."


def test_a_reply_began_when_it_began_though_its_first_messages_are_kept_elsewhere() -> None:
    play = Play([calls("b Paint"), text("Painted.")], keeps=True)
    play.say("Paint it")
    play.run()
    started = reply_message(play.journal, "reply-of-r1")
    play.journal.keeping.saved, play.journal.keeping.saved_messages = (
        play.journal.keeping.changed,
        play.journal.messages_total,
    )
    play.continue_as_new()
    play.allow("b")
    play.run()

    message = reply_message(play.journal, "reply-of-r1")

    assert started is not None
    assert message is not None
    assert (message.get_text_content(), message.created_at) == ("Painted.", started.created_at)


def test_each_reply_has_its_own_blocks_only() -> None:
    play = Play([text("One."), text("Two.")])
    play.say("First?", "r1")
    play.say("Second?", "r2")
    play.run()

    texts = [reply_message(play.journal, f"reply-of-r{number}") for number in (1, 2)]

    assert [message.get_text_content() if message else None for message in texts] == ["One.", "Two."]


@pytest.mark.proves("A1")
def test_a_reply_that_waits_names_the_calls_and_shows_how_they_stand() -> None:
    play = Play([calls("a Look", "b Paint", "c Order")])
    play.say("Go")
    play.run()

    message = reply_message(play.journal, "reply-of-r1")

    assert message is not None
    assert message.metadata == {"waiting_for": ["b"]}
    assert message.finished_reason is None
    assert [call.state.value for call in message.get_tool_calls()] == ["finished", "asking", "pending"]


def test_a_reply_in_the_making_waits_for_nobody() -> None:
    play = Play([calls("a Look")])
    play.say("Go")
    play.run(hold=True)

    message = reply_message(play.journal, "reply-of-r1")

    assert message is not None
    assert message.metadata == {}
    assert [call.state.value for call in message.get_tool_calls()] == ["allowed"]


def test_there_is_no_message_of_a_reply_that_never_began() -> None:
    play = Play()
    assert reply_message(play.journal, "reply-of-r1") is None
    play.say("Go", "r1")
    play.begin()

    assert reply_message(play.journal, "reply-of-r2") is None
    waiting = reply_message(play.journal, "reply-of-r1")
    assert waiting is not None
    assert waiting.content == ()


def test_a_reply_that_failed_says_why_in_place_of_an_answer() -> None:
    gone = ErrorInfo(type="upstream", message="The provider was gone.")
    play = Play([gone])
    play.say("Go")
    play.run()

    message = reply_message(play.journal, "reply-of-r1")

    assert message is not None
    assert message.error == gone
    assert final_text(message) == "The provider was gone."


def test_a_reply_that_began_with_nothing_and_said_nothing_has_a_time_of_its_own() -> None:
    play = Play([text("One.")])
    play.say("Go", "r1")
    play.run()
    play.tell("submit", {"request_id": "r2"})
    play.meanwhile.append(lambda: play.tell("interrupt"))
    play.run()

    message = reply_message(play.journal, "reply-of-r2")

    assert message is not None
    assert "" < message.created_at < message.finished_at


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (AssistantMsg("m", "one"), "one"),
        (AssistantMsg("m", []), ""),
        (AssistantMsg("m", [TextBlock(text="one"), TextBlock(text="two")]), "one\ntwo"),
        (AssistantMsg("m", [TextBlock(text="one"), ToolResultBlock(id="a", name="Look", output="x")]), ""),
        (
            AssistantMsg("m", [ToolResultBlock(id="a", name="Look", output="x"), *calls("b Look"), *text("two")]),
            "two",
        ),
        (
            AssistantMsg("m", [], finished_reason="exceed_max_iters"),
            "(stopped: the limit of iterations was reached)",
        ),
        (AssistantMsg("m", "half", finished_reason="exceed_max_iters"), "half"),
    ],
)
def test_the_final_text_is_what_stands_after_the_last_result(message: Msg, words: str) -> None:
    assert final_text(message) == words


def test_a_page_holds_what_fits_and_at_least_one() -> None:
    items = [UserMsg("ana", "x" * 100) for _ in range(5)]
    size = len(items[0].model_dump_json())

    assert len(page(items, 0, size * 3)) == 3
    assert len(page(items, 4, size * 3)) == 1
    assert len(page(items, 0, 1)) == 1
    assert page(items, 5, size) == ()
    assert page([], 0, size) == ()


def test_a_page_is_measured_in_bytes() -> None:
    items = [UserMsg("ana", "壁" * 100) for _ in range(5)]
    size = len(items[0].model_dump_json().encode())

    assert len(page(items, 0, size * 2 + 50)) == 2


def test_a_page_has_a_limit_of_items_too() -> None:
    items = [UserMsg("ana", "x")] * (2_000 + 1)

    assert len(page(items, 0, 10**9)) == 2_000
