"""Which turns are read within the session's own task: all of their calls or none."""

from dataclasses import replace

import pytest

from longhaul.agent.decisions.call_rulings import are_read_along, rules_sent_along
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.steps import Act
from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec, Secrets
from longhaul.agent.values.spec.workspace import Workspace
from tests.agent.play import SPEC, TOOLS, Play, calls, spec_with, text

READS = {"read_only": True, "concurrency_safe": True, "effect": Effect.READ}
KINDS = (
    *TOOLS,
    ToolDescriptor.model_validate({"name": "Glance", "quick": True, **READS}),
    ToolDescriptor.model_validate({"name": "Stare", "quick": True, **READS, "concurrency_safe": False}),
    ToolDescriptor.model_validate({"name": "Operation", "quick": True, "external": True, **READS}),
    ToolDescriptor(name="Hammer", quick=True, concurrency_safe=True),
    ToolDescriptor.model_validate({"name": "todo_write", "inside": True, **READS}),
)
FREE = PermissionContext(mode=PermissionMode.BYPASS)


def acts(play: Play) -> list[Act]:
    play.say("Go")
    play.run()
    return [step for step in play.steps if isinstance(step, Act)]


def prepared(spec: AgentSpec, tools: tuple[ToolDescriptor, ...] = KINDS) -> Journal:
    """Of a session that knows its tools."""
    play = Play([text("Done.")], spec=spec, tools=tools)
    play.say("Go")
    play.run()
    return play.journal


def turn(*pairs: str, load: Load | None = None, arguments: str = "{}", free: bool = True, **react: object) -> list[Act]:
    spec = spec_with(**react)
    spec = spec.model_copy(update={"permission": FREE}) if free else spec
    play = Play([calls(*pairs, arguments=arguments), text("Done.")], spec=spec, tools=KINDS, load=load or Load())
    return acts(play)


@pytest.mark.parametrize("pairs", [("a Glance",), ("a Glance", "b Glance"), ("a Stare",)])
def test_a_turn_of_quick_reads_is_fused(pairs: tuple[str, ...]) -> None:
    assert turn(*pairs) == [Act(tuple(pair[0] for pair in pairs), fused=True)]


def test_most_calls_of_a_turn_are_fused_and_one_more_is_not() -> None:
    names = tuple(f"c{number} Glance" for number in range(9))

    assert [act.fused for act in turn(*names[:-1])] == [True]
    assert [act.fused for act in turn(*names)] == [False]


@pytest.mark.parametrize(
    "pairs",
    [
        ("a Look",),  # reads, and never says that it is quick
        ("a Hammer",),  # says so, and does not read
        ("a Glance", "b Look"),
        ("a Glance", "b Paint"),
        ("a Glance", "b Stare"),  # one behind the other
        ("a Glance", "b Nothing"),
        ("a Letter", "b Glance"),
    ],
)
def test_any_other_call_in_the_turn_sends_all_their_own_way(pairs: tuple[str, ...]) -> None:
    play = Play([calls(*pairs), text("Done.")], spec=SPEC.model_copy(update={"permission": FREE}), tools=KINDS)

    assert [act.fused for act in acts(play)].count(True) == 0


def test_long_arguments_a_bound_that_was_passed_and_a_lost_worker_send_it_its_own_way() -> None:
    long = f'{{"a": "{"x" * 2_000}"}}'
    assert [act.fused for act in turn("a Glance", arguments=long)] == [False]
    assert [act.fused for act in turn("a Glance", load=Load(unfused=frozenset({"Glance"})))] == [False]
    assert [act.fused for act in turn("a Glance", load=Load(unfused=frozenset({"Stare"})))] == [True]
    assert [act.fused for act in turn("a Glance", load=Load(tried=frozenset({"a"})))] == [False]
    assert [act.fused for act in turn("a Glance", load=Load(tried=frozenset({"b"})))] == [True]
    assert [act.fused for act in turn("a Glance", "b Glance", parallel_tool_calls=False)] == [False, False]


def test_a_call_that_is_proven_to_read_counts_by_its_effect() -> None:
    analysis = {"a": [CallAnalysis(cwd="/site", read_only=True)]}
    spec = SPEC.model_copy(update={"permission": FREE})

    play = Play([calls("a Hammer"), text("Done.")], spec=spec, tools=KINDS, analysis=analysis)

    assert [act.fused for act in acts(play)] == [True]


