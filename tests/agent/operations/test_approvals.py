"""Runs in which somebody is asked, answers, edits, or the world changes meanwhile."""

import pytest

from longhaul.agent.entries import CallUnsettled
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.approval_digest import seen_digest
from longhaul.agent.steps import Act, Examine, Idle, Park
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, Play, asking, calls, site, succeeded, text


def test_an_approved_call_runs() -> None:
    play = Play([calls("a Paint"), text("Painted.")])
    play.say("Paint it")
    assert play.run() == Park("person")

    assert play.allow("a") == {"decided": ["a"]}

    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_a_refused_call_is_never_run_and_the_model_reads_why() -> None:
    play = Play([calls("a Paint"), text("Then not.")])
    play.say("Paint it")
    play.run()
    play.deny("a", reason="the wall is wet")

    assert play.run() == Idle()

    assert play.results() == [("a", "denied", "This call was denied by ben and did not run: the wall is wet")]
    assert not [step for step in play.steps if isinstance(step, Act)]


def test_a_denial_without_reason_says_so() -> None:
    play = Play([calls("a Paint"), text("Then not.")])
    play.say("Paint it")
    play.run()
    play.tell("confirm", {"decisions": [{"call_id": "a", "decision": "deny"}]})

    assert play.results() == [("a", "denied", "This call was denied and did not run. No reason was given.")]


@pytest.mark.proves("A9")
def test_an_edited_call_is_looked_at_again_and_runs_as_edited() -> None:
    play = Play([calls("a Paint", arguments='{"colour": "red"}'), text("Blue.")], analysis={"a": [site("/site/red")]})
    play.say("Paint it")
    play.run()
    play.steps.clear()
    play.allow("a", input={"colour": "blue"})

    play.run(hold=True)

    assert play.steps[0] == Examine(("a",))
    assert play.journal.reply is not None
    assert play.journal.reply.calls["a"].input == '{"colour": "blue"}'
    assert play.running == ["a"]


def test_an_edit_that_a_rule_forbids_does_not_run() -> None:
    spec = SPEC.model_validate(
        {
            "name": "mason",
            "model": "scripted:wall",
            "permission": {"rules": [{"tool_name": "Paint", "rule_content": "/site/keep/**", "behavior": "deny"}]},
        }
    )
    play = Play([calls("a Paint"), text("No.")], spec=spec, analysis={"a": [site("/site/b"), site("/site/keep/x")]})
    play.say("Paint it")
    play.run()
    play.allow("a", input={"path": "/site/keep/x"})

    play.run()

    assert [state for _, state, _ in play.results()] == ["denied"]


def test_an_edit_that_breaks_the_arguments_is_told_to_the_model() -> None:
    broken = CallAnalysis(arguments_error="'colour' is a required property")
    play = Play([calls("a Paint", arguments='{"colour": 1}'), text("Oh.")], analysis={"a": [CallAnalysis(), broken]})
    play.say("Paint it")
    play.run()
    play.allow("a", input={})

    assert play.run() == Idle()

    assert play.results() == [("a", "error", "This call did not run: 'colour' is a required property")]


def test_an_approval_within_a_minute_needs_no_second_look() -> None:
    play = Play([calls("a Paint"), text("Painted.")])
    play.say("Paint it")
    play.run()
    play.now += 50_000
    play.allow("a")
    play.run()

    assert not [step for step in play.steps if isinstance(step, Examine)]


def test_after_a_minute_the_call_is_looked_at_again_and_runs_when_nothing_changed() -> None:
    play = Play([calls("a Paint"), text("Painted.")], analysis={"a": [site("/site/a")]})
    play.say("Paint it")
    play.run()
    play.now += 61_000
    play.allow("a")

    assert play.run() == Idle()

    assert Examine(("a",)) in play.steps
    assert play.results() == [("a", "success", "done")]


