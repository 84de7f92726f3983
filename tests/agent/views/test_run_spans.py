"""A session as spans of time: what took how long, who was waited for, and what lasts."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    FinishedReason,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from longhaul.agent.values.conversation.tools import CallRun, Effect, with_ran
from longhaul.agent.values.subagents import Child
from longhaul.agent.views.run_spans import Span, run_spans

SECOND = 1_000
NOON = 1_780_000_000_000


def at(second: int, entry: e.AnyEntry) -> e.AnyEntry:
    return entry.model_copy(update={"seq": second + 1, "at": NOON + second * SECOND})


def said(*calls: tuple[str, str]) -> e.ModelSaid:
    blocks = [ToolCallBlock(id=call_id, name=tool, input='{"command": "make tea"}') for call_id, tool in calls]
    message = AssistantMsg("lamp", blocks)
    message = message.model_copy(update={"usage": Usage(input_tokens=700, output_tokens=9, cache_input_tokens=500)})
    return e.ModelSaid(message=message, model="gull-4")


def returned(call_id: str, seconds: float | None, effect: Effect = Effect.ONCE) -> e.ToolReturned:
    result = ToolResultBlock(id=call_id, name="Bash", output="done", state="success")
    return e.ToolReturned(
        result=result if seconds is None else with_ran(result, CallRun(effect=effect, seconds=seconds))
    )


def told(spans: list[Span]) -> list[tuple[str, int, int | None, str]]:
    """Kind, start and end in seconds after noon, and what is said."""
    return [
        (one.kind, (one.start - NOON) // SECOND, None if one.end is None else (one.end - NOON) // SECOND, one.says)
        for one in spans
    ]


@pytest.mark.proves("X15")
def test_calls_take_as_long_as_they_ran_and_a_wait_ends_with_its_decision() -> None:
    asks = e.CallRuling(call_id="b-1", behavior="ask", reason="no rule allows it")
    given = e.DecisionGiven(call_id="b-1", allow=True)
    spans = run_spans(
        [
            at(0, e.ReplyStarted(reply_id="r")),
            at(4, said(("b-1", "Bash"))),
            at(5, e.CallsJudged(rulings=(asks,))),
            at(3_605, e.HumanDecided(decisions=(given,), approver="ana")),
            at(3_615, returned("b-1", 7.0)),
            at(3_618, said()),
            at(3_619, e.ReplyFinished(reply_id="r", reason=FinishedReason.COMPLETED)),
        ]
    )

    assert told(spans) == [
        ("model", 0, 4, ""),
        ("person", 5, 3_605, "allowed by ana"),
        ("tool", 3_608, 3_615, "make tea"),
        ("model", 3_615, 3_618, ""),
        ("reply", 0, 3_619, "completed"),
    ]
    assert [(one.input_tokens, one.cached_tokens, one.output_tokens) for one in spans if one.kind == "model"] == [
        (700, 500, 9)
    ] * 2
    assert [one.effect for one in spans if one.kind == "tool"] == [Effect.ONCE]


def test_what_lasts_has_no_end_and_a_sub_agent_names_its_session() -> None:
    child = Child(call_id="t-1", agent="gull", session_id="lead.t-1")
    spans = run_spans(
        [
            at(0, e.ReplyStarted(reply_id="r")),
            at(1, e.ChildStarted(child=child)),
            at(2, e.SleepStarted(call_id="s-1", until=NOON, event="tide")),
            at(3, e.PauseStarted(by="ana", why="fog")),
            at(9, e.PauseEnded(by="ben")),
            at(11, e.WorkerLeft(worker="w-2", doing="run_tool")),
        ]
    )

    assert told(spans) == [
        ("pause", 3, 9, "fog"),
        ("shutdown", 11, 11, "run_tool"),
        ("reply", 0, None, ""),
        ("sub-agent", 1, None, ""),
        ("sleep", 2, None, "tide"),
    ]
    assert [(one.name, one.session_id) for one in spans if one.kind == "sub-agent"] == [("gull", "lead.t-1")]


def test_a_picture_from_a_later_entry_on_knows_nothing_of_what_began_before() -> None:
    assert told(run_spans([at(8, e.PauseEnded(by="ben")), at(9, returned("b-1", None))])) == [("tool", 9, 9, "")]
