"""Words in the midst of a reply: they wait, join it at a step boundary, or take its place; and requests are dropped."""

import pytest

from longhaul.agent.steps import Idle, Park, Think
from longhaul.agent.values.conversation.messages import problem
from longhaul.agent.views.session_views import row_of
from longhaul.agent.views.transcript import reply_message
from tests.agent.play import Play, asking, calls, spec_with, spoken, text


def at_work(*lines: object, **more: object) -> Play:
    """A session that has made a reply before, and whose next one asks about a call."""
    play = Play([text("Ready."), calls("a Paint"), *lines], **more)  # type: ignore[list-item, arg-type]
    play.say("Hello", "r0")
    play.run()
    play.say("Paint the wall")
    play.run()
    return play


def say(play: Play, words: str, request_id: str, when: str) -> object:
    return play.tell("submit", {"messages": words, "request_id": request_id, "when": when})


@pytest.mark.proves("X7")
def test_words_for_now_stand_behind_the_result_of_the_call_that_waits() -> None:
    play = at_work(text("Blue, as you say."))

    answer = say(play, "Blue, please", "n1", "now")

    assert answer == {
        "request_id": "n1",
        "reply_id": "reply-of-n1",
        "position": 0,
        "when": "now",
        "joins": "reply-of-r1",
    }
    assert play.run() == Park("person")
    assert problem(play.journal.state.context[:-1]) == ""
    assert [call.block.id for call in play.journal.current.waiting()] == ["a"]
    play.allow("a")
    assert play.run() == Idle()
    assert spoken(play.journal.state.context)[2:] == [
        "Paint the wall",
        "call a",
        "result a",
        "Blue, please",
        "Blue, as you say.",
    ]
    assert play.ends() == [("reply-of-r0", "completed"), ("reply-of-r1", "completed")]
    assert play.journal.requests.joined == {"reply-of-n1": "reply-of-r1"}


def test_a_reply_goes_on_when_words_came_with_its_last_ones() -> None:
    play = Play([text("Ready."), text("Done."), text("Blue, then.")])
    play.say("Hello", "r0")
    play.run()
    play.say("Paint")
    play.begin()
    play.complete()
    assert isinstance(play.begin(), Think)

    say(play, "Blue, please", "n1", "now")
    play.complete()

    assert play.run() == Idle()
    assert spoken(play.journal.state.context)[2:] == ["Paint", "Done.", "Blue, please", "Blue, then."]
    assert play.ends()[1:] == [("reply-of-r1", "completed")]


def test_words_for_now_are_a_request_of_their_own_when_the_reply_has_just_ended() -> None:
    play = Play([text("Ready."), text("Blue.")])
    play.say("Hello", "r0")
    play.run()

    answer = say(play, "Blue, please", "n1", "now")

    assert isinstance(answer, dict)
    assert answer["joins"] == ""
    assert play.run() == Idle()
    assert play.ends()[-1] == ("reply-of-n1", "completed")


@pytest.mark.parametrize("end", ["interrupt", "limit"])
def test_words_that_could_not_join_become_the_next_request(end: str) -> None:
    play = at_work(
        text("Where things stand.") if end == "limit" else text("Blue."),
        text("Blue."),
        spec=spec_with(max_iters=1),
    )
    play.say("Later", "r2")
    say(play, "Blue, please", "n1", "now")

    if end == "interrupt":
        play.tell("interrupt")
    else:
        play.allow("a")
    play.run()

    assert [reply for reply, _ in play.ends()][1:] == ["reply-of-r1", "reply-of-n1", "reply-of-r2"]
    assert play.journal.requests.joined == {}
    assert problem(play.journal.state.context) == ""


def test_the_same_words_sent_twice_are_heard_once() -> None:
    play = at_work(text("Blue."))
    first = say(play, "Blue, please", "n1", "now")
    second = say(play, "Blue, please", "n1", "now")
    play.allow("a")
    play.run()

    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["reply_id"] == second["reply_id"]
    assert spoken(play.journal.state.context).count("Blue, please") == 1
    assert say(play, "Blue, please", "n1", "now") == {"request_id": "n1", "reply_id": "reply-of-n1", "position": 0}


def test_a_request_may_take_the_place_of_what_runs_before_all_that_waits() -> None:
    play = at_work(text("Stopped."), text("Again."), text("Later."))
    play.say("Later", "r2")

    first = say(play, "Stop that", "i1", "interrupt")
    second = say(play, "And this", "i2", "interrupt")

    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["interrupted"], second["interrupted"]) == ("reply-of-r1", "")
    play.run()
    assert play.ends()[1:] == [
        ("reply-of-r1", "interrupted"),
        ("reply-of-i1", "completed"),
        ("reply-of-i2", "completed"),
        ("reply-of-r2", "completed"),
    ]
    assert play.kinds().count("interrupted") == 1


def test_several_words_join_in_their_order_and_observed_ones_come_where_they_came() -> None:
    play = at_work(text("Fine."))
    say(play, "Blue", "n1", "now")
    play.tell("observe", {"messages": "It rains"})
    say(play, "No, green", "n2", "now")
    play.allow("a")
    play.run()

    assert spoken(play.journal.state.context)[4:] == ["result a", "It rains", "Blue", "No, green", "Fine."]
    said = [event for event in play.journal.log if event.kind == "joined"]
    assert len(said) == 1


def test_a_request_that_waits_is_dropped_and_says_so_to_whoever_waits_for_it() -> None:
    play = at_work(text("Painted."), text("Third."))
    play.say("Second", "r2")
    play.say("Third", "r3")
    say(play, "Blue", "n1", "now")

    assert play.tell("interrupt", {"request_id": "r2"}) == {"interrupted": "reply-of-r2", "dropped": "r2"}
    assert play.tell("interrupt", {"reply_id": "reply-of-n1"}) == {"interrupted": "reply-of-n1", "dropped": "n1"}
    again = play.tell("interrupt", {"request_id": "r2"})
    assert again == "request_id: 'r2' neither waits nor is being answered; waiting: ['r3']"
    assert "send the message by `submit`" in str(play.tell("interrupt", {"request_id": "r3", "message": "Stop"}))
    play.allow("a")
    play.run()

    message = reply_message(play.journal, "reply-of-r2")
    assert message is not None
    assert (message.content, message.finished_reason) == ((), "interrupted")
    assert ("reply-of-r3", "completed") in play.ends()
    assert "Second" not in spoken(play.journal.state.context)
    assert play.say("Second", "r2") == {"request_id": "r2", "reply_id": "reply-of-r2", "position": 0}


def test_words_for_now_must_say_something() -> None:
    play = asking("a Paint")

    assert "there is nothing to go on from yet" in str(play.tell("submit", {"request_id": "n", "when": "now"}))
    assert "when: Input should be 'queue', 'now' or 'interrupt'" in str(say(play, "x", "n", "soon"))


def test_words_that_wait_to_join_are_carried_over() -> None:
    for keeps in (False, True):
        play = at_work(text("Blue."), keeps=keeps)
        say(play, "Blue, please", "n1", "now")

        play.continue_as_new()
        play.allow("a")
        play.run()

        assert play.journal.requests.joined == {"reply-of-n1": "reply-of-r1"}
        assert row_of(play.journal).status == "idle"
