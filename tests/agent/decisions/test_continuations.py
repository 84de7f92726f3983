"""Runs that end early: interrupts, denials, limits, models that fail."""

import pytest

from longhaul.agent.steps import Idle, Park, Think
from longhaul.agent.values.conversation.messages import ErrorInfo
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.views.transcript import final_text, reply_message
from tests.agent.play import SPEC, Play, calls, spec_with, spoken, text

OVERLOADED = ErrorInfo(type="upstream", message="The provider was overloaded.")
UNPAID = ErrorInfo(type="permission", message="The bill was not paid.")


def test_an_interrupt_while_parked_answers_every_open_call() -> None:
    play = Play([calls("a Measure", "b Order", "c Paint")])
    play.say("All of it")
    play.run()

    assert play.tell("interrupt") == {"interrupted": "reply-of-r1"}

    assert play.run() == Idle()
    assert play.results() == [
        ("a", "interrupted", "Cancelled before start: this call did not run."),
        (
            "b",
            "interrupted",
            "Cancelled before a result came: this call was handed to an outside system, which may have run it.",
        ),
        ("c", "interrupted", "Cancelled before start: this call did not run."),
    ]
    assert play.ends() == [("reply-of-r1", "interrupted")]


def test_an_interrupt_while_calls_run_waits_for_them_and_keeps_their_results() -> None:
    play = Play([calls("a Look", "b Look", "c Paint")])
    play.say("Look")
    play.run(hold=True)
    play.tell("interrupt")
    play.end_call("b")

    assert play.run(hold=True) == Park("running calls")

    play.end_call("a")
    assert play.run() == Idle()
    assert [(call_id, state) for call_id, state, _ in play.results()] == [
        ("b", "success"),
        ("a", "success"),
        ("c", "interrupted"),
    ]


def test_an_interrupt_with_a_message_is_the_next_request() -> None:
    play = Play([calls("a Paint"), text("Stopped painting."), text("Second.")])
    play.say("Paint it")
    play.run()
    play.say("Then sweep", "r2")
    play.tell("interrupt", {"message": "Stop, no paint"})

    assert play.run() == Idle()

    first, second, third = play.ends()
    assert first == ("reply-of-r1", "interrupted")
    assert second[0].startswith("reply-of-r1.")
    assert third == ("reply-of-r2", "completed")
    assert spoken(play.journal.state.context)[-4:] == ["Stop, no paint", "Stopped painting.", "Then sweep", "Second."]


def test_an_interrupt_of_an_interrupt_gets_an_id_as_short_as_the_first() -> None:
    play = Play([calls("a Paint"), calls("b Paint"), text("Enough.")])
    play.say("Paint it")
    for words in ("no", "no, really"):
        play.run()
        play.tell("interrupt", {"message": words})
    play.run()

    assert [reply_id.count(".") for reply_id, _ in play.ends()] == [0, 1, 1]


def test_an_interrupt_while_the_model_thinks_lets_none_of_its_calls_run() -> None:
    play = Play([calls("a Look")])
    play.say("Look")
    play.begin()
    play.complete()
    play.begin()
    play.tell("interrupt")
    play.complete()

    assert play.run() == Idle()

    assert [(call_id, state) for call_id, state, _ in play.results()] == [("a", "interrupted")]


def test_an_interrupt_during_preparation_ends_the_reply_without_a_model_call() -> None:
    play = Play([text("never said")])
    play.say("Look")
    play.meanwhile.append(lambda: play.tell("interrupt"))

    assert play.run() == Idle()

    assert play.ends() == [("reply-of-r1", "interrupted")]
    assert not [step for step in play.steps if isinstance(step, Think)]


@pytest.mark.parametrize(("stop", "reason", "calls_made"), [(True, "rejected", 1), (False, "completed", 2)])
def test_stop_on_reject_ends_the_reply_at_the_first_denial(stop: bool, reason: str, calls_made: int) -> None:
    play = Play([calls("a Measure", "b Measure"), text("Another way.")], spec=spec_with(stop_on_reject=stop))
    play.say("Measure")
    play.run()
    play.deny("a", reason="no")
    if not stop:
        play.deny("b", reason="no")

    assert play.run() == Idle()

    assert play.ends() == [("reply-of-r1", reason)]
    assert play.journal.spent.model_calls == calls_made