@pytest.mark.proves("S12")
def test_after_a_minute_it_asks_again_when_what_it_would_touch_has_changed() -> None:
    play = Play([calls("a Paint"), text("Painted.")], analysis={"a": [site("/site/a"), site("/site/other")]})
    play.say("Paint it")
    play.run()
    play.now += 61_000
    play.allow("a")

    assert play.run() == Park("person")

    assert play.journal.reply is not None
    assert play.journal.reply.calls["a"].reason == (
        "What it would touch has changed since it was approved. No rule allows this call of 'Paint'"
    )
    play.allow("a")
    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_a_call_that_found_another_world_is_decided_again() -> None:
    moved = CallUnsettled(call_id="a", analysis=site("/site/b"), reason="the file had moved")
    play = Play([calls("a Paint"), text("Painted.")], outcomes={"a": [moved]})
    play.say("Paint it")
    play.run()
    play.allow("a")

    assert play.run() == Park("person")

    play.allow("a")
    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_a_world_that_never_settles_ends_the_call() -> None:
    moved = CallUnsettled(call_id="a", analysis=CallAnalysis(), reason="the file had moved")
    play = Play([calls("a Look"), text("Odd.")], outcomes={"a": [moved] * 50})
    play.say("Look")

    assert play.run() == Idle()

    ((_, state, words),) = play.results()
    assert (state, "the file had moved" in words) == ("error", True)


def test_a_call_that_moves_the_folder_has_the_next_ones_looked_at_again_once() -> None:
    there = CallAnalysis(cwd="/site/gone")
    play = Play(
        [calls("a Paint", "b Look"), text("Done.")],
        analysis={"b": [CallAnalysis(cwd="/site"), there]},
        outcomes={"a": [succeeded("a", "Paint", cwd="/site/elsewhere")]},
    )
    play.say("Go there and look")
    play.run()
    play.allow("a")

    assert play.run() == Idle()

    assert [step for step in play.steps if isinstance(step, Examine)] == [Examine(("b",))]
    assert play.journal.state.tool_context.cwd == "/site/elsewhere"


def test_an_external_call_waits_for_its_result_from_outside() -> None:
    play = Play([calls("a Order"), text("Ordered.")])
    play.say("Order bricks")
    assert play.run() == Park("outside")

    assert play.tell("external_result", {"results": [{"id": "a", "output": "40 bricks"}]}) == {"received": ["a"]}

    assert play.run() == Idle()
    assert play.results() == [("a", "success", "40 bricks")]
    assert not [step for step in play.steps if isinstance(step, Act)]


def test_an_edited_call_is_bound_to_what_it_was_found_to_touch() -> None:
    play = Play(
        [calls("a Paint"), text("Painted.")], analysis={"a": [site("/site/a"), site("/site/b"), site("/site/c")]}
    )
    play.outcomes["a"] = [
        CallUnsettled(call_id="a", analysis=site("/site/c"), reason="the link leads elsewhere"),
        succeeded("a", "Paint"),
    ]
    play.say("Paint it")
    play.run()
    play.allow("a", input={"colour": "red"})

    assert play.run() == Park("person")

    assert play.journal.reply is not None
    assert play.journal.reply.calls["a"].reason == (
        "It was about to run when something had changed: the link leads elsewhere. No rule allows this call of 'Paint'"
    )


@pytest.mark.proves("X16", "X3")
def test_a_decision_on_what_was_seen_before_it_changed_is_refused() -> None:
    play = Play([calls("a Paint"), text("Painted.")])
    play.say("Paint it")
    play.run()

    refusal = play.allow("a", digest="of-something-else")

    assert refusal == "decisions: 'a' has changed since that digest was taken; look at it again and decide"
    assert play.run() == Park("person")


def test_a_decision_with_the_digest_of_what_is_shown_counts() -> None:
    play = Play([calls("a Paint"), text("Painted.")])
    play.say("Paint it")
    play.run()
    assert play.journal.reply is not None

    play.allow("a", digest=seen_digest(play.journal.reply.calls["a"], play.journal))

    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def digest(play: Play, call_id: str) -> str:
    """Of what is shown of that call now."""
    assert play.journal.reply is not None
    return seen_digest(play.journal.reply.calls[call_id], play.journal)


def test_an_event_shows_the_call_and_the_digest_that_a_decision_has_to_carry() -> None:
    play = Play(
        [calls("a Paint", arguments='{"colour": "r\u0435d"}'), text("Done.")], analysis={"a": [site("/site/a")]}
    )
    play.say("Paint it")
    play.run()

    (event,) = [event for event in EventReducer().catch_up(play.journal.log) if event.type == "REQUIRE_USER_CONFIRM"]

    shown = event.value["previews"]["a"]
    assert shown["digest"] == digest(play, "a")
    assert shown["arguments"] == [{"name": "colour", "text": "r⟨U+0435⟩d"}]
    assert shown["findings"] == [{"name": "touches", "text": "write /site/a"}]
    assert shown["cwd"] == "/site"
    assert shown["reason"] == "No rule allows this call of 'Paint'"


