"""Pause, step, resume: what a session does while it stands still, and that nothing is lost by it."""

from typing import Any

import pytest

from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.steps import Act, Compress, Idle, Park, Prepare, Think
from longhaul.agent.values.conversation.messages import problem
from longhaul.agent.views.session_views import row_of
from tests.agent.play import Play, calls, text

PAUSED = Park("resume")


def at_work(*lines: Any, **more: Any) -> Play:
    """A session that has made a reply before, so that it knows its rules and tools."""
    play = Play([text("Ready."), *lines], **more)
    play.say("Hello", "r0")
    play.run()
    play.steps.clear()
    return play


def taken(play: Play) -> list[str]:
    """The steps since the last time that touch the world, by name."""
    names = [type(step).__name__ for step in play.steps if isinstance(step, Prepare | Think | Act | Compress)]
    play.steps.clear()
    return names


def test_the_next_request_waits_while_a_session_is_paused() -> None:
    play = at_work(text("Built."))

    assert play.tell("pause", {"by": "ana", "why": "moving"}) == {"paused": True, "already": False}
    play.say("Build")

    assert play.run() == PAUSED
    assert (taken(play), row_of(play.journal).status, len(play.journal.requests.queue)) == ([], "paused", 1)
    assert play.tell("resume", {"by": "ben"}) == {"resumed": True}
    assert play.run() == Idle()
    assert play.ends() == [("reply-of-r0", "completed"), ("reply-of-r1", "completed")]
    assert row_of(play.journal).status == "idle"


def test_what_runs_is_let_finish_and_nothing_new_is_started() -> None:
    play = at_work(calls("a Look", "b Look", "c Order"), text("Done."))
    play.say("Go")
    play.run(hold=True)
    assert play.running == ["a", "b"]

    play.tell("pause")

    assert play.run() == Park("outside")
    assert [key for key, _, _ in play.results()] == ["a", "b"]
    play.tell("external_result", {"results": [{"id": "c", "output": "x"}]})
    taken(play)
    assert play.run() == PAUSED
    assert (taken(play), problem(play.journal.state.context)) == ([], "")
    play.tell("resume")
    assert play.run() == Idle()


def test_the_last_word_of_a_model_ends_the_reply_and_the_session_stays_paused() -> None:
    play = at_work(text("Done."))
    play.say("Go")
    play.begin()
    play.complete()
    assert isinstance(play.begin(), Think)

    play.tell("pause")
    play.complete()

    assert play.run() == Idle()

    assert play.ends()[-1] == ("reply-of-r1", "completed")
    assert play.journal.pause is not None


def test_decisions_and_results_are_taken_while_it_stands_still_and_what_they_allow_waits() -> None:
    play = at_work(calls("a Measure", "b Order"), text("Done."))
    play.say("Go")
    play.run()
    play.tell("pause")

    assert play.allow("a") == {"decided": ["a"]}
    assert play.tell("external_result", {"results": [{"id": "b", "output": "40 bricks"}]}) == {"received": ["b"]}
    taken(play)

    assert play.run() == PAUSED
    assert (taken(play), play.running) == ([], [])
    play.tell("resume")
    assert play.run() == Idle()
    assert [(key, state) for key, state, _ in play.results()] == [("b", "success"), ("a", "success")]


@pytest.mark.proves("D1")
def test_steps_are_taken_one_by_one_pending_calls_first() -> None:
    play = at_work(calls("a Paint"), calls("b Look"), text("Done."))
    play.tell("pause")
    play.say("Go")
    play.run()
    taken(play)

    assert play.tell("step") == {"stepping": True, "already": False}
    assert play.run() == Park("person")
    assert taken(play) == ["Prepare", "Think"]
    assert play.tell("step") == "there is no step to take: the reply waits for answers to ['a']"
    play.allow("a")
    assert play.run() == PAUSED
    for expected in (["Act"], ["Think"], ["Act"]):
        assert taken(play) == []
        play.tell("step")
        assert play.run() == PAUSED
        assert taken(play) == expected
    play.tell("step")
    assert play.run() == Idle()
    assert (taken(play), play.ends()[-1]) == (["Think"], ("reply-of-r1", "completed"))
    assert play.tell("step") == "there is no step to take: no request waits"
    assert play.journal.pause is not None