@pytest.mark.parametrize("mode", list(PermissionMode))
def test_a_denied_read_is_never_started(mode: PermissionMode) -> None:
    rules = (PermissionRule(tool_name="Glance", behavior=Behavior.DENY, source="the house"),)
    spec = SPEC.model_copy(update={"permission": PermissionContext(mode=mode, rules=rules)})

    assert acts(Play([calls("a Glance"), text("Done.")], spec=spec, tools=KINDS)) == []


def test_what_passed_a_bound_is_judged_again_by_the_rules_that_hold_then() -> None:
    spec = SPEC.model_copy(update={"permission": FREE})
    play = Play([calls("a Glance"), text("Done.")], spec=spec, tools=KINDS)
    play.say("Go")
    while not isinstance(step := play.begin(), Act):
        if play.asked:
            play.complete()
    assert step.fused
    play.running.clear()  # it has no result
    play.load = replace(play.load, unfused=frozenset({"Glance"}))
    play.tell("configure", {"rules": [{"tool_name": "Glance", "behavior": "deny"}]})

    play.run()

    assert [act.fused for act in play.steps if isinstance(act, Act)] == [True]
    assert [state for _, state, _ in play.results()] == ["denied"]


RULES = ((), *((PermissionRule(tool_name="Glance", behavior=behavior),) for behavior in Behavior))


@pytest.mark.parametrize("mode", list(PermissionMode))
@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize(
    "pairs",
    [
        ("a Glance",),
        ("a Glance", "b Glance"),
        ("a Stare",),
        ("a Glance", "b Stare"),
        ("a Look",),
        ("a Letter",),
        ("a Hammer",),
        ("a Glance", "b Nothing"),
        ("a Glance", "a Glance"),
    ],
)
def test_what_comes_along_with_an_answer_is_what_the_session_then_reads(
    mode: PermissionMode, rules: tuple[PermissionRule, ...], pairs: tuple[str, ...]
) -> None:
    """No read is made that the session would not begin at once; of those that it would begin it may leave some out."""
    spec = SPEC.model_copy(update={"permission": PermissionContext(mode=mode, rules=rules)})
    play = Play([calls(*pairs), text("Done.")], spec=spec, tools=KINDS)
    started = [act.fused for act in acts(play)]
    named = [ToolCallBlock(id=pair.split()[0], name=pair.split()[1], input="{}") for pair in pairs]
    found = {call.id: CallAnalysis(cwd="/site") for call in named}
    context = rules_sent_along(prepared(spec), ())

    along = context is not None and are_read_along(named, found, {tool.name: tool for tool in KINDS}, context, "/site")

    left_out = mode is PermissionMode.PLAN or len(set(pairs)) < len(pairs)
    assert along == (started == [True] and not left_out)


@pytest.mark.parametrize(
    "given",
    [
        {"workspace": Workspace(root="/site", place="local", host="den")},
        {"secrets": Secrets(allow=("KEY",))},
        {"postprocess": {"Glance": "headings"}},
        {"permission": PermissionContext(mode=PermissionMode.BYPASS, analyzers=("rules",))},
        {"permission": PermissionContext(rules=(PermissionRule(tool_name="Bash", rule_content="x" * 900),) * 3)},
    ],
    ids=str,
)
def test_what_an_answer_may_read_is_the_sessions_alone_to_begin(given: dict[str, object]) -> None:
    spec = SPEC.model_copy(update={"permission": FREE})

    assert rules_sent_along(prepared(spec), ()) == FREE
    assert rules_sent_along(prepared(spec), {"Glance"}) is None
    assert rules_sent_along(prepared(spec.model_copy(update=given)), ()) is None


def test_no_rules_are_sent_along_where_no_tool_is_quick() -> None:
    spec = SPEC.model_copy(update={"permission": FREE})

    assert rules_sent_along(prepared(spec), ()) == FREE
    assert rules_sent_along(prepared(spec, TOOLS), ()) is None


def test_a_dozen_short_rules_are_sent_along() -> None:
    rules = tuple(PermissionRule(tool_name="Bash", rule_content=f"make:{number}") for number in range(12))
    spec = SPEC.model_copy(update={"permission": PermissionContext(rules=rules)})

    sent = rules_sent_along(prepared(spec), ())

    assert sent is not None
    assert len(sent.rules) == 12
