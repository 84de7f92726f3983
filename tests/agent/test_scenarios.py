"""Whole runs, from the request to the last word, played in memory."""

import dataclasses

import pytest

from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.steps import Act, ContinueAsNew, Idle, Park, Prepare, Think
from longhaul.agent.values.conversation.messages import FinishedReason, TextBlock, ToolCallBlock
from longhaul.agent.views.events import EventReducer
from tests.agent.play import Play, calls, carried_over, site, spec_with, spoken, text


@pytest.mark.proves("A5")
def test_an_answer_without_tools_takes_one_model_call() -> None:
    play = Play([text("Forty bricks.")])
    play.say("How many bricks?")

    assert play.run() == Idle()

    assert play.kinds() == ["opened", "accepted", "started", "prepared", "model_said", "finished"]
    assert spoken(play.journal.state.context) == ["How many bricks?", "Forty bricks."]
    assert play.ends() == [("reply-of-r1", "completed")]


@pytest.mark.proves("A5")
def test_neighbours_that_are_safe_together_run_together_and_the_others_one_by_one() -> None:
    play = Play([calls("a Look", "b Look", "c Paint", "d Look"), text("Done.")])
    play.say("Paint it")
    play.run()
    play.allow("c")
    play.run()

    assert [step.call_ids for step in play.steps if isinstance(step, Act)] == [("a", "b"), ("c",), ("d",)]
    assert [call_id for call_id, _, _ in play.results()] == ["a", "b", "c", "d"]


@pytest.mark.proves("C8")
def test_without_parallel_calls_each_runs_alone() -> None:
    play = Play([calls("a Look", "b Look"), text("Done.")], spec=spec_with(parallel_tool_calls=False))
    play.say("Look twice")
    play.run()

    assert [step.call_ids for step in play.steps if isinstance(step, Act)] == [("a",), ("b",)]


@pytest.mark.proves("A5")
def test_in_one_batch_one_call_runs_while_another_asks() -> None:
    play = Play([calls("a Look", "b Measure"), text("Done.")])
    play.say("Measure")

    assert play.run() == Park("person")

    assert play.results() == [("a", "success", "done")]
    play.allow("b")
    assert play.run() == Idle()
    assert [call_id for call_id, _, _ in play.results()] == ["a", "b"]


@pytest.mark.proves("A5")
def test_a_forbidden_call_is_answered_at_once_and_never_run() -> None:
    play = Play([calls("a Demolish"), text("Then not.")])
    play.say("Tear it down")

    assert play.run() == Idle()

    assert play.results() == [
        ("a", "denied", "This call is not permitted and did not run: The deny rule Demolish of the house matches")
    ]
    assert not [step for step in play.steps if isinstance(step, Act)]


def test_three_requests_are_answered_in_the_order_in_which_they_came() -> None:
    play = Play([text("one"), text("two"), text("three")])
    places = [play.say(f"Q{number}", f"r{number}") for number in (1, 2, 3)]
    play.run()

    assert [place["position"] for place in places if isinstance(place, dict)] == [0, 1, 2]
    assert spoken(play.journal.state.context) == ["Q1", "one", "Q2", "two", "Q3", "three"]


def test_what_is_observed_while_a_call_waits_stands_after_the_results() -> None:
    play = Play([calls("a Paint", "b Look"), text("Done.")])
    play.say("Paint it")
    play.run()
    play.tell("observe", {"messages": "It rains."})
    play.allow("a")
    play.run()

    assert spoken(play.journal.state.context) == [
        "Paint it",
        "call a + call b",
        "result a",
        "result b",
        "It rains.",
        "Done.",
    ]


def test_what_is_observed_while_the_model_thinks_reaches_the_next_call() -> None:
    play = Play([calls("a Look"), text("Done.")])
    play.say("Look")
    play.begin()
    play.complete()
    assert play.begin() == Think("scripted:wall")
    play.tell("observe", {"messages": "It rains."})
    play.complete()

    assert play.journal.context.cached_prefix.length == 0
    unanchored = play.journal.state.context[play.journal.context.cached_prefix.length :]
    assert spoken(unanchored) == ["Look", "It rains.", "call a"]
    assert [bool(mark.digest) for mark in play.journal.context.marks] == [False, False, True]


