"""A session in OpenHands' words follows from its entries, and names all that was said and done."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.incarnation.history import History
from longhaul.agent.values.conversation.messages import ErrorInfo
from longhaul.agent.views.trajectory import Trajectory, TrajectoryEvent, trajectory
from tests.agent.incarnation.test_history import long_talk
from tests.agent.play import Play, calls, text


def told(play: Play) -> list[TrajectoryEvent]:
    return list(trajectory(play.journal.log))


@pytest.mark.proves("D7")
def test_actions_stand_with_their_thought_and_observations_with_their_calls() -> None:
    play = Play(
        [[*text("First a look."), *calls("a Look", "b Paint", arguments='{"wall": 7}')], text("Blue.")], keeps=True
    )
    play.say("Which colour?", "r1")
    play.run()
    play.deny("b", reason="not today")
    play.run()

    events = told(play)

    assert [(one.kind, one.source, one.tool, one.call_id, one.text, one.state) for one in events] == [
        ("message", "user", "", "", "Which colour?", ""),
        ("action", "agent", "Look", "a", "First a look.", ""),
        ("action", "agent", "Paint", "b", "", ""),
        ("observation", "environment", "Look", "a", "done", "success"),
        ("rejection", "user", "Paint", "b", "This call was denied by ben and did not run: not today", "denied"),
        ("message", "agent", "", "", "Blue.", ""),
    ]
    assert [one.input for one in events if one.kind == "action"] == ['{"wall": 7}', '{"wall": 7}']
    assert [one.message for one in events] == [0, 1, 1, 2, 3, 4]
    assert events[4].by == "ben"
    assert [one.seq for one in events] == sorted(one.seq for one in events)


@pytest.mark.proves("D2")
def test_a_condensation_names_what_is_forgotten_and_follows_its_request() -> None:
    play = Play([text("Forty. " * 300), text("Blue. " * 300), text("Yes."), text("No.")], keeps=True, window=2_000)
    play.say("How many bricks?", "r1")
    play.run()
    play.say("Which colour?", "r2")
    play.run()
    config = {"trigger_ratio": 0.1, "reserve_ratio": 0.05}
    play.tell("compact", {"context_config": config, "instructions": "Keep numbers.", "by": "ana"})
    play.say("Sure?", "r3")
    play.run()

    events = told(play)
    asked = [one for one in events if one.kind == "condensation_request"]
    condensed = [one for one in events if one.kind == "condensation"]

    assert [(one.source, one.text, one.by) for one in asked] == [("user", "Keep numbers.", "ana")]
    assert [one.by for one in condensed] == ["summary"] * len(condensed)
    assert condensed[-1].text == play.journal.state.summary
    shown = {mark.number for mark in play.journal.context.marks}
    gone = {number for one in condensed for number in one.forgotten}
    assert gone
    assert gone | shown == set(range(play.journal.messages_total))
    assert not gone & shown


def test_an_overflow_is_a_request_and_other_failures_are_errors() -> None:
    log = list(Play().journal.log)
    play = Play([], keeps=True)
    play.say("Ask", "r1")
    play.begin()
    play.write(e.ReplyStarted(reply_id="reply-of-r1"))
    play.write(e.ModelFailed(model="m", error=ErrorInfo(type="context_overflow", message="It is too long.")))
    play.write(e.ModelFailed(model="m", error=ErrorInfo(type="upstream", message="It was overloaded.")))

    assert [(one.kind, one.text) for one in told(play)][1:] == [
        ("condensation_request", "It is too long."),
        ("error", "It was overloaded."),
    ]
    assert list(trajectory(log)) == []


def test_from_any_entry_on_the_same_is_told_but_for_what_a_condensation_forgot() -> None:
    log = long_talk().journal.log
    whole = [event.model_copy(update={"forgotten": ()}) for event in trajectory(log)]
    cuts = 0
    for cut in range(1, len(log)):
        history = History()
        history.take_all(log[:cut])
        if history.boundary is None:
            continue
        cuts += 1
        reducer = Trajectory(History.at(history.boundary).take)
        told_from_there = [event for entry in log[cut:] for event in reducer.take(entry)]

        assert told_from_there == [event for event in whole if event.seq > log[cut - 1].seq]
    assert cuts > len(log) // 2
