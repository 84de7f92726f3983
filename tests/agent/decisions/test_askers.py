"""A workflow of an application hears how its request has ended: by what the session returns, or by a signal."""

import json
from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.subagent_start import answered
from longhaul.agent.steps import Close, TellAsker
from longhaul.agent.values.conversation.messages import FinishedReason, ToolCallBlock, Usage
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE, Effect, ToolDescriptor
from longhaul.agent.values.subagents import Asker
from longhaul.agent.views.session_views import answer
from tests.agent.play import TOOLS, Line, Play, calls, text

ASK = {"workflow_id": "order-17", "request_id": "q1", "messages": "Lay the floor"}


def started(*lines: Line) -> Play:
    """A session that was started for a request of a workflow."""
    play = Play(lines or (text("Laid."),), keeps=True)
    play.say("Lay the floor", request_id="q1")
    play.write(e.AskerCame(asker=Asker(workflow_id="order-17", request_id="q1", by_result=True)))
    return play


def told(play: Play, request: str = "q1") -> dict[str, Any]:
    return answer(play.journal, play.journal.askers[request]).model_dump(exclude_defaults=True)


def test_a_session_that_was_started_for_it_closes_with_the_answer() -> None:
    play = started()

    assert play.run() == Close()

    asker = answered(play.journal)
    assert asker is not None
    assert answer(play.journal, asker).words == "Laid."


@pytest.mark.parametrize(
    ("operation", "body"), [("submit", {"messages": "And?", "request_id": "r2", "when": "queue"}), ("pause", {})]
)
def test_what_somebody_else_wants_of_it_keeps_it_open_and_it_answers_by_a_signal(
    operation: str, body: dict[str, Any]
) -> None:
    play = started(text("Laid."), text("And a wall."))
    while not play.journal.requests.finished:
        play.begin()
        if play.asked:
            play.complete()
    play.tell(operation, body)

    assert play.begin() == TellAsker("q1")
    play.write(e.AskerTold(request_id="q1"))
    assert play.journal.askers == {}


def test_whoever_waited_for_a_person_is_answered_by_a_signal() -> None:
    play = started(calls("b Paint"), text("Painted."))
    play.run()
    play.allow("b")

    assert play.run() == TellAsker("q1")
    play.write(e.AskerTold(request_id="q1", error="order-17 is not there"))
    assert play.journal.askers["q1"].error == "order-17 is not there"
    assert answered(play.journal) is None


def test_the_same_question_has_its_end_told_once_more_and_another_one_is_refused() -> None:
    play = Play((text("Laid."), text("never")))
    play.tell("ask", ASK)
    assert play.run() == TellAsker("q1")
    play.write(e.AskerTold(request_id="q1"))

    play.tell("ask", ASK)
    assert told(play) == {"request_id": "q1", "session_id": "wall-7", "state": "success", "words": "Laid."} | usage(
        play
    )
    play.tell("ask", {**ASK, "messages": "Lay two floors"})

    assert told(play)["state"] == "refused"
    assert "was used before for another message" in told(play)["words"]


def usage(play: Play) -> dict[str, Any]:
    (ended,) = play.journal.requests.finished.values()
    return {"usage": ended.usage.model_dump(exclude_defaults=True)} if ended.usage != Usage() else {}


def test_whoever_does_not_want_to_wait_hears_that_the_session_is_busy() -> None:
    play = Play((calls("b Paint"), text("Painted.")))
    play.say("Paint it")
    play.run()
    play.tell("ask", {**ASK, "unless_busy": True})

    assert play.begin() == TellAsker("q1")
    assert told(play) == {"request_id": "q1", "session_id": "wall-7", "state": "busy", "words": "the session is busy"}


def test_a_request_that_is_dropped_before_it_begins_is_answered() -> None:
    play = Play((calls("b Paint"), text("Painted.")))
    play.say("Paint it")
    play.run()
    play.tell("ask", ASK)
    play.tell("interrupt", {"request_id": "q1"})

    assert play.begin() == TellAsker("q1")
    assert told(play)["state"] == "interrupted"


@pytest.mark.parametrize(("bricks", "state"), [(199_000, "success"), (201_000, "error")])
def test_a_value_that_is_too_large_for_two_histories_is_an_error_that_says_so(bricks: int, state: str) -> None:
    schema = {"type": "object", "properties": {"bricks": {"type": "string"}}, "required": ["bricks"]}
    finish = ToolDescriptor(
        name=GENERATE_RESPONSE, input_schema=schema, inside=True, read_only=True, effect=Effect.READ
    )
    value = {"bricks": "b" * bricks}
    call = ToolCallBlock(id="a", name=GENERATE_RESPONSE, input=json.dumps(value))
    play = Play(([call],), tools=(*TOOLS, finish))
    play.tell("ask", {**ASK, "structured_schema": schema})
    play.run()

    found = answer(play.journal, play.journal.askers["q1"])

    assert (found.state, found.value) == (state, value if state == "success" else None)
    assert ("the value has 201 kB, and the most is 200 kB; ask for a smaller one" in found.words) is (state == "error")


def test_fifty_that_could_not_be_told_are_remembered() -> None:
    play = Play((text("Laid."),))
    for number in range(60):
        play.write(e.AskerCame(asker=Asker(workflow_id="order-17", request_id=f"q{number}", refused="no")))
        play.write(e.AskerTold(request_id=f"q{number}", error="it has ended"))

    assert list(play.journal.askers) == [f"q{number}" for number in range(10, 60)]


def test_a_request_of_an_earlier_life_is_answered_again_and_not_made_again() -> None:
    first = started()
    first.run()
    again = started(text("never"))
    again.journal.restore(e.Restored(source="store", incarnation=2), first.journal.twin(), again.now)

    assert [ended.reason for ended in again.journal.requests.finished.values()] == [FinishedReason.COMPLETED]
    assert told(again)["words"] == "Laid."
