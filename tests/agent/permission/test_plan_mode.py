"""Plan mode: nothing changes until a person has approved the plan, whatever the mode below it and the rules allow."""

import json
from typing import Any

import pytest

from longhaul.agent.entries import SessionOpened
from longhaul.agent.incarnation.continued_state import imported
from longhaul.agent.incarnation.history import messages
from longhaul.agent.incarnation.imported_state import read_state
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse, SubCommand
from longhaul.agent.permission.decision_table import REFUSED, decide_planning
from longhaul.agent.steps import Park
from longhaul.agent.values.conversation.messages import ContentBlock, HintBlock, ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from longhaul.agent.values.plans import PlanModeContext, plan_file
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, TOOLS, Play, calls, text

PLAN_TOOLS = tuple(
    ToolDescriptor(name=name, inside=True, read_only=True, effect=Effect.READ) for name in ("plan_enter", "plan_exit")
)
WRITE, BASH = ToolDescriptor(name="Write", effect=Effect.IDEMPOTENT), ToolDescriptor(name="Bash")
READ = ToolDescriptor(name="Read", read_only=True, effect=Effect.READ)
ALL = PermissionRule(tool_name="Paint", source="the house")
MARKDOWN = "# Plan\n\n1. Paint the wall.\n"


def spec_in(mode: str, *rules: PermissionRule) -> Any:
    permission = PermissionContext(mode=PermissionMode(mode), rules=(*SPEC.permission.rules, *rules))
    return SPEC.model_copy(update={"permission": permission})


def leaves(call_id: str, plan: str = MARKDOWN) -> list[ContentBlock]:
    return [ToolCallBlock(id=call_id, name="plan_exit", input=json.dumps({"plan": plan}))]


def playing(
    *lines: list[ContentBlock], mode: str = "plan", rules: tuple[PermissionRule, ...] = (), **more: Any
) -> Play:
    given = {"spec": spec_in(mode, *rules), "tools": (*TOOLS, *PLAN_TOOLS), **more}
    play = Play([*lines, text("Done.")], **given)
    play.say("Go")
    play.run()
    return play


def hints(play: Play) -> list[str]:
    blocks = (block for message in play.journal.state.context for block in message.content)
    return [block.hint for block in blocks if isinstance(block, HintBlock) and isinstance(block.hint, str)]


@pytest.mark.proves("E9")
@pytest.mark.parametrize("mode", ["default", "accept_edits", "bypass"])
def test_what_is_not_proven_harmless_is_denied_and_nobody_is_asked(mode: str) -> None:
    play = playing(calls("a plan_enter"), calls("b Look", "c Paint", "d Order"), mode=mode, rules=(ALL,))

    states = {call_id: (state, said) for call_id, state, said in play.results()}
    assert (states["a"][0], states["b"][0], states["c"][0], states["d"][0]) == (
        "success",
        "success",
        "denied",
        "denied",
    )
    assert REFUSED in states["c"][1]
    assert play.ends() == [("reply-of-r1", "completed")]


def test_a_plan_goes_to_a_person_and_its_approval_brings_the_mode_back() -> None:
    play = playing(
        calls("a plan_enter"), leaves("b"), calls("c Paint"), mode="accept_edits", rules=(ALL,)
    )  # fmt: skip
    asked = play.journal.reply.calls["b"] if play.journal.reply else None
    assert asked is not None
    assert (asked.waits_for, json.loads(asked.input)["plan"]) == ("person", MARKDOWN)
    assert asked.suggested_rules == ()
    assert play.journal.state.mode.value == "plan"

    play.allow("b")
    play.run()

    assert play.journal.state.mode.value == "accept_edits"
    assert play.journal.state.plan_mode_context == PlanModeContext()
    told = {call_id: said for call_id, _, said in play.results()}
    assert told["b"] == (
        "Plan mode is over: calls run again as permission says, in the mode 'accept_edits'. "
        "Your plan was approved by ben; carry it out."
    )
    assert play.results()[2][:2] == ("c", "success")
    assert hints(play) == []


def test_a_changed_plan_is_the_one_that_is_carried_out() -> None:
    play = playing(leaves("b"))

    play.allow("b", input='{"plan": "Paint it green."}')
    play.run()

    assert play.results()[0][2].endswith(
        "Your plan was changed and approved by ben; carry out this one:\n\nPaint it green."
    )
    assert play.journal.state.mode.value == "default"


