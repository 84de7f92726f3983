"""An agent that goes round in circles is told so, and then stopped; one that works or polls is left alone."""

from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.agent import entries as e
from longhaul.agent.steps import Finish, Idle, Remind, Think
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    FinishedReason,
    HintBlock,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, Play, calls, text

Turn = tuple[str, str]


def watched(lines: list[list[ContentBlock]], results: list[str] | None = None, **stuck: Any) -> Play:
    """Each line's calls are to Look; their results are these, in order, a leading ! meaning that the call failed."""
    play = Play(lines, spec=SPEC.model_copy(update={"stuck": StuckConfig(**stuck)}))
    made = [block.id for line in lines for block in line if block.type == "tool_call"]
    for call_id, words in zip(made, results or [], strict=False):
        state = ToolResultState.ERROR if words.startswith("!") else ToolResultState.SUCCESS
        result = ToolResultBlock(id=call_id, name="Look", output=words, state=state)
        play.outcomes[call_id] = [e.ToolReturned(result=result)]
    return play


def looks(*where: str) -> list[list[ContentBlock]]:
    """One call to a turn, each at one of these places."""
    return [calls(f"c{at} Look", arguments=f'{{"at": "{place}"}}') for at, place in enumerate(where)]


def ends(play: Play) -> list[FinishedReason]:
    return [step.reason for step in play.steps if isinstance(step, Finish)]


def thoughts(play: Play) -> int:
    return sum(isinstance(step, Think) for step in play.steps)


def until_said(play: Play, times: int) -> None:
    """Until the model has spoken so often; what it called for has not started."""
    while play.journal.spent.model_calls < times:
        play.begin()
        if play.asked:
            play.complete()
        elif play.running:
            play.end_call(play.running[0])


def warnings(play: Play) -> list[str]:
    return [step.entry.stuck for step in play.steps if isinstance(step, Remind)]


def why(play: Play) -> str:
    (error,) = [step.error for step in play.steps if isinstance(step, Finish)]
    return f"{error.type}: {error.message}" if error else ""


@pytest.mark.proves("D8")
def test_the_same_call_with_the_same_result_is_told_after_three_and_stopped_after_four() -> None:
    play = watched([*looks(*["wall"] * 6), text("Done.")])
    play.say("Look")

    assert play.run() == Idle()
    assert (ends(play), thoughts(play), warnings(play)) == ([FinishedReason.STUCK], 4, ["same_result"])
    assert why(play).startswith(
        "stuck: The agent was stuck (same_result): it made the same calls 4 times in a row, with the same results."
    )
    hints = [block for message in play.journal.state.context for block in message.content if block.type == "hint"]
    assert isinstance(hints[0], HintBlock)
    assert (len(hints), hints[0].source) == (1, "stuck")


def test_failing_calls_count_whatever_the_errors_say() -> None:
    play = watched(looks(*["wall"] * 6), ["!no wall (1)", "!no wall (2)", "!no wall (3)", "!no wall (4)"])
    play.say("Look")
    play.run()

    assert (ends(play), thoughts(play), warnings(play)) == ([FinishedReason.STUCK], 4, ["same_error"])
    assert "(same_error)" in why(play)


def test_polling_with_results_that_differ_is_work() -> None:
    play = watched([*looks(*["oven"] * 12), text("It is hot.")], [f"{degrees} °C" for degrees in range(12)])
    play.say("Wait for the oven")
    play.run()

    assert (ends(play), warnings(play)) == ([FinishedReason.COMPLETED], [])


def test_a_tool_that_polls_on_purpose_is_not_counted() -> None:
    play = watched([*looks(*["oven"] * 12), text("It is hot.")], polling=("Look",))
    play.say("Wait for the oven")
    play.run()

    assert (ends(play), warnings(play)) == ([FinishedReason.COMPLETED], [])


@pytest.mark.proves("D8")
def test_to_and_fro_between_two_steps_is_told_and_stopped() -> None:
    play = watched(looks(*["wall", "roof"] * 5))
    play.say("Look")
    play.run()

    assert (ends(play), thoughts(play), warnings(play)) == ([FinishedReason.STUCK], 6, ["ping_pong"])


@pytest.mark.parametrize(
    "places",
    [
        pytest.param(["wall", "wall", "wall", "roof", "wall", "wall", "wall", "roof"], id="broken in time"),
        pytest.param(["a", "b", "c", "a", "b", "c", "a", "b", "c", "a"], id="a round of three"),
        pytest.param(["a", "b", "a", "b", "a", "c", "a", "b", "a", "b", "a"], id="to and fro five times"),
    ],
)
def test_what_is_no_pattern_is_left_alone(places: list[str]) -> None:
    play = watched([*looks(*places), text("Done.")])
    play.say("Look")
    play.run()

    assert ends(play) == [FinishedReason.COMPLETED]


