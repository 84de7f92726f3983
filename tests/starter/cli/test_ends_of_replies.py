"""Every way in which a reply ends stands in one table, with the exit code that a script gets."""

import re
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, Msg
from longhaul.agent.views.transcript import final_text
from longhaul.starter.cli.exit_codes import Exit, Outcome, outcome_of

PAGE = (Path(__file__).parents[3] / "docs" / "people" / "events.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `?(\w+)`? \|[^|]+\| (\d+) \|$", PAGE.partition("## How a reply ends")[2], re.MULTILINE))


def test_every_end_stands_in_the_table() -> None:
    assert set(ROWS) == {*FinishedReason, "none"}
    assert int(ROWS["none"]) == Outcome("waiting", None).code == Exit.PARKED


@pytest.mark.parametrize("reason", FinishedReason)
def test_each_end_has_the_exit_code_of_the_table(reason: FinishedReason) -> None:
    message = Msg(name="mason", role="assistant", content=(), finished_reason=reason)

    assert outcome_of(message).code == int(ROWS[reason])


def test_a_reply_that_a_denial_ended_says_so() -> None:
    message = Msg(name="mason", role="assistant", content=(), finished_reason=FinishedReason.REJECTED)

    assert final_text(message) == "(stopped: a call was denied)"
