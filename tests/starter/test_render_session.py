"""Lists and heads of sessions as people see them."""

from dataclasses import replace

import pytest
from rich.text import Text

from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    ErrorInfo,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.starter import render_session
from longhaul.starter.cli.commands.views import sessions
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.cards import SessionCard
from longhaul.workflows.contract import Status

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


def test_a_wide_list_says_when_a_session_was_started_and_what_it_has_cost() -> None:
    head = ["SESSION", "USER", "AGENT", "STATUS", "SINCE", "STARTED", "COST"]

    assert shown(list(render_session.cards([CARD], width=80)))[0] == head
    assert shown(list(render_session.cards([CARD], width=52)))[0] == head[:-1]
    costly = [replace(CARD, tokens=51_300, dollars=dollars) for dollars in (0.0, 0.001, 4.217)]
    assert [render_session.spent(row) for row in (CARD, *costly)] == ["-", "51,300 tokens", "below $0.01", "$4.22"]


def test_a_sessions_title_steers_no_terminal_and_stays_on_its_line() -> None:
    titled = replace(CARD, title="Mend \x1b[2J the\u202e lamp of the southern mole")

    assert render_session.titled(titled, width=30).plain == "  Mend \\x1b[2J the\\u202e lamp…"


def test_a_narrow_list_leaves_out_when_and_keeps_the_rest_whole() -> None:
    assert shown(list(render_session.cards([CARD], width=40))) == [
        ["SESSION", "USER", "AGENT", "STATUS", "SINCE"],
        ["mend", "ana", "coder", "waiting", "-"],
    ]


def test_where_no_column_has_room_each_session_has_two_lines_and_no_head() -> None:
    rows = [replace(CARD, session_id="mend-the-lamp-of-the-southern-mole"), replace(CARD, user_id=None)]

    assert [row.plain for row in render_session.cards(rows, width=38)] == [
        "",
        "mend-the-lamp-of-the-southern-mole\n  waiting, coder, of ana",
        "mend\n  waiting, coder",
    ]


def test_the_head_says_why_the_last_reply_failed() -> None:
    head = render_session.head(status(last_error=ErrorInfo(type="auth", message="the key\nis wrong")))

    assert head.plain.splitlines()[-1] == "the last reply failed: the key is wrong"


def test_the_head_says_the_priority_that_somebody_has_set() -> None:
    assert ", priority 2\n" in render_session.head(status(priority=2)).plain
    assert "priority" not in render_session.head(status()).plain


def test_one_of_a_kind_is_not_said_in_the_plural() -> None:
    assert "1 model call\n" in render_session.head(status(model_calls=1, queued=1)).plain
    assert "queued after it: 1 request" in render_session.head(status(queued=1)).plain


async def test_an_unknown_status_is_no_empty_list() -> None:
    with pytest.raises(Misuse, match="no status 'sleeping'; there are: idle, working, waiting"):
        await sessions(Screen(), status="sleeping")


def test_the_head_says_how_full_the_context_is_and_how_often_it_was_compressed() -> None:
    head = render_session.head(status(context_tokens=51_300, context_length=200_000, compressions=2))

    assert "context 51,300 of 200,000 tokens (25 %), compressed 2 times" in head.plain.splitlines()


def test_a_window_that_nobody_knows_is_not_spoken_of() -> None:
    assert "context" not in render_session.head(status(context_tokens=51_300)).plain


def test_a_session_that_is_held_says_why_and_how_it_goes_on() -> None:
    held = status(
        status="waiting", user_id="o'neill", quarantine="later steps are\nunknown", note="restored from a checkpoint"
    )

    lines = render_session.head(held).plain.splitlines()

    assert "quarantined: later steps are unknown" in lines
    assert """  to continue: longhaul resume mend --user 'o'"'"'neill' --agent coder""" in lines
    assert "note: restored from a checkpoint" in lines


def test_what_could_not_be_done_for_a_session_is_said() -> None:
    troubled = status(saved_seq=41, checkpoint_error="the store does not answer", compression_error="no room was made")

    lines = render_session.head(troubled).plain.splitlines()

    assert "not stored since entry 41: the store does not answer" in lines
    assert "the last compression failed: no room was made" in lines


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            '{"todos": [{"content": "Look", "status": "completed"}, {"content": "Do\\nit", "status": "in_progress"}]}',
            ["✓ todo_write → 2 tasks", "  [x] Look", "  [>] Do it"],
        ),
        ('{"todos": [3, {"content": null}], "more": 1}', ["✓ todo_write → 2 tasks", "  [?] None"]),
        ('{"todos": "all"}', ["✓ todo_write → 2 tasks"]),
        ("[]", ["✓ todo_write → 2 tasks"]),
        ("{", ["✓ todo_write → 2 tasks"]),
    ],
)
def test_a_list_of_tasks_is_a_list_when_it_is_shown_again(arguments: str, told: list[str]) -> None:
    call = ToolCallBlock(id="c1", name="todo_write", input=arguments)
    result = ToolResultBlock(id="c1", name="todo_write", output="2 tasks", state=ToolResultState.SUCCESS)
    lines = render_session.transcript([AssistantMsg("coder", [call, result])], width=80)

    assert "\n".join(line.plain for line in lines).splitlines() == told
