"""What a session's workers lack is known of it while its step waits, and no longer."""

from typing import Any

import pytest

from longhaul.agent.steps import Think
from tests.agent.play import Play, calls, text

NO_KEY = {"worker": "71@atlas", "doing": "longhaul.call_model", "why": "no key (worker 71@atlas)"}
NO_TOOL = {"worker": "71@atlas", "doing": "Look", "call_id": "b", "why": "no tool 'Look' (worker 71@atlas)"}


def lacking(play: Play) -> str:
    return play.journal.incarnation.lacking.why if play.journal.incarnation.lacking else ""


def thinking() -> Play:
    play = Play([text("Done.")])
    play.say("Go")
    play.begin()
    play.complete()
    assert isinstance(play.begin(), Think)
    return play


def test_what_a_model_call_waits_for_is_known_until_it_is_answered() -> None:
    play = thinking()

    answer = play.tell("worker_lacks", NO_KEY)
    meanwhile = lacking(play)
    play.complete()

    assert (answer, meanwhile, lacking(play)) == ({"recorded": True}, "no key (worker 71@atlas)", "")


def test_the_same_word_is_recorded_one_time_and_another_one_takes_its_place() -> None:
    play = thinking()

    answers = [play.tell("worker_lacks", each) for each in (NO_KEY, NO_KEY, {**NO_KEY, "why": "no folder"})]

    assert answers == [{"recorded": True}, {"recorded": False}, {"recorded": True}]
    assert (play.kinds().count("worker_lacks"), lacking(play)) == (2, "no folder")


def test_what_one_call_waits_for_is_not_over_with_another_call() -> None:
    play = Play([calls("a Look", "b Look"), text("Done.")])
    play.say("Look twice")
    play.run(hold=True)

    play.tell("worker_lacks", NO_TOOL)
    play.end_call("a")
    meanwhile = lacking(play)
    play.end_call("b")

    assert (meanwhile, lacking(play)) == ("no tool 'Look' (worker 71@atlas)", "")


def test_nothing_is_recorded_of_a_session_that_makes_no_reply_and_an_interrupt_ends_the_waiting() -> None:
    play = Play([text("Done.")])

    idle = play.tell("worker_lacks", NO_KEY)
    play = thinking()
    play.tell("worker_lacks", NO_KEY)
    play.tell("interrupt")
    play.asked = None
    play.run()

    assert (idle, lacking(play)) == ({"recorded": False}, "")


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"worker": "w"}, "why: Field required"),
        ({**NO_KEY, "why": "x" * 4_001}, "why: String should have at most 4000"),
    ],
)
def test_a_word_of_another_shape_is_refused(body: dict[str, Any], wrong: str) -> None:
    answer = thinking().tell("worker_lacks", body)

    assert f"worker_lacks: {wrong}" in str(answer)
