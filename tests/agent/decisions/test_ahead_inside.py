"""A list of questions goes on behind calls that the session answers itself."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.steps import Idle
from longhaul.agent.values.conversation.messages import ContentBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionMode, PermissionRule
from longhaul.agent.views.events import EventReducer
from tests.agent.decisions.test_ahead import started, waiting
from tests.agent.play import SPEC, TOOLS, Play, calls, text

PLAN_TOOLS = tuple(
    ToolDescriptor(name=name, inside=True, read_only=True, effect=Effect.READ)
    for name in ("plan_exit", "todo_write", "sleep", "wait_for")
)


def planning(*parts: list[ContentBlock]) -> Play:
    """A session in plan mode whose model has made these calls in one turn, run until somebody is waited for."""
    permission = SPEC.permission.model_copy(update={"mode": PermissionMode.PLAN})
    spec = SPEC.model_copy(update={"permission": permission})
    line = [block for part in parts for block in part]
    play = Play([line, text("Done.")], spec=spec, tools=(*TOOLS, *PLAN_TOOLS))
    play.say("Go")
    play.run()
    return play


@pytest.mark.proves("X16")
def test_the_list_goes_on_behind_a_plan_as_if_it_were_approved() -> None:
    play = planning(calls("x plan_exit", arguments='{"plan": "# Plan"}'), calls("a Paint", "b Paint"))
    assert waiting(play) == ["x", "a", "b"]
    asked = [event for event in EventReducer().catch_up(play.journal.log) if event.type == "REQUIRE_USER_CONFIRM"]
    assert [[block.id for block in event.tool_calls] for event in asked] == [["x", "a", "b"]]

    play.allow("x", "a", "b")

    assert play.run() == Idle()
    assert started(play) == ["a", "b"]


def test_what_waits_behind_a_plan_that_is_denied_is_asked_about_no_more_and_denied() -> None:
    play = planning(calls("x plan_exit", arguments='{"plan": "# Plan"}'), calls("a Paint"))
    play.allow("a")
    play.deny("x", reason="not this plan")
    assert waiting(play) == []

    assert play.run() == Idle()

    assert started(play) == []
    (result,) = [one for message in play.journal.state.context for one in message.get_tool_results() if one.id == "a"]
    assert "plan mode is on" in result.get_text()


def test_a_plan_that_is_denied_takes_back_what_was_asked_behind_it() -> None:
    play = planning(calls("x plan_exit", arguments='{"plan": "# Plan"}'), calls("a Paint"))
    assert waiting(play) == ["x", "a"]

    play.deny("x", reason="not this plan")

    assert play.run() == Idle()
    assert started(play) == []


def test_behind_a_list_of_tasks_the_list_of_questions_goes_on() -> None:
    line = [*calls("a Paint"), *calls("t todo_write", arguments='{"todos": []}'), *calls("b Paint")]
    play = Play([line, text("Done.")], tools=(*TOOLS, *PLAN_TOOLS))
    play.say("Go")
    play.run()
    assert waiting(play) == ["a", "b"]

    play.allow("b", "a")

    assert play.run() == Idle()
    assert started(play) == ["a", "b"]


def test_nothing_is_asked_about_behind_what_is_answered_at_once_before_it_is() -> None:
    line = [*calls("t todo_write", arguments='{"todos": []}'), *calls("a Paint")]
    play = Play([line, text("Done.")], tools=(*TOOLS, *PLAN_TOOLS))
    play.say("Go")
    play.run()

    kinds = [entry.kind for entry in play.journal.log]
    judgements = [entry for entry in play.journal.log if isinstance(entry, e.CallsJudged)]
    assert [[one.call_id for one in each.rulings] for each in judgements] == [["t"], ["a"]]
    assert kinds.index("answered") < len(kinds) - 1 - kinds[::-1].index("judged")


@pytest.mark.parametrize("name", ["sleep", "wait_for"])
def test_behind_a_sleep_nothing_is_asked_about(name: str) -> None:
    given = {"sleep": '{"duration": "1h"}', "wait_for": '{"event": "tide", "timeout": "1h"}'}
    line = [*calls("a Paint"), *calls(f"s {name}", arguments=given[name]), *calls("b Paint")]
    play = Play([line, text("Done.")], tools=(*TOOLS, *PLAN_TOOLS))
    play.say("Go")
    play.run()

    assert waiting(play) == ["a"]


def test_nothing_is_asked_behind_a_sleep_that_is_asked_about() -> None:
    rule = PermissionRule(tool_name="sleep", behavior=Behavior.ASK)
    permission = SPEC.permission.model_copy(update={"rules": (*SPEC.permission.rules, rule)})
    line = [*calls("s sleep", arguments='{"for": "1h"}'), *calls("b Paint")]
    play = Play(
        [line, text("Done.")], spec=SPEC.model_copy(update={"permission": permission}), tools=(*TOOLS, *PLAN_TOOLS)
    )
    play.say("Go")
    play.run()

    assert waiting(play) == ["s"]


def test_a_plan_that_cannot_be_read_takes_back_what_was_asked_behind_it() -> None:
    play = planning(calls("x plan_exit", arguments='{"plan": 5}'), calls("a Paint"))
    assert waiting(play) == ["x", "a"]

    play.allow("x")
    play.run()

    assert "a" not in waiting(play)
