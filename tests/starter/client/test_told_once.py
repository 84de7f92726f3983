"""Events on their way to a reader: what was told live is told once."""

from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.views.event_types import AgentEvent, EventType, Live
from longhaul.starter.client.reading.live_stream import LOST, RESTARTED, WITHDRAWN, ToldOnce

KINDS: tuple[EventType, ...] = (
    "TEXT_BLOCK_DELTA",
    "THINKING_BLOCK_DELTA",
    "TOOL_CALL_DELTA",
    "TOOL_RESULT_TEXT_DELTA",
)


def live(kind: EventType, delta: str = "", block: str = "b0", call: str = "model:0", **more: Any) -> AgentEvent:
    return AgentEvent(type=kind, reply_id="r", delta=delta, block_id=block, live=Live(call=call), **more)


def recorded(kind: EventType, delta: str = "", **more: Any) -> AgentEvent:
    return AgentEvent(type=kind, reply_id="r", seq=7, delta=delta, block_id="7.0", **more)


def told(*events: AgentEvent) -> list[str]:
    """Deltas, and the names of CUSTOM events."""
    once = ToldOnce()
    return [each.name or each.delta for event in events for each in once.of(event) if each.name or each.delta]


@pytest.mark.parametrize("kind", KINDS)
def test_of_each_kind_of_block_the_record_tells_the_rest(kind: EventType) -> None:
    call = {"tool_call_id": "t"} if "TOOL" in kind else {}

    assert told(live(kind, "For", **call), recorded(kind, "Forty", **call)) == ["For", "ty"]
    assert told(live(kind, "For", **call), live(kind, "ty", **call), recorded(kind, "Forty", **call)) == ["For", "ty"]
    assert told(recorded(kind, "Forty", **call)) == ["Forty"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_recorded_otherwise_is_withdrawn_and_told_whole(kind: EventType) -> None:
    assert told(live(kind, "Fifty"), recorded(kind, "Forty")) == ["Fifty", WITHDRAWN, "Forty"]


def test_behind_a_gap_nothing_is_told_live() -> None:
    gap = AgentEvent(type="CUSTOM", name=LOST, reply_id="r", live=Live(call="model:0"))

    assert told(
        live("TEXT_BLOCK_DELTA", "For"), gap, live("TEXT_BLOCK_DELTA", "wo"), recorded("TEXT_BLOCK_DELTA", "Forty-two")
    ) == ["For", LOST, "ty-two"]


def test_an_attempt_that_is_made_again_is_told_from_its_start() -> None:
    again = AgentEvent(type="CUSTOM", name=RESTARTED, reply_id="r", live=Live(call="model:0", attempt=2))
    gap = AgentEvent(type="CUSTOM", name=LOST, reply_id="r", live=Live(call="model:0"))

    assert told(
        live("TEXT_BLOCK_DELTA", "Fif"),
        gap,
        again,
        live("TEXT_BLOCK_DELTA", "Fo", block="b1"),
        recorded("TEXT_BLOCK_DELTA", "Forty"),
    ) == ["Fif", LOST, RESTARTED, "Fo", "rty"]


def test_a_block_that_is_blank_is_not_told_before_it_says_something() -> None:
    assert told(
        live("TEXT_BLOCK_DELTA", "\n"),
        live("TEXT_BLOCK_DELTA", "\n", block="b1"),
        live("TEXT_BLOCK_DELTA", "Forty", block="b1"),
        recorded("TEXT_BLOCK_DELTA", "\nForty"),
        recorded("MODEL_CALL_END"),
    ) == ["\nForty"]


@pytest.mark.parametrize("end", ["MODEL_CALL_END", "REPLY_END"])
def test_what_is_not_recorded_at_all_is_withdrawn_at_the_end(end: EventType) -> None:
    assert told(
        live("TEXT_BLOCK_DELTA", "Fif"),
        recorded(end, finished_reason=FinishedReason.INTERRUPTED),
        recorded("REPLY_END"),
    ) == ["Fif", WITHDRAWN]


def test_each_result_takes_the_output_of_its_own_call() -> None:
    one, two = {"tool_call_id": "one", "call": "tool:one"}, {"tool_call_id": "two", "call": "tool:two"}

    assert told(
        live("TOOL_RESULT_TEXT_DELTA", "a", **one),
        live("TOOL_RESULT_TEXT_DELTA", "x", **two),
        recorded("TOOL_RESULT_TEXT_DELTA", "xy", tool_call_id="two"),
        recorded("TOOL_RESULT_TEXT_DELTA", "ab", tool_call_id="one"),
    ) == ["a", "x", "y", "b"]
