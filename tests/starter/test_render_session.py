"""Lists and heads of sessions as people see them."""

import pytest
from rich.text import Text

from agent.messages import ErrorInfo
from starter import render_session
from starter.cli.leaving import Misuse
from starter.cli.reading import sessions
from starter.cli.screen import Screen
from starter.client import SessionCard
from workflows.contract import Status

CARD = SessionCard("mend", "ana", "coder", "waiting", "", "2026-01-02T03:04:05+00:00", "longhaul/coder/ana/mend")


def status(**fields: object) -> Status:
    given = {
        "session_id": "mend",
        "user_id": None,
        "agent": "coder",
        "model": "scripted:s",
        "status": "idle",
        "mode": "default",
    }
    return Status.model_validate(given | fields)


def shown(lines: list[Text]) -> list[list[str]]:
    return [line.plain.split() for line in lines]


def test_a_wide_list_says_when_a_session_was_started() -> None:
    assert shown(list(render_session.cards([CARD], width=80)))[0] == [
        "SESSION", "USER", "AGENT", "STATUS", "SINCE", "STARTED",
    ]  # fmt: skip


def test_a_narrow_list_leaves_out_when_and_keeps_the_rest_whole() -> None:
    assert shown(list(render_session.cards([CARD], width=40))) == [
        ["SESSION", "USER", "AGENT", "STATUS", "SINCE"],
        ["mend", "ana", "coder", "waiting", "-"],
    ]


def test_the_head_says_why_the_last_reply_failed() -> None:
    head = render_session.head(status(last_error=ErrorInfo(type="auth", message="the key\nis wrong")))

    assert head.plain.splitlines()[-1] == "the last reply failed: the key is wrong"


def test_one_of_a_kind_is_not_said_in_the_plural() -> None:
    assert "1 model call\n" in render_session.head(status(model_calls=1, queued=1)).plain
    assert "queued behind it: 1 request" in render_session.head(status(queued=1)).plain


async def test_an_unknown_status_is_no_empty_list() -> None:
    with pytest.raises(Misuse, match="no status 'sleeping'; there are: idle, working, waiting"):
        await sessions(Screen(), None, "sleeping")
