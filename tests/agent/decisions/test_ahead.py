"""All calls of a turn are judged before the first one waits: one list, and each decision for what was seen."""

from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.deadline_steps import to_tell
from longhaul.agent.entries import Notification
from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse
from longhaul.agent.reducer.approval_digest import seen_digest
from longhaul.agent.steps import Act, Examine, Idle, Judge, Park
from longhaul.agent.values.permission import PermissionMode, PermissionRule
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, Play, asking, calls, spec_with, succeeded, text


def started(play: Play) -> list[str]:
    return [call_id for step in play.steps if isinstance(step, Act) for call_id in step.call_ids]


def waiting(play: Play) -> list[str]:
    return [call.block.id for call in play.journal.reply.waiting()] if play.journal.reply else []


def edits(path: str, before: str, after: str) -> CallAnalysis:
    """The findings about an edit of this file, whose bytes were such and would be such."""
    touched = (PathUse(path=path, access="write", inside=True),)
    return CallAnalysis(cwd="/site", paths=touched, before=before, after=after)


def test_three_calls_that_ask_are_one_list_and_one_operation_answers_it() -> None:
    play = asking("a Paint", "b Paint", "c Paint")
    assert waiting(play) == ["a", "b", "c"]
    asked = [event for event in EventReducer().catch_up(play.journal.log) if event.type == "REQUIRE_USER_CONFIRM"]
    assert [[block.id for block in event.tool_calls] for event in asked] == [["a", "b", "c"]]

    play.allow("a", "b", "c")

    assert play.run() == Idle()
    assert started(play) == ["a", "b", "c"]
    assert len([step for step in play.steps if step == Park("person")]) == 1


def test_they_run_in_the_models_order_whatever_the_order_of_the_answers() -> None:
    play = asking("a Paint", "b Paint", "c Paint")

    for call_id in ("c", "b"):
        play.allow(call_id)
        assert play.run() == Park("person")
        assert started(play) == []
    play.allow("a")

    play.run()
    assert started(play) == ["a", "b", "c"]
    assert [call_id for call_id, _, _ in play.results()] == ["a", "b", "c"]


def test_what_is_allowed_denied_or_external_keeps_its_place_between_calls_that_wait() -> None:
    play = asking("a Paint", "b Look", "c Demolish", "d Order", "e Paint")
    assert (waiting(play), play.results(), started(play)) == (["a", "e"], [], [])

    play.allow("a", "e")
    play.run()

    assert started(play) == ["a", "b"], "the call that goes outside stands before the last one"
    assert waiting(play) == ["d"]
    play.tell("external_result", {"results": [{"id": "d", "output": "here", "state": "success"}]})
    play.run()
    assert started(play) == ["a", "b", "e"]
    assert [(call_id, state) for call_id, state, _ in play.results()] == [
        ("a", "success"), ("b", "success"), ("c", "denied"), ("d", "success"), ("e", "success"),
    ]  # fmt: skip


def test_who_may_run_runs_while_the_question_about_a_later_call_stands() -> None:
    play = Play([calls("a Look", "b Paint"), text("Done.")])
    play.say("Go")

    play.run(hold=True)

    assert (play.running, waiting(play)) == (["a"], ["b"])


def test_a_second_edit_of_a_file_is_asked_about_again_when_the_first_has_changed_it() -> None:
    analysis = {"a": [edits("/site/w", "v0", "v1")], "b": [edits("/site/w", "v0", "v2"), edits("/site/w", "v1", "v3")]}
    play = Play([calls("a Paint", "b Paint"), text("Done.")], analysis=analysis)
    play.say("Go")
    play.run()
    digests = {call_id: seen_digest(call, play.journal) for call_id, call in play.journal.open_calls.items()}

    for call_id in ("a", "b"):
        play.allow(call_id, digest=digests[call_id])
    assert play.run() == Park("person")

    assert (started(play), waiting(play)) == (["a"], ["b"])
    call = play.journal.open_calls["b"]
    assert "What it would touch has changed since it was approved" in call.reason
    refusal = play.allow("b", digest=digests["b"])
    assert "the file has changed" in str(refusal)
    play.allow("b", digest=seen_digest(call, play.journal))
    assert play.run() == Idle()
    assert started(play) == ["a", "b"]


