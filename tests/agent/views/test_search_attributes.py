"""The searchable row of a session."""

import pytest

from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.budget import ModelSpent
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.views.session_views import IndexRow, row_of
from tests.agent.play import NOON, RULES, Play, calls


def parked(indexed: int, *pairs: str) -> Play:
    """A session of the team `tea` whose model has made these calls."""
    permission = PermissionContext(rules=RULES, deadline=Deadlines(expire_after=60, tools={"Order": Deadlines()}))
    spec = AgentSpec(name="mason", model="scripted:wall", team="tea", permission=permission)
    play = Play([calls(*pairs)], spec=spec)
    play.journal.provided.indexed = indexed
    play.say("Go")
    play.run()
    return play


@pytest.mark.proves("F3")
def test_the_row_says_what_waits_and_until_when() -> None:
    row = row_of(parked(2, "n Measure", "o Measure", "p Paint").journal)

    assert (row.status, row.tools, row.team) == ("waiting", ("Measure", "Paint"), "tea")
    assert NOON + 60_000 < row.deadline < NOON + 61_000
    assert row_of(parked(2, "o Order").journal) == IndexRow("waiting", ("Order",), team="tea")


def test_the_row_says_the_highest_risk_of_what_waits() -> None:
    play = Play([calls("m Measure", "n Measure")])
    play.analysis = {"m": [CallAnalysis(risk="high")], "n": [CallAnalysis(risk="low")]}
    play.journal.provided.indexed = 2
    play.say("Go")
    play.run()

    assert row_of(play.journal).risk == "high"


def test_what_it_has_used_is_told_with_the_row_and_is_no_change_of_it() -> None:
    journal = parked(3, "p Paint").journal
    journal.spent.usage = Usage(input_tokens=700, output_tokens=45)
    journal.spent.by_model = {"wall": ModelSpent(nanos=2_500_000), "mole": ModelSpent(nanos=1)}
    row = row_of(journal)

    assert (row.tokens, row.dollars) == (745, 0.002500001)
    journal.provided.indexed = 2
    assert row == row_of(journal)
    assert (row_of(journal).tokens, row_of(journal).dollars) == (0, 0.0)


def test_a_namespace_without_the_newer_attributes_is_told_of_none() -> None:
    assert row_of(parked(1, "p Paint").journal) == IndexRow("waiting")