def test_a_denied_plan_keeps_plan_mode_and_the_model_reads_why() -> None:
    play = playing(leaves("b"), calls("c Paint"), rules=(ALL,))

    play.deny("b", reason="too dear")
    play.run()

    (first, second) = play.results()
    assert (first[1], "too dear" in first[2]) == ("denied", True)
    assert (second[1], play.journal.state.planning) == ("denied", True)


@pytest.mark.parametrize(
    "rule", [PermissionRule(tool_name="plan_exit"), PermissionRule(tool_name="plan_exit", source="x")]
)
@pytest.mark.parametrize("mode", ["bypass", "accept_edits", "default", "explore"])
def test_no_mode_and_no_rule_approves_a_plan(mode: str, rule: PermissionRule) -> None:
    play = playing(calls("a plan_enter"), leaves("b"), mode=mode, rules=(rule,))

    assert play.steps[-1] == Park("person")


def test_where_nobody_is_asked_plan_mode_does_not_begin() -> None:
    play = playing(calls("a plan_enter"), calls("b Look"), mode="dont_ask")

    assert [state for _, state, _ in play.results()] == ["denied", "success"]
    assert not play.journal.state.planning


def test_a_rule_may_forbid_to_leave() -> None:
    play = playing(leaves("b"), rules=(PermissionRule(tool_name="plan_exit", behavior=Behavior.DENY),))

    assert play.results()[0][1] == "denied"


def test_leaving_what_was_not_entered_is_no_call() -> None:
    play = playing(leaves("b"), mode="default")

    assert play.results()[0][1:] == (
        "error",
        "This call did not run: plan mode is not on, so there is nothing to leave",
    )


def test_a_session_that_begins_in_it_tells_the_model_behind_the_request() -> None:
    play = playing(mode="plan")

    assert len(hints(play)) == 1
    assert hints(play)[0].startswith("Plan mode is on: only calls run that are proven to change nothing.")
    assert "plans/PLAN.md" in hints(play)[0]
    assert "call plan_exit" in hints(play)[0]
    assert play.journal.state.context[0].get_text_content() == "Go"
    assert "call plan_exit" not in hints(playing(mode="plan", tools=TOOLS))[0]


def test_a_person_turns_it_on_and_off_and_the_model_hears_of_it_in_time() -> None:
    play = playing(calls("a Paint", "b Look"), mode="default")
    assert play.steps[-1] == Park("person")

    play.tell("configure", {"mode": "plan", "by": "ana"})
    play.allow("a")
    play.run()

    assert (play.results()[0][1], play.journal.state.planning) == ("denied", True)
    assert [hint[:15] for hint in hints(play)] == ["Plan mode is on"]
    play.tell("configure", {"mode": "accept_edits"})
    play.say("On", "r2")
    play.run()
    play.say("And on", "r3")
    play.run()
    assert [hint[:17] for hint in hints(play)] == ["Plan mode is on: ", "Plan mode is over"]
    assert play.journal.state.mode.value == "accept_edits"
    assert [message for _, message in messages(play.journal.log)] == play.journal.context.transcript


def test_people_are_told_by_durable_events() -> None:
    play = playing(calls("a plan_enter"), leaves("b"), mode="default")
    play.allow("b")
    play.run()
    play.tell("configure", {"mode": "plan", "by": "ana"})

    events = [event for event in EventReducer().catch_up(play.journal.log) if event.name == "plan_mode_changed"]
    assert [event.value for event in events] == [
        {"active": True, "file": "plans/PLAN.md"},
        {"active": False, "file": "plans/PLAN.md"},
        {"active": True, "by": "ana"},
    ]


def test_it_goes_along_into_the_next_run() -> None:
    play = playing(calls("a plan_enter"), mode="bypass", keeps=True)
    play.continue_as_new()

    assert play.journal.state.mode.value == "plan"
    assert play.journal.state.permission_context.mode is PermissionMode.BYPASS


FILE = "/site/plans/PLAN.md"


