"""Sessions that are written down outside, live several lives, and close when nobody needs them."""

from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.incarnation.continued_state import Carried, carry
from longhaul.agent.journal import Journal
from longhaul.agent.steps import Checkpoint, Close, ContinueAsNew, Idle, Park, Restore
from longhaul.agent.values.conversation.messages import ErrorInfo, ToolResultState
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.transcript import reply_message
from tests.agent.play import SPEC, Line, Play, calls, text

LONG = Load(events=2_001)
DOWN = ErrorInfo(type="StoreUnavailable", message="the state store does not answer")
SHORT_LIVED = SPEC.model_copy(update={"idle_close_seconds": 60})


def kept(*lines: Line, **more: Any) -> Play:
    """A session that is written down."""
    return Play(lines, keeps=True, **more)


def left_by(play: Play) -> Carried:
    """What a later incarnation finds, through JSON as a store keeps it."""
    carried = carry(play.journal, play.events_before, play.journal.keeping.saved, play.journal.keeping.saved_messages)
    return Carried.model_validate_json(carried.model_dump_json())


def next_incarnation(play: Play, *lines: Line) -> Play:
    return kept(*lines, earlier=left_by(play), now=play.now + 1_000_000)


def steps(play: Play) -> list[str]:
    return [type(step).__name__ for step in play.steps]


def talked(play: Play) -> list[str]:
    return [message.get_text_content() for message in play.journal.state.context]


def test_a_session_looks_for_an_earlier_life_before_anything_else() -> None:
    play = kept(text("Forty."))

    play.say("How many bricks?")
    play.run()

    assert isinstance(play.steps[0], Restore)
    assert play.ends() == [("reply-of-r1", "completed")]
    assert play.journal.incarnation.number == 1


def test_what_it_said_in_an_earlier_life_is_not_asked_again() -> None:
    first = kept(text("Forty."))
    first.say("How many bricks?", "r1")
    first.run()
    second = next_incarnation(first, text("Blue."))
    again = second.say("How many bricks?", "r1")
    second.say("Which colour?", "r2")

    second.run()

    assert isinstance(again, dict)
    assert again["reply_id"] == "reply-of-r1"
    assert talked(second) == ["How many bricks?", "Forty.", "Which colour?", "Blue."]
    assert second.ends() == [("reply-of-r1", "completed"), ("reply-of-r2", "completed")]
    assert second.journal.incarnation.number == 2


def test_an_id_of_an_earlier_life_with_another_message_is_recorded_as_refused() -> None:
    first = kept(text("Forty."))
    first.say("How many bricks?", "r1")
    first.run()
    second = next_incarnation(first)
    second.say("Which colour?", "r1")

    second.run()

    assert talked(second) == ["How many bricks?", "Forty."]
    assert "'r1' was used before" in second.journal.refused.newest[-1].reason


def test_entries_and_events_and_messages_are_numbered_on_in_the_next_life() -> None:
    first = kept(text("Forty."))
    first.say("How many bricks?")
    first.run()
    events = EventReducer().catch_up(first.journal.log)
    second = next_incarnation(first, text("Blue."))
    second.say("Which colour?", "r2")
    second.run()

    before = left_by(first).events
    later = EventReducer(before).catch_up(second.journal.log)

    assert second.journal.log[-1].seq == second.journal.seq > first.journal.seq
    assert [entry.seq for entry in second.journal.log] == sorted({entry.seq for entry in second.journal.log})
    assert later[0].seq == before.count + 1 <= len(events) + 1
    assert [mark.number for mark in second.journal.context.marks] == [0, 1, 2, 3]


def test_nothing_is_done_while_it_is_unknown_whether_there_was_an_earlier_life() -> None:
    play = kept(text("Forty."))
    play.say("How many bricks?")
    play.begin()
    play.asked = None
    play.write(e.RestoreFailed(error=DOWN))

    held = play.run()
    answer = play.tell("resume", {"by": "ana"})
    play.run()

    assert held == Park("person")
    assert answer == {"resumed": True}
    assert steps(play).count("Restore") == 2
    assert play.ends() == [("reply-of-r1", "completed")]


