"""Deadlines of calls that wait: what may be set, what is due when, and what a late answer comes to."""

from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.agent import entries as e
from longhaul.agent.decisions.deadline_steps import next_due, reached
from longhaul.agent.operations.result_operations import unresolved_outcomes
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.steps import Idle, Park, Think
from longhaul.agent.values.deadlines import Deadline, Deadlines, RiskFound, deadline_of
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.views.events import EventReducer
from tests.agent.play import NOON, RULES, TOOLS, Play, calls, text

HOUR = 3_600_000
PATIENT = Deadlines(remind_after=3600, escalate_after=7200, escalate_to="the foreman", expire_after=86_400)


def waiting(*pairs: str, deadline: Deadlines | None = PATIENT, **react: Any) -> Play:
    """A session whose model has made these calls, run until somebody is waited for."""
    spec = AgentSpec.model_validate(
        {
            "name": "mason",
            "model": "scripted:wall",
            "permission": PermissionContext(rules=RULES, deadline=deadline),
            "react_config": react,
        }
    )
    play = Play([calls(*pairs), text("Done.")], spec=spec)
    play.say("Go")
    play.run()
    return play


def asked_at(play: Play, call_id: str) -> int:
    assert play.journal.reply is not None
    return play.journal.reply.calls[call_id].asked_at


def pass_time(play: Play, milliseconds: int) -> list[tuple[str, str]]:
    """Let the clock reach that time after the first call began to wait; what was due, by call and stage."""
    play.now = NOON + milliseconds
    due = reached(play.journal, play.now)
    if due:
        play.write(e.DeadlineReached(due=due))
    return [(each.call_id, each.stage) for each in due]


@pytest.mark.parametrize(
    ("written", "seconds"), [(90, 90), (0.25, 0.25), ("90s", 90), ("30m", 1_800), ("1.5 h", 5_400), ("2d", 172_800)]
)
def test_a_time_is_seconds_or_has_a_unit(written: object, seconds: float) -> None:
    assert Deadline.model_validate({"remind_after": written}).remind_after == seconds


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"remind_after": "soon"}, "write a number of seconds, or a number with its unit"),
        ({"remind_after": 0}, "greater than 0"),
        ({"expire_after": "9999d"}, "less than or equal to 315360000"),
        ({"escalate_after": "1h"}, "escalate_after and escalate_to belong together"),
        ({"escalate_to": "bo"}, "escalate_after and escalate_to belong together"),
        ({"remind_after": "2h", "expire_after": "1h"}, "have to come in this order"),
        ({"on_expiry": "park"}, "'park' says what happens after expire_after"),
        ({"on_expiry": "allow", "expire_after": 1}, "Input should be 'deny' or 'park'"),
        ({"remind_afer": 60}, "Extra inputs are not permitted"),
        ({"courier": {"expire_afer": 60}}, "Extra inputs are not permitted"),
        ({"by_risk": {"grave": {"expire_after": 60}}}, "Input should be 'low', 'medium', 'high' or 'unknown'"),
        ({"by_risk": {"high": {"expire_afer": 60}}}, "Extra inputs are not permitted"),
    ],
)
def test_what_can_not_be_meant_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        AgentSpec.model_validate({"permission": {"deadline": given}})


def test_settings_come_back_from_their_own_json() -> None:
    written = {"remind_after": "1h", "courier": {"expire_after": "2d", "on_expiry": "park"}}
    spec = AgentSpec.model_validate({"permission": {"deadline": written}})

    assert spec.permission.deadline is not None
    assert spec.permission.deadline.tools == {"courier": Deadline(expire_after=172_800, on_expiry="park")}
    assert AgentSpec.model_validate_json(spec.model_dump_json()) == spec


def test_a_tools_own_table_wins_over_what_the_tool_brings_and_that_over_the_default() -> None:
    own, named = Deadline(expire_after=2), Deadline(expire_after=3)
    agent = Deadlines(expire_after=1, tools={"Order": named})

    assert deadline_of("Order", own, agent) == named
    assert deadline_of("Paint", own, agent) == own
    assert deadline_of("Paint", None, agent) == Deadline(expire_after=1)
    assert deadline_of("Paint", None, None) is None
    assert deadline_of("Order", own, Deadlines(tools={"Order": Deadline()})) is None, "an empty table means never"


BY_RISK = {
    "expire_after": "2d",
    "Order": {"expire_after": "5d"},
    "by_risk": {"high": {"expire_after": "15m"}, "low": {}},
}


