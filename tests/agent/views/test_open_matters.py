"""What a summary may not lose: open tasks and unknown outcomes, in few short lines."""

from longhaul.agent import entries as e
from longhaul.agent.entries import UnknownOutcome
from longhaul.agent.values.tasks import Task, TasksContext, TaskState
from longhaul.agent.views.session_views import unfinished
from tests.agent.play import Play


def with_tasks(*tasks: tuple[str, TaskState]) -> Play:
    play = Play()
    listed = tuple(Task(id=str(at), subject=subject, state=state) for at, (subject, state) in enumerate(tasks))
    play.journal.state.tasks_context = TasksContext(tasks=listed)
    return play


def test_open_tasks_are_named_the_current_one_first_and_done_ones_not() -> None:
    play = with_tasks(("Read", "completed"), ("Write\nit  down", "pending"), ("Think", "in_progress"))

    assert unfinished(play.journal) == ("Think", "Write it down")


def test_a_call_whose_outcome_is_unknown_is_named_before_the_tasks_until_it_is_settled() -> None:
    play = with_tasks(("Think", "pending"))
    unknown_outcome = UnknownOutcome(call_id="c-7", tool="send", reply_id="r", input="{}", why="lost", at=1)
    play.journal.unknown_outcomes = {
        "c-7": unknown_outcome,
        "c-8": unknown_outcome.model_copy(update={"call_id": "c-8", "happened": True}),
    }

    assert unfinished(play.journal) == ("send (c-7): its outcome is unknown", "Think")


def test_many_and_long_ones_are_cut() -> None:
    long: list[tuple[str, TaskState]] = [(f"{number} " + "x" * 500, "pending") for number in range(25)]
    play = with_tasks(*long)

    lines = unfinished(play.journal)

    assert len(lines) == 21
    assert {len(line) for line in lines[:-1]} == {200}
    assert lines[-1] == "and 5 more that are open"


def test_a_session_that_has_nothing_open_says_nothing() -> None:
    play = Play()
    play.write(e.OperationRefused(name="submit", reason="no", count=1))

    assert unfinished(play.journal) == ()