def test_a_question_whose_file_has_changed_is_asked_again_before_anybody_answers_it() -> None:
    analysis = {"a": [edits("/site/w", "v0", "v1")], "b": [edits("/site/w", "v0", "v2"), edits("/site/w", "v1", "v3")]}
    play = Play([calls("a Paint", "b Paint"), text("Done.")], analysis=analysis)
    play.say("Go")
    play.run()
    asked_at = play.journal.open_calls["b"].asked_at

    play.allow("a")
    play.run()

    call = play.journal.open_calls["b"]
    assert (waiting(play), call.analysis.before) == (["b"], "v1")
    assert call.asked_at > asked_at
    assert "What it would touch has changed since it was asked about" in call.reason


def test_a_question_that_nothing_has_changed_stands_as_it_was() -> None:
    same = edits("/site/roof", "r0", "r1")
    play = Play(
        [calls("a Paint", "b Paint"), text("Done.")], analysis={"a": [edits("/site/w", "v0", "v1")], "b": [same]}
    )
    play.say("Go")
    play.run()
    digest, events = (
        seen_digest(play.journal.open_calls["b"], play.journal),
        len(EventReducer().catch_up(play.journal.log)),
    )

    play.allow("a")
    play.run()

    assert Examine(("b",)) in play.steps
    assert seen_digest(play.journal.open_calls["b"], play.journal) == digest
    later = EventReducer().catch_up(play.journal.log)[events:]
    assert "REQUIRE_USER_CONFIRM" not in [event.type for event in later]


def test_a_call_that_waited_for_its_turn_for_a_minute_is_looked_at_again() -> None:
    play = asking("a Paint", "b Paint")
    play.allow("a", "b")
    play.run(hold=True)
    play.now += 61_000
    play.load = play.load.__class__(at=play.now)
    play.steps.clear()

    play.run()

    assert [type(step) for step in play.steps[:4]] == [Park, Examine, Judge, Act]
    assert started(play) == ["b"]


def test_a_denial_ends_the_list_where_the_agent_says_so() -> None:
    play = Play([calls("a Paint", "b Paint", "c Paint"), text("No.")], spec=spec_with(stop_on_reject=True))
    play.say("Go")
    play.run()
    decisions = [{"call_id": "a", "decision": "deny"}, {"call_id": "b", "decision": "allow"}]

    play.tell("confirm", {"decisions": decisions, "approver": "ben"})

    assert play.run() == Idle()
    assert started(play) == []
    assert [(call_id, state) for call_id, state, _ in play.results()] == [
        ("a", "denied"), ("b", "interrupted"), ("c", "interrupted"),
    ]  # fmt: skip


def test_a_denial_elsewhere_lets_the_others_run() -> None:
    play = asking("a Paint", "b Paint", "c Paint")

    play.deny("b")
    play.allow("a", "c")
    play.run()

    assert started(play) == ["a", "c"]


def test_a_rule_accepted_with_one_call_answers_the_others_that_it_covers() -> None:
    play = asking("a Paint", "b Measure", "c Paint")
    suggested = [rule.model_dump(mode="json") for rule in play.journal.open_calls["a"].suggested_rules]
    assert suggested

    play.allow("a", rules=suggested)
    play.run()

    assert (started(play), waiting(play)) == (["a"], ["b"])
    play.allow("b")
    play.run()
    assert started(play) == ["a", "b", "c"]


@pytest.mark.parametrize("at", ["asked", "part", "running"])
def test_an_interrupt_answers_all_that_wait(at: str) -> None:
    play = asking("a Paint", "b Paint", "c Paint")
    if at != "asked":
        play.allow("a") if at == "running" else play.allow("b")
    play.run(hold=True)

    play.tell("interrupt", {})
    play.run()

    assert started(play) == (["a"] if at == "running" else [])
    assert [call_id for call_id, _, _ in play.results()] == ["a", "b", "c"]
    assert play.ends() == [("reply-of-r1", "interrupted")]


@pytest.mark.parametrize(
    ("mode", "shown", "ran"),
    [
        ("default", ["a", "c"], []),
        ("accept_edits", ["a", "c"], []),
        ("explore", [], ["b"]),
        ("bypass", [], ["a", "b", "c"]),
        ("dont_ask", [], ["b"]),
        ("plan", [], ["b"]),
    ],
)
def test_in_each_mode_the_list_is_what_asks_in_it(mode: str, shown: list[str], ran: list[str]) -> None:
    permission = SPEC.permission.model_copy(update={"mode": PermissionMode(mode)})
    play = Play([calls("a Paint", "b Look", "c Paint"), text("Done.")], spec=SPEC.model_copy(
        update={"permission": permission}))  # fmt: skip
    play.say("Go")
    play.run()

    assert (waiting(play), started(play)) == (shown, ran)