@pytest.mark.proves("D6")
def test_an_unknown_tool_is_an_error_that_the_model_reads() -> None:
    play = Play([calls("a Fly"), text("Oh.")])
    play.say("Fly")
    play.run()

    assert play.results() == [
        (
            "a",
            "error",
            "This call did not run: there is no tool 'Fly'; the tools are: Demolish, Look, Measure, Order, Paint",
        )
    ]


@pytest.mark.proves("D6")
def test_broken_arguments_are_an_error_that_the_model_reads() -> None:
    broken = CallAnalysis(arguments_error="the arguments are not JSON: they end too soon")
    play = Play([calls("a Look", arguments='{"where": '), text("Oh.")], analysis={"a": [broken]})
    play.say("Look")
    play.run()

    assert play.results() == [("a", "error", "This call did not run: the arguments are not JSON: they end too soon")]


def test_repeated_and_empty_call_ids_get_ids_of_their_own() -> None:
    first: list[ToolCallBlock | TextBlock] = [
        ToolCallBlock(id=call_id, name="Look", input="{}") for call_id in ("a", "a", "")
    ]
    play = Play([list(first), calls("a Look"), text("Done.")])
    play.say("Look")
    play.run()

    ids = [call_id for call_id, _, _ in play.results()]
    assert len(set(ids)) == len(ids) == 4
    assert ids[0] == "a"


def test_a_long_history_continues_as_new_between_steps() -> None:
    play = Play([text("Done.")])
    play.say("Look")
    play.load = Load(events=2_001)

    assert play.run() == ContinueAsNew()


def _deciding(play: Play) -> dict[str, object]:
    """All of the journal but the log, which tells the same events."""
    journal = play.journal
    fields = {field.name: getattr(journal, field.name) for field in dataclasses.fields(journal)}
    state = journal.state.model_dump(mode="json")
    events = EventReducer().catch_up(journal.log)
    return {**fields, "log": None, "state": state, "events": list(events)}


def test_a_continue_as_new_in_mid_reply_while_parked_with_a_queue_changes_nothing() -> None:
    play = Play(
        [calls("a Look"), calls("b Paint", "c Order"), text("Painted."), text("Swept.")],
        analysis={"b": [site("/site/b")]},
    )
    play.say("Look, then paint")
    play.run()
    play.say("Sweep", "r2")
    play.tell("observe", {"messages": "It rains."})
    play.tell("configure", {"mode": "accept_edits", "max_iters": 9, "model": "scripted:other"})
    play.tell("confirm", {"decisions": "malformed_input"})
    before = _deciding(play)

    play.continue_as_new()

    assert _deciding(play) == before
    assert play.run() == Park("person")
    play.allow("b")
    play.run()
    play.tell("external_result", {"results": [{"id": "c", "output": "ok"}]})
    assert play.run() == Idle()
    assert play.ends() == [("reply-of-r1", "completed"), ("reply-of-r2", "completed")]


def test_a_continue_as_new_forgets_all_but_the_newest_refusals() -> None:
    play = Play()
    for number in range(130):
        play.tell(f"nonsense-{number}")

    play.begin()
    left = carried_over(play.journal)

    assert [refusal.name for refusal in left.session.refused.newest] == [
        f"nonsense-{number}" for number in range(30, 130)
    ]
    assert left.session.refused.count == 130


def test_going_on_without_a_message_asks_the_model_about_what_stands() -> None:
    play = Play([text("One."), text("Two.")])
    play.say("Count")
    play.run()

    assert play.tell("submit", {"request_id": "go on"}) == {
        "request_id": "go on",
        "reply_id": "reply-of-go on",
        "position": 0,
    }
    play.run()

    assert spoken(play.journal.state.context) == ["Count", "One.", "Two."]
    assert play.journal.requests.finished["reply-of-go on"].reason is FinishedReason.COMPLETED


def test_a_reply_whose_preparation_was_cut_short_is_prepared_again() -> None:
    play = Play([text("Done.")])
    play.say("Look")
    play.begin()
    play.asked = None

    assert play.begin() == Prepare("reply-of-r1")


@pytest.mark.parametrize("messages", ["", "  \n", [{"name": "ana", "role": "user", "content": []}]])
def test_an_empty_message_is_refused(messages: object) -> None:
    play = Play([text("Hello.")])

    refusal = play.tell("submit", {"messages": messages})

    assert str(refusal).startswith("submit: messages: a message from outside needs some text or data")
