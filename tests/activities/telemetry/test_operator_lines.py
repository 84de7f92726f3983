"""Which entries are a line of an operator's log, and which names stand in it."""

import logging

import pytest

from longhaul.activities.telemetry import operator_lines
from longhaul.activities.telemetry.operator_lines import LOGGER, report
from longhaul.agent import entries as e
from longhaul.agent.entries import Due, UnknownOutcome
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.spec.agent_spec import AgentSpec

WORKFLOW = "longhaul/diver/ana/cove"


def lines(caplog: pytest.LogCaptureFixture, session: SessionState, *entries: e.AnyEntry) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.INFO, LOGGER):
        report(WORKFLOW, entries, session)
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


def session_of_nobody() -> SessionState:
    return SessionState(state=AgentState(), spec=AgentSpec(model="scripted:none"))


def unknown_outcome(call_id: str, at: int) -> UnknownOutcome:
    return UnknownOutcome(
        call_id=call_id, tool="refund", reply_id="r", input='{"order": "walrus"}', why="its worker died", at=at
    )


def test_an_unknown_outcome_is_told_once_by_the_checkpoint_that_records_it(caplog: pytest.LogCaptureFixture) -> None:
    session = session_of_nobody()
    session.unknown_outcomes = {"call-1": unknown_outcome("call-1", 500), "call-2": unknown_outcome("call-2", 900)}

    assert lines(caplog, session, e.StopAsked(at=900, call_ids=())) == [
        "session cove: the outcome of the call call-2 of refund is unknown"
    ]
    assert lines(caplog, session, e.StopAsked(at=901, call_ids=())) == []


def test_a_call_that_expired_is_told_and_one_that_waits_on_is_not(caplog: pytest.LogCaptureFixture) -> None:
    late = Due(call_id="call-3", stage="expire", waits_for="person", asked_at=1, due_at=2, closes=True)
    on = late.model_copy(update={"call_id": "call-4", "closes": False})

    assert lines(caplog, session_of_nobody(), e.DeadlineReached(due=(late, on))) == [
        "session cove: nobody decided in time on the call call-3 of ?"
    ]


def test_a_name_from_outside_can_neither_begin_a_line_nor_fill_one(caplog: pytest.LogCaptureFixture) -> None:
    decision = e.DecisionGiven(call_id="c" * 5000, allow=True, reason="walrus")
    entry = e.HumanDecided(decisions=(decision,), approver="bea\nWARNING:root:all is lost")
    (line,) = lines(caplog, session_of_nobody(), entry)

    assert line.startswith("session cove: bea WARNING:root:all is lost approved the call ccc")
    assert len(line) < 400
    assert "walrus" not in line


def test_nothing_is_gathered_where_nobody_reads_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, LOGGER):
        report(WORKFLOW, (e.OperationRefused(name="confirm", reason="walrus"),), session_of_nobody())

    assert operator_lines.log.name == LOGGER
    assert caplog.records == []
