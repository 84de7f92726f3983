"""The inbox as people see it."""

from datetime import UTC, datetime, timedelta

import pytest

from longhaul.starter import render_inbox
from longhaul.starter.client.cards import SessionCard, leads_of_asking, query
from longhaul.starter.client.inbox import is_overdue
from longhaul.workflows.contract import PendingCall

CARD = SessionCard("mend", "ana\x1b[31m", "coder", "waiting", "", "", "longhaul/coder/ana/mend")
NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def call(**fields: str) -> PendingCall:
    given = {"reply_id": "r", "call_id": "c", "tool": "Bash", "input": "{}", "waits_for": "person"}
    asked = (datetime.now(UTC) - timedelta(minutes=3, seconds=5)).isoformat()
    return PendingCall.model_validate({**given, "asked_at": asked, **fields})


def in_hours(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours, minutes=30, seconds=50)).isoformat()


@pytest.mark.parametrize(
    ("hours", "told"),
    [
        ({}, ""),
        ({"expires_at": 2}, ", deadline in 2 h 30 min"),
        ({"expires_at": 2, "reminded_at": -1}, ", deadline in 2 h 30 min, reminded of"),
        ({"escalated_at": -1, "reminded_at": -2}, ", ESCALATED"),
        ({"expired_at": -1, "escalated_at": -2}, ", OVERDUE"),
    ],
)
def test_a_line_says_since_when_until_when_and_how_late(hours: dict[str, float], told: str) -> None:
    # Counted from here: the whole suite may take longer than the minute that separates two answers.
    fields = {name: in_hours(number) for name, number in hours.items()}

    assert render_inbox.head(CARD, call(**fields)).plain == f"mend of ana\\x1b[31m, 3 min ago{told}"


@pytest.mark.proves("X4")
def test_overdue_is_what_somebody_was_reminded_of_and_what_is_over() -> None:
    assert not is_overdue(call(), NOW)
    assert not is_overdue(call(expires_at="2026-01-02T12:00:01+00:00"), NOW)
    assert is_overdue(call(expires_at="2026-01-02T12:00:00+00:00"), NOW)
    assert is_overdue(call(reminded_at="2026-01-02T11:00:00+00:00"), NOW)
    assert is_overdue(call(expired_at="2026-01-02T11:00:00+00:00"), NOW)


def test_a_name_that_the_server_would_misread_is_left_to_us() -> None:
    assert query(team="tea's", tool="send").endswith(r"LonghaulTeam = 'tea\'s' AND LonghaulWaitingTools = 'send'")
    assert "LonghaulTeam" not in query(team='a"b')


def test_the_leads_above_a_call_that_waits_are_known_without_asking_them() -> None:
    def card(name: str, parent: str = "", *tools: str, status: str = "working") -> SessionCard:
        root = "root" if parent else ""
        return SessionCard(
            name,
            None,
            "coder",
            status,
            "",
            "",
            name,
            waiting_tools=tools,
            root_workflow_id=root,
            parent_workflow_id=parent,
        )

    tree = [card("root"), card("middle", "root"), card("deep", "middle", "Bash"), card("other", "root", "sleep")]

    assert leads_of_asking(tree) == {"root", "middle"}
    assert leads_of_asking(tree[2:]) == {"root", "middle"}, "of those that no list has as far as the row tells"
    assert leads_of_asking(tree[3:]) == set(), "one that sleeps asks nobody"
    assert leads_of_asking([card("gone", "root", "Bash", status="closed")]) == set()