def decided(tool: ToolDescriptor, analysis: CallAnalysis, *rules: PermissionRule, file: str = FILE) -> Behavior:
    context = PermissionContext(mode=PermissionMode.BYPASS, rules=rules)
    return decide_planning(tool, "{}", analysis, context, "/site", file).behavior


def writes(*paths: str, **more: Any) -> CallAnalysis:
    return CallAnalysis(
        cwd="/site", paths=tuple(PathUse(path=path, access="write", inside=True) for path in paths), **more
    )


@pytest.mark.proves("E9")
def test_exactly_the_plan_file_may_be_written() -> None:
    assert decided(WRITE, writes(FILE)) is Behavior.ALLOW
    assert decided(WRITE, writes("/site/plans/PLAN.md.bak")) is Behavior.DENY
    assert decided(WRITE, writes("/site/app.py")) is Behavior.DENY
    assert decided(WRITE, writes(FILE, "/site/app.py")) is Behavior.DENY
    assert decided(WRITE, writes(FILE), file="") is Behavior.DENY
    assert decided(BASH, writes(FILE, commands=(SubCommand(words=(">", FILE), edits_only=True),))) is Behavior.DENY
    assert decided(WRITE, writes(FILE, safety="it is a link")) is Behavior.DENY
    dangerous = CallAnalysis(paths=(PathUse(path=FILE, access="write", inside=True, danger="runs"),))
    assert decided(WRITE, dangerous) is Behavior.DENY


def test_rules_make_it_stricter_and_never_wider() -> None:
    reads = CallAnalysis(cwd="/site", paths=(PathUse(path="/site/a", inside=True),))
    allow_all = tuple(PermissionRule(tool_name=name) for name in ("Write", "Bash", "Read"))
    deny = PermissionRule(tool_name="Write", behavior=Behavior.DENY)
    ask = PermissionRule(tool_name="Read", behavior=Behavior.ASK)

    assert decided(WRITE, writes("/site/app.py"), *allow_all) is Behavior.DENY
    assert decided(BASH, CallAnalysis(not_understood="$(x)"), *allow_all) is Behavior.DENY
    assert decided(READ, reads, *allow_all) is Behavior.ALLOW
    assert decided(READ, reads, ask) is Behavior.ASK
    assert decided(WRITE, writes(FILE), deny) is Behavior.DENY
    assert (
        decided(WRITE, writes("/site/app.py"), PermissionRule(tool_name="Write", behavior=Behavior.ASK))
        is Behavior.DENY
    )
    outside = CallAnalysis(paths=(PathUse(path="/etc/passwd"),))
    assert decided(READ, outside, *allow_all) is Behavior.DENY


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("", "/site/plans/PLAN.md"),
        ("docs/plan.md", "/site/docs/plan.md"),
        ("/site/x.md", "/site/x.md"),
        ("../x.md", ""),
        ("/etc/passwd", ""),
        ("plans/../../x", ""),
        (".", ""),
        ("/sitex/a", ""),
    ],
)
def test_the_plan_file_lies_below_the_workspace_or_there_is_none(file: str, place: str) -> None:
    assert plan_file(PlanModeContext(file=file), "/site") == place


def test_java_s_plan_mode_is_taken_over() -> None:
    java = {"session_id": "s", "reply_id": "r", "context": [],
            "plan_mode_context": {"plan_active": True, "current_plan_file": "plans/mine.md"}}  # fmt: skip

    state = read_state(json.dumps(java))

    assert state.plan_mode_context == PlanModeContext(active=True, file="plans/mine.md")
    assert state.mode is PermissionMode.PLAN
    opened = SessionOpened(session_id="s", spec=SPEC)
    assert imported(opened, state, "ana").session.state.planning
    assert read_state(json.dumps(state.model_dump(mode="json"))).plan_mode_context == state.plan_mode_context


def test_a_state_that_names_it_as_its_mode_is_in_it_and_comes_out_of_it() -> None:
    state = read_state(json.dumps({"session_id": "s", "context": [], "permission_context": {"mode": "plan"}}))
    assert state.planning

    state.take_mode(PermissionMode.EXPLORE)

    assert (state.planning, state.mode) == (False, PermissionMode.EXPLORE)
    fresh = Journal.of([SessionOpened(session_id="s", spec=SPEC)]).state.model_dump(mode="json")
    assert fresh["plan_mode_context"] == {"active": False}