def test_calls_that_do_not_go_together_are_steps_of_their_own() -> None:
    play = at_work(calls("a Paint", "b Paint"), text("Done."))
    play.say("Go")
    play.run()
    play.tell("pause")
    play.allow("a")
    play.run()
    taken(play)

    play.tell("step")

    assert play.run() == Park("person")
    assert [key for key, _, _ in play.results()] == ["a"]
    play.allow("b")
    assert play.run() == PAUSED
    assert taken(play) == ["Act"]


def test_a_step_waits_for_what_was_running_and_is_not_used_up_by_it() -> None:
    play = at_work(calls("a Look"), text("Done."))
    play.say("Go")
    play.run(hold=True)
    play.tell("pause")
    taken(play)

    play.tell("step")
    assert play.tell("step") == {"stepping": True, "already": True}
    assert play.run() == Idle()

    assert taken(play) == ["Think"]


def test_a_second_pause_changes_nothing_but_takes_back_a_step_that_has_not_started() -> None:
    play = at_work(calls("a Look"), text("Done."))
    play.say("Go")
    play.run(hold=True)
    play.tell("pause", {"by": "ana"})
    play.tell("step")

    answer = play.tell("pause", {"by": "ben"})

    assert isinstance(answer, dict)
    assert (answer["already"], answer["by"]) == (True, "ana")
    assert play.run() == PAUSED
    before = play.journal.seq
    play.tell("pause")
    assert play.journal.seq == before


def test_a_compression_is_a_step() -> None:
    play = at_work(text("Long. " * 200), text("Done."), window=400, fixed_tokens=20)
    play.say("Tell me " * 60)
    play.run()
    play.tell("pause")
    play.say("And now?", "r2")
    steps: list[list[str]] = []
    for _ in range(3):
        play.run()
        taken(play)
        play.tell("step")
        play.run()
        steps.append(taken(play))

    assert any("Compress" in step for step in steps)
    assert all(len([name for name in step if name != "Prepare"]) <= 1 for step in steps)


def test_an_interrupt_ends_the_reply_of_a_paused_session_and_its_message_waits() -> None:
    play = at_work(calls("a Paint"), text("Why not."))
    play.say("Go")
    play.run()
    play.tell("pause")

    play.tell("interrupt", {"message": "Stop"})

    assert play.run() == PAUSED
    assert play.ends()[-1] == ("reply-of-r1", "interrupted")
    assert len(play.journal.requests.queue) == 1
    play.tell("resume")
    assert play.run() == Idle()


@pytest.mark.parametrize("keeps", [False, True])
def test_a_paused_session_stays_so_across_a_continue_as_new(keeps: bool) -> None:
    play = at_work(text("Done."), keeps=keeps)
    play.tell("pause", {"by": "ana", "why": "moving"})
    play.say("Go")
    play.run()
    before = play.journal.pause

    play.continue_as_new()

    assert play.journal.pause == before
    assert play.run() == PAUSED


def test_a_session_may_be_paused_before_its_first_step_and_stands_still() -> None:
    play = Play([text("Hello.")])
    play.say("Hello")
    play.tell("pause")

    assert play.run() == PAUSED

    assert taken(play) == []
    assert play.journal.spent.model_calls == 0


def test_resuming_and_stepping_without_a_pause_are_refused() -> None:
    play = at_work()

    assert play.tell("resume") == "there is nothing to resume: the session is neither quarantined nor paused"
    assert play.tell("step") == "the session is not paused; pause it first, then let it take step after step"


def test_a_paused_session_is_written_down() -> None:
    play = at_work(keeps=True)
    play.tell("pause")
    play.run()

    assert play.journal.keeping.mirrored >= play.journal.keeping.changed
    assert play.journal.keeping.saved > 0


def test_a_paused_session_continues_as_new_when_its_history_is_long() -> None:
    play = at_work(text("Done."))
    play.tell("pause")
    play.say("Go")
    play.load = Load(events=3_000)

    assert type(play.run()).__name__ == "ContinueAsNew"