@pytest.mark.parametrize(
    ("tool", "risk", "seconds"),
    [
        ("Paint", None, 172_800),
        ("Paint", "medium", 172_800),
        ("Paint", "high", 900),
        ("Order", "high", 900),
        ("Order", "medium", 432_000),
        ("Paint", "unknown", 900),
        ("Paint", "low", None),
    ],
)
def test_a_deadline_may_follow_from_the_risk(tool: str, risk: RiskFound | None, seconds: float | None) -> None:
    found = deadline_of(tool, None, Deadlines.model_validate(BY_RISK), risk)

    assert (found.expire_after if found else None) == seconds


def test_what_nobody_could_tell_may_have_a_deadline_of_its_own() -> None:
    given = Deadlines.model_validate({"by_risk": {"high": {"expire_after": 9}, "unknown": {"expire_after": 3}}})

    assert deadline_of("Paint", None, given, "unknown") == Deadline(expire_after=3)


def found_at(risk: str, call: str = "p Paint", *, analyzers: tuple[str, ...] = ("rules",)) -> Deadline | None:
    """The deadline of a call that waits and was found to be of that risk."""
    permission = PermissionContext(rules=RULES, deadline=Deadlines.model_validate(BY_RISK), analyzers=analyzers)
    spec = AgentSpec(name="mason", model="scripted:wall", permission=permission)
    analysis = {call[0]: [CallAnalysis.model_validate({"risk": risk})]}
    play = Play([calls(call), text("Done.")], spec=spec, analysis=analysis)
    play.say("Go")
    play.run()
    assert play.journal.reply is not None
    (waiting,) = play.journal.reply.waiting()
    if waiting.deadline is not None and waiting.deadline.expire_after is not None:
        assert next_due(play.journal) == waiting.asked_at + round(waiting.deadline.expire_after * 1000)
    return waiting.deadline


@pytest.mark.parametrize(("risk", "expected"), [("high", 900), ("medium", 172_800), ("", 900)])
def test_a_call_that_a_person_decides_on_waits_as_long_as_its_risk_allows(risk: str, expected: float) -> None:
    assert found_at(risk) == Deadline(expire_after=expected)


def test_where_nobody_looks_for_risks_none_counts() -> None:
    assert found_at("", analyzers=()) == Deadline(expire_after=172_800)


def test_what_runs_outside_waits_as_its_tool_says_however_risky_it_was() -> None:
    assert found_at("low", "o Order") == Deadline(expire_after=432_000)


def test_without_a_deadline_nothing_is_ever_due() -> None:
    play = waiting("p Paint", "o Order", deadline=None)

    assert next_due(play.journal) is None
    assert pass_time(play, 1_000_000 * HOUR) == []


def test_times_count_from_the_recorded_moment() -> None:
    play = waiting("p Paint")
    began = asked_at(play, "p")

    assert next_due(play.journal) == began + HOUR
    assert reached(play.journal, began + HOUR - 1) == ()
    assert [due.due_at for due in reached(play.journal, began + HOUR + 5_000)] == [began + HOUR]


@pytest.mark.proves("F4", "S11")
def test_a_call_is_reminded_of_handed_up_and_denied() -> None:
    play = waiting("p Paint")

    assert pass_time(play, HOUR + 100) == [("p", "remind")]
    assert pass_time(play, HOUR + 200) == []
    assert pass_time(play, 2 * HOUR + 100) == [("p", "escalate")]
    assert play.run() == Park("person")
    assert pass_time(play, 24 * HOUR + 100) == [("p", "expire")]
    assert next_due(play.journal) is None
    assert play.run() == Idle()
    ((_, state, told),) = play.results()
    assert state == "denied"
    assert told.startswith("Nobody decided on this call by 2025-11-26T12:00:00.0")
    assert told.endswith("So it was denied, and did not run.")
    assert any(isinstance(step, Think) for step in play.steps[-3:]), "the model goes on with it"


def test_whoever_comes_late_makes_up_for_nothing() -> None:
    assert pass_time(waiting("p Paint"), 2 * HOUR + 100) == [("p", "escalate")]
    late = waiting("p Paint")
    assert pass_time(late, 9_000 * HOUR) == [("p", "expire")]
    assert pass_time(late, 9_001 * HOUR) == []