def test_a_checkpoint_follows_each_reply_and_each_wait_for_a_person() -> None:
    play = kept(calls("p Paint"), text("Painted."))
    play.say("Paint")
    play.run()
    parked = steps(play).count("Checkpoint")
    play.allow("p")

    play.run()

    assert (parked, steps(play).count("Checkpoint")) == (1, 2)
    assert play.journal.keeping.saved == play.journal.keeping.changed == play.journal.keeping.mirrored


def test_what_is_saved_already_is_not_saved_again() -> None:
    play = kept(text("Forty."))
    play.say("How many bricks?")
    play.run()

    assert isinstance(play.run(), Idle)
    assert steps(play).count("Checkpoint") == 1


def test_a_failed_checkpoint_is_tried_again_when_something_has_changed_or_time_has_passed() -> None:
    play = kept(text("Forty."), text("Blue."))
    play.say("How many bricks?")
    while not isinstance(play.asked, Checkpoint):
        if play.asked:
            play.complete()
        play.begin()
    play.asked = None
    play.write(e.CheckpointFailed(error=DOWN))

    at_rest = play.run()
    before = steps(play).count("Checkpoint")
    play.write(e.TimeReached())
    play.run()

    assert isinstance(at_rest, Idle)
    assert (before, steps(play).count("Checkpoint")) == (1, 2)
    assert play.journal.keeping.failed is None


def test_a_session_that_is_idle_for_long_closes_when_everything_is_saved() -> None:
    play = kept(text("Forty."), spec=SHORT_LIVED)
    play.say("How many bricks?")
    play.run()
    play.now += 59_000
    play.write(e.TimeReached())
    too_early = play.run()

    play.now += 2_000
    play.write(e.TimeReached())

    assert isinstance(too_early, Idle)
    assert isinstance(play.run(), Close)


def test_a_session_that_could_not_be_saved_stays_open() -> None:
    play = kept(text("Forty."), spec=SHORT_LIVED)
    play.say("How many bricks?")
    play.run()
    play.tell("observe", {"messages": "It rains."})
    play.now += 61_000
    play.write(e.TimeReached())
    play.begin()
    assert isinstance(play.asked, Checkpoint)
    play.asked = None

    play.write(e.CheckpointFailed(error=DOWN))

    assert isinstance(play.run(), Idle)


def test_a_parked_session_does_not_close() -> None:
    play = kept(calls("p Paint"), spec=SHORT_LIVED)
    play.say("Paint")
    play.run()
    play.now += 999_000
    play.write(e.TimeReached())

    assert play.run() == Park("person")


def test_a_long_history_is_saved_before_it_is_left_behind() -> None:
    play = kept(calls("l Look"), calls("m Look"), text("Seen."))
    play.say("Look")
    for _ in range(4):
        if play.asked:
            play.complete()
        play.begin()
    play.load = LONG

    rolled = play.run()

    assert isinstance(rolled, ContinueAsNew)
    assert "Checkpoint" in steps(play)
    assert play.journal.keeping.saved >= play.journal.keeping.changed


def test_a_continue_as_new_takes_along_only_what_is_live_and_nobody_notices() -> None:
    play = kept(calls("l Look"), text("Seen."), text("More."))
    play.say("Look", "r1")
    play.run()
    message = reply_message(play.journal, "reply-of-r1")
    play.load = LONG
    play.run()

    play.continue_as_new()
    play.load = Load()
    play.say("And now?", "r2")
    play.run()

    assert message is not None
    assert play.journal.context.transcript_base == 4
    assert [mark.number for mark in play.journal.context.marks] == list(range(6))
    assert talked(play)[-2:] == ["And now?", "More."]
    assert play.events_before.count > 0
    assert len(play.journal.log) < 15


def test_a_session_whose_checkpoints_fail_continues_as_new_at_last_with_all_its_entries() -> None:
    play = kept(text("Forty."))
    play.say("How many bricks?")
    play.run()
    for _ in range(30):
        play.tell("observe", {"messages": "It rains."})
    play.load = LONG
    play.begin()
    assert isinstance(play.asked, Checkpoint)
    play.asked = None
    play.write(e.CheckpointFailed(error=DOWN, events=LONG.events))
    at_rest = play.run()
    play.load = Load(events=25_000)

    step = play.run()
    log = [entry.seq for entry in play.journal.log if entry.seq > play.journal.keeping.saved]
    play.continue_as_new()

    assert isinstance(at_rest, Idle)
    assert isinstance(step, ContinueAsNew)
    assert [entry.seq for entry in play.journal.log] == log


