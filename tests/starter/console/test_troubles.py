"""Boxes at the top of a session's page: why it does not simply go on, and the button that helps."""

from types import SimpleNamespace
from typing import Any

import pytest

from longhaul.starter.console.session_page import Trouble, troubles
from longhaul.workflows.contract import PendingCall, Status


def told(*calls: dict[str, str], admin: bool = True, **fields: Any) -> list[Trouble]:
    visit: Any = SimpleNamespace(
        home="/console",
        here=lambda page, **query: f"/console/s/lamp/night/{page}?{query.get('id', '')}",
        may=lambda scope: admin and scope == "admin",
    )
    given = {"session_id": "night", "user_id": None, "agent": "lamp", "model": "m", "status": "waiting"}
    waiting = [
        PendingCall.model_validate({"reply_id": "r", "call_id": "c-1", "tool": "engrave", "input": "{}"} | one)
        for one in calls
    ]
    return troubles(visit, Status.model_validate(given | fields), waiting)


def test_a_session_that_goes_on_has_no_box() -> None:
    assert told({"waits_for": "person"}) == []


@pytest.mark.parametrize(
    ("fields", "word", "says", "button", "leads"),
    [
        (
            {"quarantine": "the store had\x1b[2J nothing of it"},
            "quarantined",
            (
                "Its earlier state is uncertain: the store had⟨U+001B⟩[2J nothing of it. "
                "Look at its transcript; if it is right, resume."
            ),
            "Resume",
            "resume",
        ),
        (
            {"checkpoint_error": "the disk is full", "saved_seq": 41},
            "damaged",
            "Its store has nothing newer than entry 41: the disk is full.",
            "Export its state",
            "/console/s/lamp/night/state?",
        ),
        (
            {"host_unavailable": "the host quay-3 is unavailable"},
            "unavailable",
            "The host quay-3 is unavailable. It goes on by itself.",
            "See the workers",
            "/console/workers",
        ),
        (
            {"shutdown_interrupted": True},
            "unavailable",
            "Its worker was shut down, and no other worker has taken it yet. It goes on by itself.",
            "See the workers",
            "/console/workers",
        ),
    ],
)
def test_a_box_says_why_and_offers_what_helps(
    fields: dict[str, Any], word: str, says: str, button: str, leads: str
) -> None:
    (box,) = told(**fields)

    assert (box.word, box.says, box.button, box.form or box.link) == (word, says, button, leads)


def test_a_call_of_unknown_outcome_and_an_overdue_call_have_a_box_that_leads_to_them() -> None:
    unknown, overdue = told(
        {"waits_for": "resolution", "call_id": "c-7"},
        {"waits_for": "person", "call_id": "c-8", "expired_at": "2026-11-23T10:00:00Z"},
    )

    assert (unknown.word, unknown.link) == ("unknown outcome", "/console/s/lamp/night/call?c-7")
    assert unknown.says == "Nobody knows whether engrave ran. Check the system that it acts on."
    assert (overdue.word, overdue.link) == ("overdue", "/console/s/lamp/night/call?c-8")
    assert overdue.says == "Nobody answered engrave in time. It still waits."


@pytest.mark.parametrize(
    ("stepping", "ends"), [(False, "Nothing new starts until it is resumed."), (True, "It takes one step now.")]
)
def test_a_paused_session_says_who_paused_it_and_why(stepping: bool, ends: str) -> None:
    (box,) = told(
        paused_since="2026-11-23T10:00:00+00:00", paused_by="bob", paused_why="the tide is low", stepping=stepping
    )

    assert (box.word, box.button, box.form) == ("paused", "Resume", "resume")
    assert box.says.startswith("By bob, ")
    assert box.says.endswith(f" ago: the tide is low. {ends}")


def test_the_worst_stands_first_and_only_who_sees_workers_is_sent_to_them() -> None:
    found = told(
        {"waits_for": "resolution"},
        admin=False,
        quarantine="lost",
        paused_since="2026-11-23T10:00:00+00:00",
        lacking="no worker has the tool engrave",
    )

    assert [box.word for box in found] == ["quarantined", "unknown outcome", "paused", "unavailable"]
    assert (found[-1].button, found[-1].link) == ("", "")