def test_a_parked_call_expires_once_and_can_be_decided_on_all_the_same() -> None:
    play = waiting("p Paint", deadline=Deadlines(expire_after=60, on_expiry="park"))

    assert pass_time(play, 61_000) == [("p", "expire")]
    assert pass_time(play, 62_000) == []
    assert play.run() == Park("person")
    assert play.allow("p") == {"decided": ["p"]}
    play.run()
    assert play.results() == [("p", "success", "done")]


def test_a_decision_that_comes_late_is_told_so_and_changes_nothing() -> None:
    play = waiting("p Paint")
    pass_time(play, 25 * HOUR)
    before = play.results()

    answer = play.allow("p")

    assert "'p' expired at 2025-11-26T13:00:00.001+00:00; it was denied" in str(answer)
    assert play.results() == before
    play.run()
    assert "'p' expired at 2025-11-26T13:00:00.001+00:00; it was denied" in str(play.deny("p"))


def test_what_was_decided_in_time_does_not_expire() -> None:
    play = waiting("m Measure", "n Measure")
    play.deny("m")

    assert pass_time(play, 25 * HOUR) == [("n", "expire")]
    assert [state for _, state, _ in play.results()] == ["denied", "denied"]
    assert play.results()[0][2].startswith("This call was denied by ben")


@pytest.mark.proves("A10")
def test_a_result_that_never_came_is_an_unknown_outcome() -> None:
    play = waiting("o Order")

    assert pass_time(play, 25 * HOUR) == [("o", "expire")]
    ((_, state, told),) = play.results()
    assert state == "unknown"
    assert [unknown_outcome.call_id for unknown_outcome in unresolved_outcomes(play.journal)] == ["o"]
    assert "which may have run it, in part or in whole, or not at all" in told
    late = play.tell("external_result", {"results": [{"id": "o", "output": "bricks"}]})
    assert "'o' expired at 2025-11-26T13:00:00.001+00:00; its outcome is unknown, see `resolve`" in str(late)


def test_a_tool_may_bring_its_deadline() -> None:
    order = next(tool for tool in TOOLS if tool.name == "Order")
    play = Play([calls("o Order", "p Paint")])
    play.tools = (*TOOLS[:3], order.model_copy(update={"deadline": Deadline(expire_after=5)}))
    play.say("Go")
    play.run()

    assert pass_time(play, 6_000) == [("o", "expire")]
    assert next_due(play.journal) is None


def test_a_call_that_is_asked_about_again_waits_again() -> None:
    play = waiting("p Paint")
    pass_time(play, HOUR + 100)
    play.allow("p")
    play.outcomes["p"] = [e.CallUnsettled(call_id="p", analysis=play._find("p"), reason="it was wet")]  # noqa: SLF001

    assert play.run() == Park("person")
    assert asked_at(play, "p") > NOON + HOUR
    assert next_due(play.journal) == asked_at(play, "p") + HOUR


def test_an_expired_call_ends_the_reply_where_a_denied_one_does() -> None:
    play = waiting("p Paint", stop_on_reject=True)
    pass_time(play, 25 * HOUR)
    play.run()

    assert play.ends() == [("reply-of-r1", "rejected")]


@pytest.mark.parametrize("keeps", [False, True])
def test_a_continue_as_new_restarts_no_clock(keeps: bool) -> None:
    play = Play(
        [calls("p Paint"), text("Done.")],
        spec=waiting("p Paint").spec,
        keeps=keeps,
    )
    play.say("Go")
    play.run()
    pass_time(play, HOUR + 100)
    due, began = next_due(play.journal), asked_at(play, "p")

    play.continue_as_new()

    assert next_due(play.journal) == due == began + 2 * HOUR
    assert pass_time(play, HOUR + 200) == []
    assert pass_time(play, 25 * HOUR) == [("p", "expire")]
    play.continue_as_new()
    assert "'p' expired at" in str(play.allow("p"))


def test_each_stage_is_a_durable_event() -> None:
    play = waiting("p Paint")
    for hours in (1, 2, 24):
        pass_time(play, hours * HOUR + 100)
    events = EventReducer().catch_up(play.journal.log)

    told = [event for event in events if event.type == "CUSTOM"]
    assert [(event.name, event.tool_call_id) for event in told] == [
        ("reminded", "p"),
        ("escalated", "p"),
        ("expired", "p"),
    ]
    assert told[1].value["to"] == "the foreman"
    after = events[events.index(told[2]) + 1 :]
    assert [event.type for event in after] == ["TOOL_RESULT_START", "TOOL_RESULT_TEXT_DELTA", "TOOL_RESULT_END"]
    assert after[-1].state == "denied"