def test_after_a_denial_with_stop_on_reject_no_sibling_is_started() -> None:
    play = Play([calls("a Look", "b Measure", "c Measure")], spec=spec_with(stop_on_reject=True))
    play.say("Measure")
    play.run(hold=True)
    play.allow("b")
    play.deny("c", reason="no")

    assert play.run(hold=True) == Park("running calls")

    assert play.running == ["a"]
    play.run()
    assert [(call_id, state) for call_id, state, _ in play.results()] == [
        ("c", "denied"),
        ("a", "success"),
        ("b", "interrupted"),
    ]


def test_at_the_limit_of_rounds_the_model_says_where_things_stand_and_the_reply_ends() -> None:
    play = Play([calls("a Look"), calls("b Look"), text("Two walls seen.")], spec=spec_with(max_iters=2))
    play.say("Look around")

    assert play.run() == Idle()

    asked = [step for step in play.steps if isinstance(step, Think)]
    assert [step.closing for step in asked] == [False, False, True]
    assert play.ends() == [("reply-of-r1", "exceed_max_iters")]
    assert [call_id for call_id, _, _ in play.results()] == ["a", "b"]
    message = reply_message(play.journal, "reply-of-r1")
    assert message is not None
    assert final_text(message) == "Two walls seen."


def test_the_limit_ends_the_reply_also_when_the_model_can_not_say_anything_any_more() -> None:
    play = Play([calls("a Look"), OVERLOADED, OVERLOADED], spec=spec_with(max_iters=1))
    play.say("Look around")

    assert play.run() == Idle()

    assert play.ends() == [("reply-of-r1", "exceed_max_iters")]
    message = reply_message(play.journal, "reply-of-r1")
    assert message is not None
    assert final_text(message) == "(stopped: the limit of iterations was reached)"


def test_an_answer_in_the_last_round_is_a_completed_reply() -> None:
    play = Play([calls("a Look"), text("Seen.")], spec=spec_with(max_iters=2))
    play.say("Look around")
    play.run()

    assert play.ends() == [("reply-of-r1", "completed")]


def test_when_the_first_model_fails_the_fallback_is_asked_for_this_call_only() -> None:
    spec = SPEC.model_copy(update={"llm_config": ModelConfig(fallback_model="scripted:spare")})
    play = Play([OVERLOADED, calls("a Look"), text("Done.")], spec=spec)
    play.say("Look")
    play.run()

    assert [step.model for step in play.steps if isinstance(step, Think)] == [
        "scripted:wall",
        "scripted:spare",
        "scripted:wall",
    ]


def test_when_every_model_fails_the_reply_ends_with_the_last_error_and_the_next_one_starts() -> None:
    spec = SPEC.model_copy(update={"llm_config": ModelConfig(fallback_model="scripted:spare")})
    play = Play([OVERLOADED, UNPAID, text("Back.")], spec=spec)
    play.say("Look")
    play.say("Again", "r2")
    play.run()

    assert play.ends() == [("reply-of-r1", "error"), ("reply-of-r2", "completed")]
    assert play.journal.requests.finished["reply-of-r1"].error == UNPAID


def test_what_the_model_is_told_at_the_limit_is_recorded_once_and_right_before_its_words() -> None:
    """Models bind a thought to all that stood before it: what was sent has to stand there with the next request."""
    play = Play([calls("a Look"), text("One wall seen."), calls("b Look"), text("Two.")], spec=spec_with(max_iters=1))
    play.say("Look around")
    play.run()
    play.say("Look again", "r2")
    play.run()

    said = [block for message in play.journal.state.context for block in message.content]
    assert [getattr(block, "source", block.type) for block in said] == [
        *("text", "tool_call", "tool_result", "max_iters", "text"),
        *("text", "tool_call", "tool_result", "max_iters", "text"),
    ]
