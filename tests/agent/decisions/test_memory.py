"""A reply is written down in the long-term memory once, before it ends, where its agent wants that."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.steps import Finish, Memorise
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.knowledge import MEMORY_SOURCE, found_hint
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, Play, calls, text


def remembering(*lines: object, mode: str | None = "static_control") -> Play:
    return Play([*lines], spec=SPEC.model_copy(update={"long_term_memory_mode": mode}))  # type: ignore[list-item]


def times(play: Play) -> int:
    return sum(isinstance(step, Memorise) for step in play.steps)


@pytest.mark.parametrize(("mode", "expected"), [(None, 0), ("agent_control", 0), ("static_control", 2), ("both", 2)])
def test_each_reply_is_written_down_where_the_agent_wants_it(mode: str | None, expected: int) -> None:
    play = remembering(calls("a Look"), text("Red."), text("Blue."), mode=mode)
    for number in range(2):
        play.say("What colour?", f"r{number}")
        play.run()

    assert times(play) == expected
    kinds = [entry.kind for entry in play.journal.log if entry.kind in ("memory_recorded", "finished")]
    assert kinds == (["memory_recorded", "finished"] * 2 if expected else ["finished"] * 2)


def test_one_that_was_interrupted_is_not_written_down() -> None:
    play = remembering(calls("a Paint"))
    play.say("Paint")
    play.run()
    play.tell("interrupt")
    play.run()

    assert times(play) == 0


def test_one_that_is_interrupted_meanwhile_ends_as_interrupted() -> None:
    play = remembering(text("Red."))
    play.say("What colour?")
    while not isinstance(play.begin(), Memorise):
        play.complete()
    play.tell("interrupt")
    play.complete()
    play.run()

    ends = [step.reason for step in play.steps if isinstance(step, Finish)]
    assert ends == [FinishedReason.INTERRUPTED]
    assert times(play) == 1


def test_one_that_goes_on_with_a_new_message_is_written_down_again() -> None:
    play = remembering(text("Red."), text("Blue."))
    play.say("What colour?")
    while not isinstance(play.begin(), Memorise):
        play.complete()
    play.tell("submit", {"messages": "No, the other", "request_id": "n1", "when": "now"})
    play.complete()
    play.run()

    assert times(play) == 2
    assert [step.reason for step in play.steps if isinstance(step, Finish)] == [FinishedReason.COMPLETED]


def test_what_could_not_be_written_down_is_told_and_holds_nothing_up() -> None:
    play = remembering(text("Red."))
    play.say("What colour?")
    while not isinstance(play.begin(), Memorise):
        play.complete()
    play.asked = None
    play.write(e.MemoryRecorded(reply_id=play.journal.current.reply_id, error="the disk is full"))
    play.run()

    told = [event.value for event in EventReducer().catch_up(play.journal.log) if event.name == "memory_recorded"]
    assert told == [{"memories": 0, "reason": "the disk is full"}]
    assert play.journal.reply is None


def test_what_a_memory_brought_in_counts_as_words_that_nobody_vouches_for() -> None:
    play = remembering(text("Red."))
    play.say("What colour?")
    play.begin()
    play.complete()
    play.begin()
    play.asked = None
    found = found_hint(["x"], MEMORY_SOURCE)
    prepared = e.Prepared(behaviour=1, spec_digest="s", workspace_root="/site", workspace_nonce="n", hints=(found,))
    play.write(prepared)

    assert play.journal.state.tainted == "a long-term memory brought in what others may have written"
