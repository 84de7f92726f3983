"""A sub-agent closes with the end of its task, and what it returns is the report; unless something keeps it open."""

from collections.abc import Callable

import pytest

from longhaul.agent import entries as e
from longhaul.agent.steps import Checkpoint, Close, Idle
from longhaul.agent.values.conversation.messages import ErrorInfo
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.views.session_views import report
from tests.agent.decisions.test_keeping import left_by
from tests.agent.family import ABOVE, HOUSE, Family, tasks
from tests.agent.play import Line, spoken, text

CLOSING = ABOVE.model_copy(update={"by_result": True})


def sub_agent(*lines: Line) -> Family:
    """One that was given its task, `t1`, and keeps itself as on a server."""
    play = Family(lines or (text("Set."),), parent=CLOSING, keeps=True)
    play.say("do t1", request_id="t1")
    return play


def until_it_closes(play: Family) -> None:
    """Up to the checkpoint with which it closes, which is under way."""
    while play.begin() != Checkpoint(closing=True):
        if play.asked:
            play.complete()


def test_it_closes_with_its_report_and_sends_no_operation() -> None:
    play = sub_agent()

    assert play.run() == Close()

    told = report(play.journal)
    assert told is not None
    assert (told.call_id, told.state, told.output) == ("t1", "success", "Set.")
    assert play.reports == []
    assert play.journal.keeping.mirrored == play.journal.keeping.changed


def paused(play: Family) -> object:
    return play.tell("pause", {"by": "ana"})


def asked_again(play: Family) -> object:
    return play.tell("report_again", {"call_id": "t1"})


def spoken_to(play: Family) -> object:
    return play.say("And the door?", request_id="r2")


@pytest.mark.parametrize("keeps", [paused, asked_again, spoken_to])
def test_what_somebody_still_wants_of_it_keeps_it_open_and_it_reports_by_operation(
    keeps: Callable[[Family], object],
) -> None:
    play = sub_agent(text("Set."), text("Hung."))

    until_it_closes(play)

    keeps(play)
    play.complete()

    assert play.run() == Idle()
    assert [told.output for told in play.reports if told] == ["Set."]


def test_where_it_can_not_be_written_down_it_reports_by_operation() -> None:
    play = sub_agent()
    until_it_closes(play)

    play.asked = None
    play.write(e.CheckpointFailed(error=ErrorInfo(type="upstream", message="no store")))

    assert play.run() == Idle()
    assert [told.output for told in play.reports if told] == ["Set."]


def test_only_agents_that_do_not_say_when_to_close_have_it() -> None:
    def by_result(**spec: object) -> bool:
        own = AgentSpec.model_validate({"name": "glazier", **spec})
        house = HOUSE.model_copy(update={"agents": {"glazier": own}})
        play = Family([tasks("a glazier"), text("All set.")], spec=house)
        play.say("Build")
        play.run()
        started = play.started["a"]
        assert started.parent.by_result == started.child.by_result
        return started.parent.by_result

    assert by_result()
    assert not by_result(idle_close_seconds=60)


def test_opened_again_it_answers_stays_open_and_says_its_end_by_operation() -> None:
    before = sub_agent()
    before.run()

    play = Family([text("Still here.")], keeps=True, earlier=left_by(before))
    play.say("Are you there?", request_id="r2")

    assert play.run() == Idle()
    assert spoken(play.journal.state.context)[-1] == "Still here."
    assert [told.output for told in play.reports if told] == ["Set."]