def test_a_new_rule_voids_what_was_shown_before_it() -> None:
    play = asking("a Paint")
    shown = digest(play, "a")
    play.tell("configure", {"rules": [{"tool_name": "Demolish", "rule_content": "/x", "behavior": "ask"}]})

    refusal = play.allow("a", digest=shown)

    assert "'a' has changed since that digest was taken (other rules hold now); look at it again" in str(refusal)
    assert play.allow("a", digest=digest(play, "a")) == {"decided": ["a"]}


def test_a_new_allow_rule_voids_nothing() -> None:
    play = asking("a Paint", "b Measure")
    shown = digest(play, "a")
    play.tell("configure", {"rules": [{"tool_name": "Look"}]})

    assert play.allow("a", digest=shown) == {"decided": ["a"]}


def test_a_rule_that_asks_voids_an_approval_that_waits_for_its_turn() -> None:
    play = Play([calls("a Paint", "b Paint"), text("Done.")])
    play.say("Paint")
    play.run()
    play.allow("a")
    play.run(hold=True)
    play.end_call("a")
    play.run()
    play.allow("b")
    play.tell("configure", {"rules": [{"tool_name": "Paint", "behavior": "ask"}]})

    assert play.run() == Park("person")

    assert play.journal.reply is not None
    assert play.journal.reply.calls["b"].reason == (
        "The rules, or the tool itself, have changed since it was approved. The ask rule Paint matches"
    )


def test_a_changed_file_is_named_to_whoever_decides_on_the_old_one() -> None:
    before, after = (CallAnalysis(cwd="/site", before=name, after="painted") for name in ("bare", "papered"))
    moved = CallUnsettled(call_id="a", analysis=after, reason="'/site/wall' has changed since the call was decided on")
    play = Play([calls("a Paint"), text("Done.")], analysis={"a": [before]}, outcomes={"a": [moved]})
    play.say("Paint it")
    play.run()
    shown = digest(play, "a")
    play.allow("a", digest=shown)
    assert play.run() == Park("person")

    refusal = play.allow("a", digest=shown)

    assert "(the file has changed)" in str(refusal)
    assert play.journal.reply is not None
    assert "'/site/wall' has changed since" in play.journal.reply.calls["a"].reason


def test_an_older_ask_is_not_the_newer_one_although_nothing_else_differs() -> None:
    moved = [CallUnsettled(call_id="a", analysis=site(f"/site/{name}"), reason="it moved") for name in ("b", "a")]
    play = Play([calls("a Paint"), text("Done.")], analysis={"a": [site("/site/a")]}, outcomes={"a": [*moved]})
    play.say("Paint it")
    play.run()
    first = digest(play, "a")
    for _ in moved:
        play.allow("a")
        play.run()

    assert "(it was asked about again)" in str(play.allow("a", digest=first))


@pytest.mark.proves("X3")
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"input": '{"colour": "blue"}'}, "it would run with other arguments"),
        ({"analysis": site("/site/b")}, "it would touch something else"),
    ],
)
def test_each_part_of_what_was_seen_is_in_the_digest(changed: dict[str, object], sentence: str) -> None:
    play = asking("a Paint")
    assert play.journal.reply is not None
    shown = digest(play, "a")
    play.journal.reply.calls["a"] = play.journal.reply.calls["a"].model_copy(update=changed)

    assert f"({sentence})" in str(play.allow("a", digest=shown))


def test_another_schema_of_the_tool_is_in_the_digest() -> None:
    play = asking("a Paint")
    shown = digest(play, "a")
    play.journal.provided.tools["Paint"] = play.journal.provided.tools["Paint"].model_copy(update={"digest": "another"})

    refusal = play.allow("a", digest=shown)

    assert "the tool is another one now (its description, schema or flags)" in str(refusal)


def test_an_approval_of_one_call_is_none_of_another_with_the_same_arguments() -> None:
    play = asking("a Measure", "b Measure")

    assert "has changed since" in str(play.allow("b", digest=digest(play, "a")))
    assert digest(play, "a") != digest(play, "b")


def test_the_same_rule_granted_twice_is_kept_once() -> None:
    play = Play([text("Hello.")])
    rule = {"tool_name": "Paint", "behavior": "allow"}
    play.tell("configure", {"rules": [rule]})
    play.tell("configure", {"rules": [rule]})

    named = [rule.tool_name for rule in play.journal.state.permission_context.rules]
    assert named.count("Paint") == 1
