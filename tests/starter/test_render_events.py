"""What is said of things that happen around a reply, to whoever takes part and to whoever looks on."""

from typing import Any

import pytest

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.render import decided, line_of, stillness, waiting_calls_text


def custom(name: str, **value: Any) -> AgentEvent:
    return AgentEvent(type="CUSTOM", name=name, seq=1, value=value)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (custom("call_unsettled", reason="the file has changed"), "! analyzed again: the file has changed"),
        (custom("stuck_warning", pattern="the same call"), "! repeats itself: the same call"),
        (custom("broken_off", stop="paused"), "! the answer broke off because the provider paused it"),
        (
            custom("unknown_stop", stop_reason="novel"),
            "! the model stopped for an unknown reason: novel",
        ),
        (custom("risk_warning", reason="it writes"), "! runs with a risk: it writes"),
        (custom("outcome_probed", finding="happened", detail=""), "! looked: it happened"),
        (
            custom("outcome_resolved", by="bo", happened=False, output="", reason=""),
            "! resolved by bo: it did not happen",
        ),
        (custom("outcome_resolved", by="", happened=True), "! resolved by somebody: it happened"),
        (
            custom("context_compressed", epoch=2),
            "! the context was compressed",
        ),
        (
            custom(
                "repaired", left_out=["[image left out: it is empty]"], thoughts=2, takes_no_images="m:1", refused=""
            ),
            "! [image left out: it is empty]; 2 thinking blocks were left out; m:1 takes no images",
        ),
        (
            custom("repaired", left_out=[], thoughts=0, takes_no_images="", refused=""),
            "! an image is sent with its actual type",
        ),
        (
            custom("request_adjusted", adjusted=["The seed was left out.", "The effort was left out."]),
            "! The seed was left out. The effort was left out.",
        ),
        (custom("state_replaced", by="ana", why="moved"), "! the state was replaced by ana: moved"),
        (
            custom("plan_changed", plan={"name": "Raft"}, over={"name": "Boat", "state": "abandoned"}),
            "! plan Boat is over: abandoned; plan: Raft",
        ),
        (custom("plan_mode_changed", active=True, by=""), "! plan mode: the agent changes nothing"),
        (
            custom("provider_unavailable", reason="Slow down", attempt=3, next_try="2026-11-21T10:00:50Z", until="…"),
            "! waits for the model's provider (try 3 failed), next try at 2026-11-21 10:00:50 UTC: Slow down",
        ),
        (custom("worker_lacks", reason="no tool 'x' (w)"), "! waits for a worker that can continue: no tool 'x' (w)"),
        (
            custom("worker_left", worker="7@pier", doing="Bash"),
            "! worker 7@pier was shut down; another worker continues",
        ),
        (custom("escalated", to="the team"), "! escalated to the team: nobody has answered"),
        (custom("expired", to=""), "! a call expired without an answer"),
    ],
)
def test_it_is_a_line(event: AgentEvent, said: str) -> None:
    line = line_of(event)

    assert line is not None
    assert line.plain == said


@pytest.mark.parametrize(
    "event",
    [
        custom("outcome_probed", finding="unknown", detail=""),
        custom("restored", note="", quarantine=""),
        custom("tasks_changed", tasks=[]),
        custom("of a later release", wind="north"),
        AgentEvent(type="CUSTOM", name="risk_warning", value="no mapping"),
    ],
)
def test_what_goes_without_saying_is_not_said(event: AgentEvent) -> None:
    assert line_of(event) is None
    assert stillness(event) is None


def test_who_stops_a_session_and_why_is_told_to_who_looks_on() -> None:
    lines = [stillness(custom("paused", by="ana", why="the tide")), stillness(custom("resumed", by=""))]

    assert [line.plain for line in lines if line] == ["paused by ana: the tide", "continues, resumed"]
    assert line_of(custom("paused", by="ana", why="")) is None


def test_nothing_in_it_can_steer_the_terminal() -> None:
    hostile = "a\x1b]0;b\n\u202ec"
    decisions = [{"call_id": "edit-7", "allow": False, "reason": hostile}]
    event = AgentEvent(type="USER_CONFIRM_RESULT", value={"decisions": decisions, "approver": hostile})

    lines = [
        *decided(event, lambda call_id: f"{call_id}{hostile}"),
        stillness(custom("paused", by=hostile, why=hostile)),
    ]

    for line in lines:
        assert line is not None
        assert not {"\x1b", "\n", "\u202e"} & set(line.plain)


def test_who_decided_what_and_who_is_waited_for() -> None:
    decisions: list[dict[str, Any]] = [
        {"call_id": "edit-7", "allow": True},
        {"call_id": "bash-8", "allow": False, "reason": "not today"},
    ]
    event = AgentEvent(type="USER_CONFIRM_RESULT", value={"decisions": decisions, "approver": "ana"})
    waits = AgentEvent.model_validate(
        {
            "type": "REQUIRE_EXTERNAL_EXECUTION",
            "tool_calls": [{"id": "p", "name": "price_of", "input": '{"a": "lamp"}'}],
        }
    )

    told = [line.plain for line in decided(event, lambda call_id: call_id.partition("-")[0])]

    assert told == ["ana allowed edit", "ana denied bash: not today"]
    assert waiting_calls_text(waits)[0].plain.startswith("waits for an external system: price_of")


def test_tasks_are_told_as_a_list() -> None:
    tasks = [("completed", "Look"), ("in_progress", "Mend\x1b it"), ("pending", "Rest")]

    told = line_of(custom("tasks_changed", tasks=[{"state": state, "subject": subject} for state, subject in tasks]))

    assert told is not None
    assert told.plain == "  [x] Look\n  [>] Mend\\x1b it\n  [ ] Rest"
