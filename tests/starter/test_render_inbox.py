"""The inbox as a list: one line for each call, the most urgent first, in the reader's time zone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from longhaul.starter import render
from longhaul.starter.client.cards import SessionCard
from longhaul.starter.render_inbox import (
    WaitingLine,
    line_of_call,
    line_of_parked,
    line_of_stopped,
    lines,
    most_urgent_first,
)
from longhaul.workflows.contract import PendingCall, Status

CARD = SessionCard("tide", "ana", "coder", "waiting", "", "", "longhaul/coder/ana/tide")
NOBODYS = SessionCard("a\x1b[2Jb", None, "coder", "waiting", "", "", "longhaul/coder/~/ab")


def at(minutes: float) -> str:
    """So long from now; half a minute more, so that a slow test reads the same number."""
    return (datetime.now(UTC) + timedelta(minutes=minutes, seconds=-30 if minutes < 0 else 30)).isoformat()


def waiting(call_id: str, card: SessionCard = CARD, **fields: object) -> WaitingLine:
    given = {"reply_id": "r", "tool": "Bash", "input": '{"command": "make lamp"}', "waits_for": "person"}
    call = PendingCall.model_validate({**given, "call_id": call_id, "asked_at": at(-3), **fields})
    return WaitingLine(card, call, card, card)


def shown(*calls: WaitingLine, width: int = 100) -> list[str]:
    return [line.plain for line in lines([line_of_call(each) for each in calls], width=width)]


@pytest.mark.proves("X4")
def test_late_calls_come_first_then_the_nearest_deadline_then_the_newest() -> None:
    calls = [
        waiting("old", asked_at=at(-90)),
        waiting("new", asked_at=at(-2)),
        waiting("tomorrow", asked_at=at(-1), expires_at=at(1_500)),
        waiting("soon", asked_at=at(-60), expires_at=at(20)),
        waiting("late", asked_at=at(-80), escalated_at=at(-5)),
    ]

    assert [each.call.call_id for each in most_urgent_first(calls)] == ["late", "soon", "tomorrow", "new", "old"]


def test_each_call_has_one_line_and_its_names_are_whole() -> None:
    long = waiting("call-2", NOBODYS, tool="Write", input='{"file_path": "' + "very/" * 40 + '"}')

    head, first, second = shown(waiting("call-1"), long)

    assert head == "WAITS  SESSION    USER  CALL    WHAT"
    assert first == "3 min  tide       ana   call-1  Bash make lamp"
    assert second.startswith("3 min  a\\x1b[2Jb        call-2  Write very/very/")
    assert (len(second), second[-1]) == (100, "…")


def test_a_deadline_has_a_column_where_a_call_has_one() -> None:
    _, due, late = shown(waiting("a", expires_at=at(150)), waiting("b", expires_at=at(-5), expired_at=at(-5)))

    assert due == "3 min  in 2 h 30 min  tide     ana   a     Bash make lamp"
    assert late == "3 min  OVERDUE        tide     ana   b     Bash make lamp"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"waits_for": "resolution"}, "outcome unknown: Bash make lamp"),
        ({"waits_for": "budget", "reason": "3 calls are missing"}, "more budget: 3 calls are missing"),
        ({"approvers": 2, "approved_by": ("eve",)}, "1 of 2 approvals: Bash make lamp"),
        ({"path": "lead › scribe › Bash"}, "lead › scribe › Bash make lamp"),
        ({"tool": "plan_exit", "input": '{"plan": "Dig.\\n\\nFill."}'}, "a plan: Dig. (+1 line)"),
    ],
)
def test_a_line_says_what_is_asked(fields: dict[str, Any], what: str) -> None:
    _, line = shown(waiting("c", **fields))

    assert line.endswith(f"  c     {what}")


def test_sessions_that_nobody_resumed_and_those_without_their_host_have_a_line_too() -> None:
    status = Status(
        session_id="tide", user_id="ana", agent="coder", model="", status="paused",
        paused_since=at(-9), paused_by="eve", paused_why="low water",
    )  # fmt: skip
    _, paused, parked = lines([line_of_stopped(CARD, status), line_of_parked(CARD, "host mole is away")], width=80)

    assert paused.plain == "9 min  tide     ana   paused by eve: low water"
    assert parked.plain == "-      tide     ana   parked: host mole is away"


def test_a_narrow_terminal_gets_two_lines_with_the_session_alone_on_the_first() -> None:
    assert shown(waiting("call-1", expires_at=at(150)), width=38) == [
        "tide",
        "  call-1, 3 min ago, of ana, in 2 h 30 min: Bash make lamp",
    ]


@pytest.mark.usefixtures("in_berlin")
def test_times_are_in_the_zone_of_the_readers_machine() -> None:
    winter, summer = "2026-01-02T23:30:00+00:00", "2026-07-02T12:00:05Z"
    sleeping = waiting("z", waits_for="event", wakes_at=winter, event="tide")

    assert render.when(winter) == "2026-01-03 00:30 CET"
    assert render.when(summer, seconds=True) == "2026-07-02 14:00:05 CEST"
    assert render.when("soon\x1b[2J") == "soon\\x1b[2J"
    assert line_of_call(sleeping).what.plain == "asleep until 2026-01-03 00:30 CET, or until the event 'tide'"
