"""Runs in which somebody is asked, answers, edits, or the world changes meanwhile."""

from agent.entries import CallUnsettled
from agent.judgement import seen_digest
from agent.permission.facts import CallFacts
from agent.steps import Act, Examine, Idle, Park
from tests.agent.play import SPEC, Play, calls, site, succeeded, text


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


def test_an_edited_call_is_looked_at_again_and_runs_as_edited() -> None:
    play = Play([calls("a Paint", arguments='{"colour": "red"}'), text("Blue.")], facts={"a": [site("/site/red")]})
    play.say("Paint it")
    play.run()
    play.steps.clear()
    play.allow("a", input={"colour": "blue"})

    play.run(hold=True)

    assert play.steps[0] == Examine(("a",))
    assert play.record.reply is not None
    assert play.record.reply.calls["a"].input == '{"colour": "blue"}'
    assert play.running == ["a"]


def test_an_edit_that_a_rule_forbids_does_not_run() -> None:
    spec = SPEC.model_validate(
        {
            "name": "mason",
            "model": "scripted:wall",
            "permission": {"rules": [{"tool_name": "Paint", "rule_content": "/site/keep/**", "behavior": "deny"}]},
        }
    )
    play = Play([calls("a Paint"), text("No.")], spec=spec, facts={"a": [site("/site/b"), site("/site/keep/x")]})
    play.say("Paint it")
    play.run()
    play.allow("a", input={"path": "/site/keep/x"})

    play.run()

    assert [state for _, state, _ in play.results()] == ["denied"]


def test_an_edit_that_breaks_the_arguments_is_told_to_the_model() -> None:
    broken = CallFacts(arguments_error="'colour' is a required property")
    play = Play([calls("a Paint", arguments='{"colour": 1}'), text("Oh.")], facts={"a": [CallFacts(), broken]})
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
    play = Play([calls("a Paint"), text("Painted.")], facts={"a": [site("/site/a")]})
    play.say("Paint it")
    play.run()
    play.now += 61_000
    play.allow("a")

    assert play.run() == Idle()

    assert Examine(("a",)) in play.steps
    assert play.results() == [("a", "success", "done")]


def test_after_a_minute_it_asks_again_when_what_it_would_touch_has_changed() -> None:
    play = Play([calls("a Paint"), text("Painted.")], facts={"a": [site("/site/a"), site("/site/other")]})
    play.say("Paint it")
    play.run()
    play.now += 61_000
    play.allow("a")

    assert play.run() == Park("person")

    assert play.record.reply is not None
    assert play.record.reply.calls["a"].reason == (
        "What it would touch has changed since it was approved. No rule allows this call of 'Paint'"
    )
    play.allow("a")
    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_a_call_that_found_another_world_is_decided_again() -> None:
    moved = CallUnsettled(call_id="a", facts=site("/site/b"), reason="the file had moved")
    play = Play([calls("a Paint"), text("Painted.")], outcomes={"a": [moved]})
    play.say("Paint it")
    play.run()
    play.allow("a")

    assert play.run() == Park("person")

    play.allow("a")
    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_a_world_that_never_settles_ends_the_call() -> None:
    moved = CallUnsettled(call_id="a", facts=CallFacts(), reason="the file had moved")
    play = Play([calls("a Look"), text("Odd.")], outcomes={"a": [moved] * 50})
    play.say("Look")

    assert play.run() == Idle()

    ((_, state, words),) = play.results()
    assert (state, "the file had moved" in words) == ("error", True)


def test_a_call_that_moves_the_folder_has_the_next_ones_looked_at_again_once() -> None:
    there = CallFacts(cwd="/site/gone")
    play = Play(
        [calls("a Paint", "b Look"), text("Done.")],
        facts={"b": [CallFacts(cwd="/site"), there]},
        outcomes={"a": [succeeded("a", "Paint", cwd="/site/elsewhere")]},
    )
    play.say("Go there and look")
    play.run()
    play.allow("a")

    assert play.run() == Idle()

    assert [step for step in play.steps if isinstance(step, Examine)] == [Examine(("b",))]
    assert play.record.state.tool_context.cwd == "/site/elsewhere"


def test_an_external_call_waits_for_its_result_from_outside() -> None:
    play = Play([calls("a Order"), text("Ordered.")])
    play.say("Order bricks")
    assert play.run() == Park("outside")

    assert play.tell("external_result", {"results": [{"id": "a", "output": "40 bricks"}]}) == {"received": ["a"]}

    assert play.run() == Idle()
    assert play.results() == [("a", "success", "40 bricks")]
    assert not [step for step in play.steps if isinstance(step, Act)]


def test_an_edited_call_is_bound_to_what_it_was_found_to_touch() -> None:
    play = Play([calls("a Paint"), text("Painted.")], facts={"a": [site("/site/a"), site("/site/b"), site("/site/c")]})
    play.outcomes["a"] = [
        CallUnsettled(call_id="a", facts=site("/site/c"), reason="the link leads elsewhere"),
        succeeded("a", "Paint"),
    ]
    play.say("Paint it")
    play.run()
    play.allow("a", input={"colour": "red"})

    assert play.run() == Park("person")

    assert play.record.reply is not None
    assert play.record.reply.calls["a"].reason == (
        "It was about to run when something had changed: the link leads elsewhere. No rule allows this call of 'Paint'"
    )


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
    assert play.record.reply is not None

    play.allow("a", digest=seen_digest(play.record.reply.calls["a"]))

    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_the_same_rule_granted_twice_is_kept_once() -> None:
    play = Play([text("Hello.")])
    rule = {"tool_name": "Paint", "behavior": "allow"}
    play.tell("configure", {"rules": [rule]})
    play.tell("configure", {"rules": [rule]})

    named = [rule.tool_name for rule in play.record.state.permission_context.rules]
    assert named.count("Paint") == 1