def test_calls_of_one_turn_are_compared_in_whatever_order_they_end() -> None:
    lines = [calls(f"a{at} Look", f"b{at} Measure") for at in range(6)]
    play = watched(lines, polling=("Look",))
    play.say("Look")
    for at in range(4):
        play.run(hold=True)
        play.allow(f"b{at}")
        play.run(hold=True)
        for call_id in (f"a{at}", f"b{at}") if at % 2 else (f"b{at}", f"a{at}"):
            if call_id in play.running:
                play.end_call(call_id)
    play.run()

    assert ends(play) == [FinishedReason.STUCK]


def test_the_same_work_asked_for_again_is_no_circle() -> None:
    play = watched([line for at in range(3) for line in ([*looks("wall", "wall")[:2], text(f"{at}")])])
    for at in range(3):
        play.say("Look twice", f"r{at}")
        play.run()

    assert ends(play) == [FinishedReason.COMPLETED] * 3


def test_words_of_somebody_begin_the_count_again() -> None:
    play = watched([*looks(*["wall"] * 6), text("Done.")])
    play.say("Look")
    until_said(play, 3)
    play.tell("observe", {"messages": "Look again."})
    play.run()

    assert (ends(play), thoughts(play)) == ([FinishedReason.STUCK], 6)


def test_an_empty_message_is_answered_with_a_hint_and_the_third_ends_the_reply() -> None:
    play = watched([text(""), [], text("  \n"), text("never asked for")])
    play.say("Look")
    play.run()

    assert (ends(play), thoughts(play)) == ([FinishedReason.STUCK], 3)
    assert warnings(play) == ["empty_replies", "empty_replies"]
    assert "it answered 3 times in a row with nothing" in why(play)


def test_a_model_that_finds_its_words_goes_on() -> None:
    play = watched([text(""), *looks("wall"), text(""), text("A wall.")])
    play.say("Look")
    play.run()

    assert ends(play) == [FinishedReason.COMPLETED]
    assert play.journal.state.watch.empty_replies == 0


def test_three_replies_of_words_to_requests_without_any_are_a_monologue() -> None:
    play = watched([text("I will begin."), text("Soon."), text("Any moment."), text("Nearly."), text("Now I do.")])
    play.say("Build it")
    play.run()
    for request in ("on1", "on2", "on3"):
        play.tell("submit", {"request_id": request})
        play.run()

    assert ends(play) == [*[FinishedReason.COMPLETED] * 3, FinishedReason.STUCK]
    assert warnings(play) == ["monologue"]
    play.say("Really build it", "r2")
    play.run()
    assert ends(play)[-1] is FinishedReason.COMPLETED


def test_an_agent_without_the_watch_may_repeat_itself() -> None:
    play = watched([*looks(*["wall"] * 9), text("")], enabled=False)
    play.say("Look")
    play.run()

    assert (ends(play), warnings(play)) == ([FinishedReason.COMPLETED], [])
    assert "watch" not in play.journal.state.model_dump()


def test_the_count_survives_a_continue_as_new_in_the_middle() -> None:
    play = watched(looks(*["wall"] * 6))
    play.say("Look")
    until_said(play, 3)
    play.continue_as_new()
    play.run()

    assert (ends(play), thoughts(play)) == ([FinishedReason.STUCK], 4)


def test_the_end_and_the_warning_are_durable_events() -> None:
    play = watched(looks(*["wall"] * 6))
    play.say("Look")
    play.run()

    events = EventReducer().catch_up(play.journal.log)
    told = [(event.type, event.name) for event in events if event.name in ("stuck_warning", "stuck")]
    assert told == [("CUSTOM", "stuck_warning"), ("CUSTOM", "stuck")]
    assert events[-1].finished_reason is FinishedReason.STUCK


def test_what_is_remembered_does_not_grow_with_the_session() -> None:
    play = watched([*looks(*[f"place {at}" for at in range(40)]), text("Done.")], enabled=True)
    play.say("Look everywhere")
    sizes = set[int]()
    while ends(play) == []:
        play.begin()
        if play.asked:
            play.complete()
            sizes.add(len(play.journal.state.watch.model_dump_json()))
        elif play.running:
            play.end_call(play.running[0])

    assert max(sizes) < 300


@pytest.mark.parametrize(
    "wrong", [{"same_result": 1}, {"ping_pong": 3}, {"warn_after": 0}, {"polling": ("",)}, {"patience": 3}]
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        StuckConfig.model_validate(wrong)