def test_a_list_has_an_end_and_goes_on_behind_it() -> None:
    names = [f"c{number}" for number in range(35)]
    play = asking(*(f"{name} Paint" for name in names))
    assert waiting(play) == names[:32]

    play.allow(*names[:32])
    play.run()

    assert waiting(play) == names[32:]


def test_a_list_of_large_calls_is_short() -> None:
    large = '{"text": "' + "x" * (300_000 // 2) + '"}'
    play = Play([calls("a Paint", "b Paint", "c Paint", arguments=large), text("Done.")])
    play.say("Go")
    play.run()

    assert waiting(play) == ["a"]
    play.deny("a")
    play.run()
    assert waiting(play) == ["b"]


def test_a_list_goes_along_with_a_continue_as_new() -> None:
    play = asking("a Paint", "b Look", "c Paint")
    digest = seen_digest(play.journal.open_calls["c"], play.journal)
    play.allow("c", digest=digest)
    play.run()

    play.continue_as_new()
    play.run()
    assert waiting(play) == ["a"]
    play.allow("a")
    play.run()

    assert started(play) == ["a", "b", "c"]


def told(play: Play) -> list[tuple[str, list[str]]]:
    return [
        (notification.event, [each.call_id for each in notification.each()]) for notification in to_tell(play.journal)
    ]


def unheard(*pairs: str, **permission: Any) -> Play:
    """A session of whose questions nobody could be told yet."""
    spec = SPEC.model_copy(update={"permission": SPEC.permission.model_copy(update=permission)})
    play = Play([calls(*pairs), text("Done.")], spec=spec, keeps=True)
    play.say("Go")
    while not play.journal.notifications.unsent:
        play.begin()
        if play.asked:
            play.complete()
    return play


def test_who_waits_is_told_of_a_list_once_and_of_what_is_left_of_it() -> None:
    play = unheard("a Paint", "b Paint", "c Paint")
    assert told(play) == [("waits", ["a", "b", "c"])]

    play.allow("a")
    assert told(play) == [("waits", ["b", "c"])]
    play.deny("b")
    play.deny("c")
    assert told(play) == []


def test_a_notice_of_one_call_is_as_it_was() -> None:
    (notification,) = to_tell(unheard("a Paint").journal)

    assert notification == Notification.model_validate(notification.model_dump(mode="json"))
    assert "more" not in notification.model_dump(mode="json")


def test_a_turn_without_questions_takes_the_steps_that_it_took() -> None:
    house = (PermissionRule(tool_name="Paint"), PermissionRule(tool_name="Measure"))
    spec = SPEC.model_copy(update={"permission": SPEC.permission.model_copy(update={"rules": house})})
    play = Play([calls("a Paint", "b Look", "c Paint"), text("Done.")], spec=spec)
    play.say("Go")

    play.run()

    kinds = [type(step).__name__ for step in play.steps if not isinstance(step, Judge | Park | Idle)]
    assert kinds == ["Prepare", "Think", "Act", "Act", "Act", "Think", "Finish"]


def test_findings_that_are_missing_are_made_in_one_look_for_the_whole_turn() -> None:
    play = Play([calls("a Paint", "b Paint", "c Paint"), text("Done.")])
    play.say("Go")
    while not play.journal.open_calls:
        play.begin()
        if play.asked:
            play.complete()
    for call in play.journal.open_calls.values():
        call.analysis_stale = True
    play.run()

    assert [step for step in play.steps if isinstance(step, Examine)] == [Examine(("a", "b", "c"))]
    assert waiting(play) == ["a", "b", "c"]


def test_the_first_calls_result_does_not_make_others_look_again_where_nobody_was_asked() -> None:
    analysis = {"a": [edits("/site/w", "v0", "v1")], "b": [CallAnalysis()], "c": [edits("/site/x", "x0", "x1")]}
    house = (PermissionRule(tool_name="Paint"),)
    spec = SPEC.model_copy(update={"permission": SPEC.permission.model_copy(update={"rules": house})})
    play = Play([calls("a Paint", "b Paint", "c Paint"), text("Done.")], spec=spec, analysis=analysis)
    play.say("Go")
    play.outcomes["a"] = [succeeded("a", "Paint")]

    play.run()

    assert [step for step in play.steps if isinstance(step, Examine)] == [Examine(("c",))], "in its turn, once"
    assert isinstance(play.journal.log[-1], e.ReplyFinished)
