"""Stored sessions of older versions, and of newer ones."""

import pytest

from longhaul.agent.life.migrations import CURRENT, NewerRecord, NoRecord, upgraded


def test_a_bare_state_becomes_a_record() -> None:
    state = {"session_id": "s-1", "user_id": None, "agent": "reviewer", "summary": "so far"}

    assert upgraded(state) == {
        "version": 1,
        "session_id": "s-1",
        "user_id": None,
        "agent_id": "reviewer",
        "state": state,
    }


def test_a_current_record_stays_as_it_is() -> None:
    record = {"version": CURRENT, "session_id": "s-1", "colour": "green"}

    assert upgraded(record) == {"version": CURRENT, "session_id": "s-1", "colour": "green"}


def test_a_newer_record_is_never_guessed_at() -> None:
    with pytest.raises(NewerRecord, match=r"version: 2 was written by a newer Longhaul; this one reads up to 1\. Run"):
        upgraded({"version": 2, "session_id": "s-1"})


@pytest.mark.parametrize("stored", [None, [], "x", 3, {"version": "1"}, {"version": True}, {"version": -1}])
def test_what_is_no_record_is_said_to_be_none(stored: object) -> None:
    with pytest.raises(NoRecord):
        upgraded(stored)
