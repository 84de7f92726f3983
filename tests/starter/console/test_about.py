"""Amounts and steps as the console words them."""

from dataclasses import astuple
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlencode

from longhaul.agent.values.budget import ModelSpent
from longhaul.agent.values.conversation.messages import ToolCallBlock, Usage
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.trajectory import TrajectoryEvent
from longhaul.starter.console.about import amounts, event_rows, step_of
from longhaul.starter.console.console_request import Visit
from longhaul.workflows.contract import Status


def status(**values: Any) -> Status:
    return Status(session_id="s", user_id=None, agent="lamp", model="m", status="idle", **values)


def test_amounts_of_several_models_are_added_up() -> None:
    large = ModelSpent(
        calls=2, usage=Usage(input_tokens=1000, output_tokens=20, cache_input_tokens=600), nanos=1_500_000
    )
    small = ModelSpent(calls=1, usage=Usage(input_tokens=30, output_tokens=4, reasoning_tokens=3))
    told = amounts(status(by_model={"large": large, "<b>\u202e": small}, input_tokens=1030, output_tokens=24))

    assert [astuple(one) for one in told] == [
        ("<b>⟨U+202E⟩", "1", "30", "-", "4", "3", "-"),
        ("large", "2", "1,000", "600", "20", "-", "$0.0015"),
        ("together", "3", "1,030", "600", "24", "3", "$0.0015"),
    ]


def test_a_condensation_leads_to_what_left_the_context() -> None:
    visit = cast(
        Visit, SimpleNamespace(here=lambda page="", **query: f"{page}?{urlencode(query)}", may=lambda scope: True)
    )
    event = TrajectoryEvent(
        kind="condensation",
        seq=9,
        at="",
        source="environment",
        text="A <b>summary</b>\u202e\n\n\tof two",
        forgotten=(4, 5),
        by="summary",
    )
    step = step_of(visit, event)

    assert (step.what, step.link) == ("made the context shorter by 2 messages: summary", "?from=4")
    assert step.copy == "change?entry=9"
    assert step.text == "A <b>summary</b>⟨U+202E⟩ of two"


def test_events_are_told_in_the_words_of_the_terminal_or_by_their_type() -> None:
    call = ToolCallBlock(id="c", name="Bash", input='{"command": "ls"}')
    allowed = {"approver": "ana\u202e", "decisions": [{"call_id": "c", "allow": True}]}
    found = [
        AgentEvent(type="TOOL_CALL_START", seq=7, created_at="2026-11-24T10:00:00Z", tool_call_id="c",
                   tool_call_name="Bash"),
        AgentEvent(type="TEXT_BLOCK_DELTA", seq=8, delta="<b>hello\u202e</b>\n" + "x" * 10_000),
        AgentEvent(type="REQUIRE_USER_CONFIRM", seq=9, tool_calls=(call,)),
        AgentEvent(type="USER_CONFIRM_RESULT", seq=10, value=allowed),
        AgentEvent(type="TOOL_RESULT_START", seq=11, tool_call_id="c"),
        AgentEvent(type="CUSTOM", seq=12, name="paused", value={"by": "ana", "why": "lunch"}),
        AgentEvent(type="CUSTOM", seq=13, name="worker_left", value={"worker": "7@pier"}),
        AgentEvent(type="CUSTOM", seq=14, name="not_known_here", value=5),
    ]  # fmt: skip
    rows = [astuple(row) for row in event_rows(found)]
    said = rows.pop(1)

    assert rows == [
        (7, "2026-11-24T10:00:00Z", "tool call start", "Bash"),
        (9, "", "require user confirm", "waits for a person: Bash ls"),
        (10, "", "user confirm result", "ana\\u202e allowed Bash"),
        (11, "", "tool result start", "Bash"),
        (12, "", "paused", "paused by ana: lunch"),
        (13, "", "worker left", "! worker 7@pier was shut down; another worker continues"),
        (14, "", "not known here", ""),
    ]
    assert said[3].startswith("<b>hello⟨U+202E⟩</b> xxx")
    assert len(said[3]) < 300
