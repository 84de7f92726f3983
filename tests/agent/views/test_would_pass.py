"""A suggested rule says what else it would have let pass, of the calls that were made lately."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import AssistantMsg, Msg
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.views.would_pass import WouldPass, would_pass
from tests.agent.play import Play, calls, site

EDIT = ToolDescriptor(name="Edit", effect=Effect.ONCE)
LOOK = ToolDescriptor(name="Look", read_only=True, concurrency_safe=True, effect=Effect.READ)


def made(number: int) -> Msg:
    """A message of a model with one call more."""
    return AssistantMsg("mason", calls(f"old-{number} Edit", arguments=f'{{"file_path": "/site/north/{number}"}}'))


def edits(*paths: str) -> Play:
    """A session whose model has edited all of these files but the last, each after a yes; that one waits."""
    named = {f"edit-{number}": path for number, path in enumerate(paths)}
    play = Play(
        lines=[calls(f"{call_id} Edit", arguments=f'{{"file_path": "{path}"}}') for call_id, path in named.items()],
        analysis={call_id: [site(path)] for call_id, path in named.items()},
        tools=(EDIT, LOOK),
    )
    play.say("Wash the walls")
    for call_id in list(named)[:-1]:
        play.run()
        play.allow(call_id)
    play.run()
    return play


def rules_of(play: Play, call_id: str) -> list[WouldPass]:
    return would_pass(play.journal, call_id)


def test_calls_that_the_rule_covers_are_counted_and_named_the_newest_first() -> None:
    play = edits("/site/north/a", "/site/south/b", "/site/north/c", "/site/north/d")

    (found,) = rules_of(play, "edit-3")

    assert found.rule.spelt() == "Edit(/site/north/**)"
    assert (found.looked_at, found.count) == (3, 2)
    assert [(one.call_id, one.gist) for one in found.newest] == [
        ("edit-2", "/site/north/c"),
        ("edit-0", "/site/north/a"),
    ]


def test_each_is_named_by_the_ends_of_what_it_was_about() -> None:
    play = edits("/site/north/" + "a" * 900, "/site/north/d")

    (found,) = rules_of(play, "edit-1")

    assert [150 < len(one.gist) < 250 for one in found.newest] == [True]


def test_what_passes_without_it_is_no_merit_of_the_rule() -> None:
    play = edits("/site/north/a", "/site/north/b")
    context = play.journal.state.permission_context
    rule = PermissionRule(tool_name="Edit", rule_content="/site/north/a")
    play.journal.state.permission_context = context.model_copy(update={"rules": (*context.rules, rule)})

    (found,) = rules_of(play, "edit-1")

    assert (found.looked_at, found.count) == (1, 0)


def test_what_a_deny_rule_speaks_of_does_not_pass() -> None:
    play = edits("/site/north/a", "/site/north/b")
    context = play.journal.state.permission_context
    rule = PermissionRule(tool_name="Edit", rule_content="/site/north/a", behavior=Behavior.DENY)
    play.journal.state.permission_context = context.model_copy(update={"rules": (*context.rules, rule)})

    (found,) = rules_of(play, "edit-1")

    assert (found.looked_at, found.count) == (1, 0)


def test_what_is_always_confirmed_does_not_pass_by_a_rule() -> None:
    play = edits("/site/north/a", "/site/north/b")
    context = PermissionContext.model_validate({"confirm": "always"})
    play.journal.state.permission_context = context

    (found,) = rules_of(play, "edit-1")

    assert (found.looked_at, found.count) == (1, 0)


def test_an_edited_call_is_the_one_that_was_looked_at_after_the_edit() -> None:
    play = edits("/site/north/a", "/site/north/b")
    edited = e.HumanDecided(decisions=(e.DecisionGiven(call_id="edit-0", allow=True, input='{"file_path": "SECRET"}'),))
    play.journal.log.append(edited)

    (unseen,) = rules_of(play, "edit-1")
    play.journal.log.append(
        e.CallsExamined(analysis={"edit-0": site("/site/south/z")}, marked={"edit-0": '{"file_path": "(a mark)"}'})
    )
    (seen,) = rules_of(play, "edit-1")

    assert [one.gist for one in unseen.newest] == ["/site/north/a"]
    assert seen.count == 0


@pytest.mark.parametrize("call_id", ["edit-0", "nobody", ""])
def test_of_a_call_that_does_not_wait_nothing_is_said(call_id: str) -> None:
    assert rules_of(edits("/site/north/a", "/site/north/b"), call_id) == []


def test_only_the_newest_are_looked_at_and_a_few_are_named() -> None:
    play = edits("/site/north/a")
    for number in range(120):
        analysis = {f"old-{number}": site(f"/site/north/{number}")}
        play.journal.log.append(e.ModelSaid(message=made(number), analysis=analysis))

    (found,) = rules_of(play, "edit-0")

    assert (found.looked_at, found.count, len(found.newest)) == (100, 100, 10)
    assert found.newest[0].gist == "/site/north/119"


def test_what_nothing_was_found_out_about_passes_by_no_rule_of_paths() -> None:
    play = edits("/site/north/a")
    play.journal.log.append(e.ModelSaid(message=made(1), analysis={"old-1": CallAnalysis(arguments_error="no JSON")}))
    play.journal.log.append(e.ModelSaid(message=made(2)))

    (found,) = rules_of(play, "edit-0")

    assert (found.looked_at, found.count) == (2, 0)
