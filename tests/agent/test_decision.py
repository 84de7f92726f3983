"""Decisions that no whole run shows: at the edges, and with loads that a test must make up."""

import pytest

from longhaul.agent.decision import decide
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.agent_state import effect_of
from longhaul.agent.steps import ContinueAsNew, Examine, Idle, Park
from longhaul.agent.values.conversation.messages import ToolCallState
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import PermissionMode
from tests.agent.play import TOOLS, Play, calls


def _parked(*pairs: str) -> Play:
    play = Play([calls(*pairs)])
    play.say("Go")
    play.run()
    return play


@pytest.mark.parametrize(
    ("load", "rolls"),
    [
        (Load(events=2_000, bytes=4_000_000), False),
        (Load(events=2_001), True),
        (Load(bytes=4_000_001), True),
        (Load(continue_as_new_suggested=True), True),
        (Load(), False),
    ],
)
def test_a_session_continues_as_new_when_its_history_is_long(load: Load, rolls: bool) -> None:
    journal = Play().journal
    journal.keeping.saved = 1

    assert (decide(journal, load) == ContinueAsNew()) is rolls


def test_never_while_calls_run() -> None:
    play = Play([calls("a Look")])
    play.say("Go")
    play.run(hold=True)

    assert decide(play.journal, Load(events=9_999, running=frozenset({"a"}))) == Park("running calls")


def test_calls_that_still_run_when_the_reply_is_gone_are_waited_for() -> None:
    assert decide(Play().journal, Load(running=frozenset({"a"}))) == Park("running calls")


def test_a_session_with_nothing_to_do_is_idle() -> None:
    assert decide(Play().journal, Load()) == Idle()


def test_a_person_is_waited_for_before_the_outside() -> None:
    assert _parked("a Order", "b Measure").steps[-1] == Park("person")
    assert _parked("a Order").steps[-1] == Park("outside")


def test_the_mode_of_the_moment_decides() -> None:
    play = Play([calls("a Paint")])
    play.say("Go")
    play.tell("configure", {"mode": "bypass"})
    play.run(hold=True)

    assert play.journal.state.permission_context.mode is PermissionMode.BYPASS
    assert play.running == ["a"]


def test_an_external_call_that_must_be_asked_about_is_handed_out_after_the_approval() -> None:
    tool = ToolDescriptor(name="Mail", external=True)
    play = Play([calls("a Mail")], tools=(*TOOLS, tool))
    play.say("Go")
    assert play.run() == Park("person")
    play.allow("a")

    assert play.run() == Park("outside")


def test_an_edited_call_that_cannot_be_looked_at_is_given_up_and_not_looked_at_for_ever() -> None:
    play = Play(
        [calls("a Paint")], analysis={"a": [CallAnalysis(cwd="/site"), CallAnalysis(arguments_error="no worker")]}
    )
    play.say("Go")
    play.run()
    play.allow("a", input={"colour": "blue"})

    play.run()

    assert [step for step in play.steps if isinstance(step, Examine)] == [Examine(("a",))]
    assert [state for _, state, _ in play.results()] == ["error"]


def test_without_any_tools_an_unknown_one_is_still_answered() -> None:
    play = Play([calls("a Fly")], tools=())
    play.say("Go")
    play.run()

    assert play.results() == [("a", "error", "This call did not run: there is no tool 'Fly'; the tools are: none")]


def test_a_call_proven_read_only_may_be_repeated_whatever_its_tool_may_do() -> None:
    play = _parked("a Paint")
    assert play.journal.reply is not None
    call = play.journal.reply.calls["a"]
    tool = ToolDescriptor(name="Paint", effect=Effect.ONCE)

    assert effect_of(call, tool) is Effect.ONCE
    call.analysis = CallAnalysis(read_only=True)
    assert effect_of(call, tool) is Effect.READ


def test_what_is_shown_of_a_call_is_what_would_run() -> None:
    play = _parked("a Paint")
    assert play.journal.reply is not None
    shown = play.journal.reply.calls["a"].shown()

    assert (shown.id, shown.state, shown.input) == ("a", ToolCallState.ASKING, "{}")