@pytest.mark.parametrize(("call", "state"), [("Measure", "unknown"), ("Look", "interrupted")])
def test_a_reply_that_was_cut_off_says_so_and_a_call_that_may_have_run_is_unknown(call: str, state: str) -> None:
    first = kept(calls(f"c {call}"))
    first.say("Go")
    first.run(hold=True)
    first.allow("c")
    first.run(hold=True)
    second = kept(text("I see."), earlier=left_by(first), now=first.now + 10)
    second.say("And?", "r2")
    second.begin()
    second.asked = None
    found = e.Restored(incarnation=2, source="history")

    second.journal.restore(found, left_by(first).session, second.now)
    second.run()

    assert [result[1] for result in second.results()] == [ToolResultState(state).value]
    assert second.ends() == [("reply-of-r1", "interrupted"), ("reply-of-r2", "completed")]
    ended = second.journal.requests.finished["reply-of-r1"].error
    assert ended is not None
    assert "cut off" in ended.message


def test_a_session_of_which_later_steps_are_unknown_waits_for_a_person() -> None:
    first = kept(text("Forty."))
    first.say("How many bricks?")
    first.run()
    second = kept(text("Blue."), earlier=left_by(first), now=first.now + 10)
    second.say("Which colour?", "r2")
    second.begin()
    second.asked = None
    found = e.Restored(incarnation=2, source="store", quarantine="later steps are unknown")
    second.journal.restore(found, left_by(first).session, second.now)

    held = second.run()
    second.tell("resume", {})
    second.run()

    assert held == Park("person")
    assert talked(second)[-1] == "Blue."


def test_a_state_from_outside_takes_the_place_of_an_idle_ones() -> None:
    play = kept(text("Forty."), text("Red."))
    play.say("How many bricks?", "r1")
    play.run()
    state = play.journal.state.model_dump(mode="json")
    state["context"][1]["content"][0]["text"] = "Fifty."
    state["summary"] = "They count bricks."

    answer = play.tell(
        "replace_state", {"state": state, "expected_seq": play.journal.keeping.changed, "by": "ana", "why": "x"}
    )
    play.say("Which colour?", "r2")
    play.run()

    assert answer == {"replaced": True, "messages": 2}
    assert talked(play) == ["How many bricks?", "Fifty.", "Which colour?", "Red."]
    assert play.journal.state.summary == "They count bricks."
    assert play.journal.context.epoch == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"context": [{"name": "a", "role": "assistant", "content": [{"type": "tool_result", "id": "z", "name": "Look",
                                                                      "output": ""}]}]}, "'z', which is no open call"),
        ({"context": 7}, "state.context: Input should be a valid list (it is 7)"),
    ],
)  # fmt: skip
def test_a_state_that_could_not_stand_is_refused_with_the_place(change: dict[str, object], sentence: str) -> None:
    play = kept(text("Forty."))
    play.say("How many bricks?")
    play.run()
    state = {**play.journal.state.model_dump(mode="json"), **change}

    answer = play.tell("replace_state", {"state": state})

    assert sentence in str(answer)
    assert talked(play) == ["How many bricks?", "Forty."]


def test_a_state_is_not_replaced_under_a_session_that_has_moved_on_or_works() -> None:
    play = kept(text("Done."))
    state = play.journal.state.model_dump(mode="json")
    play.say("Paint")

    at_work = play.tell("replace_state", {"state": state})
    play.run()
    stale = play.tell("replace_state", {"state": state, "expected_seq": 3})

    assert "the session is at work" in str(at_work)
    assert "3 is not where the session stands" in str(stale)


def test_the_fold_of_all_entries_is_the_state_that_was_lived() -> None:
    first = kept(text("Forty."))
    first.say("How many bricks?")
    first.run()
    second = next_incarnation(first, calls("l Look"), text("Blue."))
    second.say("Which colour?", "r2")
    second.run()
    everything = [entry for entry in first.journal.log if entry.seq <= first.journal.keeping.saved] + second.journal.log

    folded = Journal.of(everything)

    assert folded.state.context == second.journal.state.context
    assert [mark.number for mark in folded.context.marks] == [mark.number for mark in second.journal.context.marks]
    assert folded.seq == second.journal.seq
