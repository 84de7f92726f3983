"""A worker that was shut down in the midst of a session: what is recorded, and until when it counts."""

from typing import Any

from longhaul.agent.operations.peer_operations import shutdown
from longhaul.agent.steps import Think
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState
from longhaul.agent.views.events import EventReducer
from tests.agent.play import Play, calls, succeeded, text

LEFT = {"worker": "71@atlas", "doing": "Look", "call_id": "a"}


def interrupted(play: Play) -> bool:
    return play.journal.state.shutdown_interrupted


def told(play: Play) -> list[tuple[str, Any]]:
    events = EventReducer().catch_up(play.journal.log)
    return [(event.tool_call_id, event.value) for event in events if event.name == "worker_left"]


def thinking(**more: Any) -> Play:
    """A session that waits for its model."""
    play = Play([text("Done.")], **more)
    play.say("Go")
    play.begin()
    play.complete()
    assert isinstance(play.begin(), Think)
    return play


def test_a_shutdown_marks_a_session_until_another_worker_has_gone_on() -> None:
    play = thinking()

    answer = play.tell("worker_left", {"worker": "71@atlas", "doing": "longhaul.call_model"})
    before = shutdown(play.journal)
    play.complete()

    assert answer == {"recorded": True}
    assert before == {"shutdown_interrupted": True, "left_by": "71@atlas"}
    assert shutdown(play.journal) == {"shutdown_interrupted": False, "left_by": ""}
    assert told(play) == [("", {"worker": "71@atlas", "doing": "longhaul.call_model"})]


def test_what_the_leaving_worker_says_of_a_lost_call_is_no_going_on() -> None:
    play = Play([calls("a Look", "b Look"), text("Done.")])
    unknown = ToolResultBlock(id="a", name="Look", output="?", state=ToolResultState.UNKNOWN)
    play.outcomes = {"a": [succeeded("a", "Look").model_copy(update={"result": unknown})]}
    play.say("Look twice")
    play.run(hold=True)
    play.tell("worker_left", LEFT)

    play.end_call("a")
    after_unknown_outcome = interrupted(play)
    play.end_call("b")

    assert after_unknown_outcome is True
    assert interrupted(play) is False


def test_a_session_that_is_at_nothing_has_nothing_to_go_on_with() -> None:
    play = thinking()
    play.complete()
    play.run()

    answer = play.tell("worker_left", LEFT)

    assert answer == {"recorded": False}
    assert told(play) == []


def test_a_worker_with_an_endless_name_is_refused() -> None:
    play = thinking()

    answer = play.tell("worker_left", {**LEFT, "worker": "w" * 1_001})

    assert str(answer).startswith("worker_left: worker: String should have at most 1000 characters")
    assert interrupted(play) is False
