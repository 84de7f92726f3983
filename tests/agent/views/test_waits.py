"""How long calls have waited, told by the entries that end their waits."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.deadline_steps import reached
from longhaul.agent.values.conversation.messages import ToolResultBlock
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.views.session_views import Waited, waits_ended
from tests.agent.play import NOON, RULES, SPEC, Play, asking, calls

MINUTE = 60_000


def asked_at(play: Play, call_id: str) -> int:
    return play.journal.current.calls[call_id].asked_at


def test_a_decision_ends_the_wait_of_each_call_that_it_is_about() -> None:
    play = asking("a Measure", "b Measure")
    decided = e.HumanDecided(
        decisions=(e.DecisionGiven(call_id="a", allow=True), e.DecisionGiven(call_id="b", allow=False))
    )

    ended = waits_ended(play.journal, decided, asked_at(play, "a") + 2 * MINUTE)

    assert ended == [Waited("Measure", "person", "answered", 120.0)] * 2


def test_a_result_from_outside_ends_a_wait_and_one_of_a_tool_does_not() -> None:
    play = asking("a Order")
    handed = e.ToolReturned(result=result_of("a", "Order"), outside=True)

    assert waits_ended(play.journal, handed, asked_at(play, "a") + 1_500) == [
        Waited("Order", "outside", "answered", 1.5)
    ]
    running = Play([calls("b Look")])
    running.say("Look")
    running.run(hold=True)
    assert waits_ended(running.journal, e.ToolReturned(result=result_of("b", "Look")), NOON) == []


@pytest.mark.parametrize(("on_expiry", "ended"), [("deny", 1), ("park", 0)])
def test_a_call_whose_time_is_over_has_waited_unless_it_waits_on(on_expiry: str, ended: int) -> None:
    deadline = Deadlines.model_validate({"expire_after": 3_600, "on_expiry": on_expiry})
    spec = SPEC.model_copy(update={"permission": PermissionContext(rules=RULES, deadline=deadline)})
    play = Play([calls("p Paint")], spec=spec)
    play.say("Paint")
    play.run()
    over = asked_at(play, "p") + 3_600_000

    waits = waits_ended(play.journal, e.DeadlineReached(due=reached(play.journal, over)), over)

    assert waits == [Waited("Paint", "person", "expired", 3_600.0)] * ended


def test_most_entries_end_no_wait() -> None:
    play = asking("a Paint")

    assert waits_ended(play.journal, e.Observed(messages=()), NOON) == []
    assert waits_ended(Play().journal, e.HumanDecided(decisions=()), NOON) == []


def result_of(call_id: str, name: str) -> ToolResultBlock:
    return ToolResultBlock(id=call_id, name=name, output="40")
