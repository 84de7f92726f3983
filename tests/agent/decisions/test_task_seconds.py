"""The time of a sub-agent's task, in memory: set when it is given, told as what it was, no bound of later replies."""

from longhaul.agent import entries as e
from longhaul.agent.steps import Idle
from longhaul.agent.values.conversation.messages import FinishedReason
from tests.agent.family import ABOVE, GLAZIER, HOUSE, Family, tasks
from tests.agent.play import SPEC, calls, text

IN_A_HURRY = SPEC.model_copy(update={"task_seconds": 90.0})


def late() -> Family:
    """A sub-agent whose time has come while a person is asked."""
    play = Family([calls("p Paint"), text("Later."), text("And later.")], spec=IN_A_HURRY, parent=ABOVE)
    play.say("Set it", ABOVE.call_id)
    play.run()
    assert play.journal.reply is not None
    play.write(e.InterruptAsked(reply_id=play.journal.reply.reply_id, overdue=True))
    play.run()
    return play


def test_a_task_has_the_time_that_its_agent_says_from_when_it_is_given() -> None:
    agents = {"glazier": GLAZIER.model_copy(update={"task_seconds": 90.0}), "tiler": HOUSE.agents["tiler"]}
    play = Family([tasks("a glazier", "b tiler")], spec=HOUSE.model_copy(update={"agents": agents}))
    play.say("Build")
    play.run()

    in_time, for_ever = play.started["a"], play.started["b"]

    assert in_time.parent.ends_at - in_time.child.at == 90_000
    assert in_time.spec.task_seconds == 90
    assert for_ever.parent.ends_at == 0


def test_its_lead_reads_that_its_time_was_over_and_not_that_somebody_has_ended_it() -> None:
    play = late()

    (told,) = play.reports
    assert told is not None
    assert told.state == "error"
    assert "(interrupted: its time was over: `task_seconds` of its agent is 90)" in told.output
    assert play.ends()[0][1] == FinishedReason.INTERRUPTED


def test_one_that_a_person_ends_is_told_of_as_before() -> None:
    play = Family([calls("p Paint")], spec=IN_A_HURRY, parent=ABOVE)
    play.say("Set it", ABOVE.call_id)
    play.run()
    play.tell("interrupt")
    play.run()

    (told,) = play.reports
    assert told is not None
    assert told.state == "interrupted"
    assert "its time" not in told.output


def test_later_replies_of_its_session_have_no_such_end() -> None:
    play = late()
    play.continue_as_new()
    play.say("And now?", "r2")

    assert play.run() == Idle()
    assert [finished.error for finished in play.journal.requests.finished.values()][-1] is None
    assert play.ends()[-1][1] == FinishedReason.COMPLETED
