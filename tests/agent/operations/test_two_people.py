"""Calls that take the approval of more than one person, and who may grant which rules along with one."""

from typing import Any

import pytest

from longhaul.agent.entries import CallUnsettled
from longhaul.agent.permission.rulebook import may_grant
from longhaul.agent.reducer.approval_digest import seen_digest
from longhaul.agent.steps import Act, Idle, Park, Step
from longhaul.agent.values.permission import Behavior, PermissionRule, Scope
from longhaul.agent.values.spec.agent_spec import AgentSpec
from tests.agent.play import SPEC, Play, calls, site, text


def two_for(*tools: str, **permission: Any) -> AgentSpec:
    """The mason, of whom two people have to approve calls of these tools."""
    given = {"tools": {tool: {"approvers": 2} for tool in tools}, **permission}
    return SPEC.model_validate({"name": "mason", "model": "scripted:wall", "permission": given})


def painting(**more: Any) -> Play:
    play = Play([calls("a Paint"), text("Painted.")], spec=two_for("Paint"), **more)
    play.say("Paint it")
    play.run()
    return play


def decide(play: Play, who: str, word: str = "allow", call_id: str = "a", **more: Any) -> dict[str, Any] | str:
    return play.tell("confirm", {"decisions": [{"call_id": call_id, "decision": word, **more}], "approver": who})


def approved_by(play: Play) -> list[str]:
    assert play.journal.reply is not None
    return [one.approver for one in play.journal.reply.calls["a"].approvals]


def test_a_call_runs_when_two_people_have_approved_it() -> None:
    play = painting()

    assert decide(play, "ana") == {"decided": ["a"], "approvals": {"a": "1 of 2"}}
    assert play.run() == Park("person")
    assert not [step for step in play.steps if isinstance(step, Act)]

    assert decide(play, "ben") == {"decided": ["a"]}
    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]
    assert [(made.approver, made.counts) for made in play.journal.state.decisions] == [
        ("ana", "1 of 2"),
        ("ben", "2 of 2"),
    ]


def test_the_same_person_counts_once_and_nobody_is_nobody() -> None:
    play = painting()
    decide(play, "ana")

    assert "'ana' has approved 'a' already; somebody else has to" in str(decide(play, "ana"))
    assert "takes 2 approvals; say who you are" in str(decide(play, ""))
    assert play.run() == Park("person")
    assert approved_by(play) == ["ana"]


def test_anybody_may_deny() -> None:
    play = painting()
    decide(play, "ana")
    decide(play, "ben", "deny", reason="no")

    assert play.run() == Idle()
    assert [state for _, state, _ in play.results()] == ["denied"]


def test_an_edit_is_another_call_which_its_editor_is_the_first_to_approve() -> None:
    play = painting(analysis={"a": [site("/site/a"), site("/site/b")]})
    decide(play, "ana")
    assert play.journal.reply is not None
    as_ana_saw_it = seen_digest(play.journal.reply.calls["a"], play.journal)

    assert decide(play, "ben", input={"colour": "blue"}) == {"decided": ["a"], "approvals": {"a": "1 of 2"}}
    assert play.run() == Park("person")

    assert approved_by(play) == ["ben"]
    assert play.journal.reply.calls["a"].reason.startswith("ben has changed the arguments and approves them so")
    assert "other arguments, and it would touch something else" in str(decide(play, "ana", digest=as_ana_saw_it))
    assert decide(play, "ana") == {"decided": ["a"]}
    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_a_world_that_changed_takes_both_approvals_again() -> None:
    moved = CallUnsettled(call_id="a", analysis=site("/site/b"), reason="the file had moved")
    play = painting(analysis={"a": [site("/site/a")]}, outcomes={"a": [moved]})
    decide(play, "ana")
    decide(play, "ben")

    assert play.run() == Park("person")

    assert approved_by(play) == []


def test_an_approval_under_other_rules_counts_no_more() -> None:
    play = painting()
    decide(play, "ana")
    play.tell("configure", {"rules": [{"tool_name": "Paint", "behavior": "ask"}]})

    assert decide(play, "ben") == {"decided": ["a"], "approvals": {"a": "1 of 2"}}
    assert approved_by(play) == ["ben"]
    assert decide(play, "ana") == {"decided": ["a"]}


def test_nobody_alone_can_give_the_next_approvals_in_advance() -> None:
    play = painting()

    refusal = decide(play, "ana", rules=True)

    assert "calls of 'Paint' take two approvals each; none can be given in advance" in str(refusal)
    assert approved_by(play) == []
    assert play.journal.state.decisions == ()


@pytest.mark.parametrize(
    ("name", "body", "sentence"),
    [
        ("configure", {"mode": "bypass"}, "mode: 'bypass' can't be set here"),
        ("configure", {"rules": [{"tool_name": "Paint"}]}, "rules: Paint can't be allowed in advance"),
        ("rules", {"add": [{"tool_name": "Paint", "rule_content": "/site/**"}]}, "rules: Paint(/site/**) can't be"),
        ("rules", {"revoke": ["p-1"]}, "revoke: Paint stays"),
        ("replace_state", {"state": {"session_id": "x"}}, "state.permission_context: it stays as it is"),
    ],
)
def test_nobody_alone_can_do_away_with_the_second_approval(name: str, body: dict[str, Any], sentence: str) -> None:
    asks = {"tool_name": "Paint", "behavior": "ask", "id": "p-1"}
    play = Play([calls("a Paint"), text("Painted.")], spec=two_for("Paint", mode="bypass", rules=[asks]))

    refusal = play.tell(name, body)

    assert sentence in str(refusal)
    assert "take more than one approval each" in str(refusal)
    play.say("Paint it")
    assert play.run() == Park("person")


def test_what_makes_it_stricter_or_is_about_other_tools_anybody_may_say() -> None:
    play = painting()

    for name, body in (
        ("configure", {"mode": "explore"}),
        ("configure", {"mode": "accept_edits"}),
        ("configure", {"rules": [{"tool_name": "Measure"}]}),
        ("rules", {"add": [{"tool_name": "Paint", "behavior": "deny"}]}),
    ):
        assert isinstance(play.tell(name, body), dict), body


def test_where_edits_take_two_approvals_nobody_accepts_them_all() -> None:
    play = Play([], spec=two_for("Edit"))

    assert "mode: 'accept_edits' can't be set here" in str(play.tell("configure", {"mode": "accept_edits"}))


@pytest.mark.parametrize(("tool", "ends"), [("Paint", Park("person")), ("Measure", Idle())])
def test_an_allow_rule_of_the_user_is_one_persons_word(tool: str, ends: Step) -> None:
    play = Play([calls(f"a {tool}"), text("Done.")], spec=two_for("Paint"))
    play.journal.rules.of_user = (PermissionRule(tool_name=tool, scope=Scope.USER),)
    play.say("Go")

    assert play.run() == ends


def test_a_continue_as_new_between_the_two_keeps_the_first() -> None:
    play = Play([calls("a Paint"), text("Painted.")], spec=two_for("Paint"), keeps=True)
    play.say("Paint it")
    play.run()
    decide(play, "ana", reason="it is grey")
    play.continue_as_new()

    assert "'ana' has approved 'a' already" in str(decide(play, "ana"))
    decide(play, "ben")
    assert play.run() == Idle()
    assert play.results() == [("a", "success", "done")]


def test_the_state_says_who_decided_when_why_and_on_what() -> None:
    play = Play([calls("a Paint", "b Paint"), text("Done.")])
    play.say("Paint")
    play.run()
    assert play.journal.reply is not None
    digest = seen_digest(play.journal.reply.calls["a"], play.journal)
    decide(play, "ana", reason="it is grey", digest=digest, rules=True)
    play.run()

    (first, *_) = play.journal.state.decisions
    assert first.model_dump(mode="json") == {
        "call_id": "a",
        "tool": "Paint",
        "decision": "allow",
        "approver": "ana",
        "at": first.at,
        "reason": "it is grey",
        "digest": digest,
        "rules": ["Paint"],
    }
    assert first.at.startswith("2025-11-25T12:00:00.")


def test_a_state_that_is_put_in_its_place_can_not_change_what_was_decided() -> None:
    play = painting()
    decide(play, "ana", "deny", reason="no")
    play.run()
    state = play.journal.state.model_dump(mode="json")
    state["decisions"] = [{**state["decisions"][0], "decision": "allow", "approver": "ben"}]

    play.tell("replace_state", {"state": state})

    assert [(made.decision, made.approver) for made in play.journal.state.decisions] == [("deny", "ana")]


GRANTABLE = ("Bash(git:*)", "Bash(make test)", "Write(/site/docs/**)", "send")


@pytest.mark.parametrize(
    ("tool", "content", "granted"),
    [
        ("Bash", "git add:*", True),
        ("Bash", "git:*", True),
        ("Bash", "git status", True),
        ("Bash", "gitty:*", False),
        ("Bash", ":*", False),
        ("Bash", None, False),
        ("Bash", "make test", True),
        ("Bash", "make test:*", False),
        ("Bash", "make", False),
        ("Write", "/site/docs/**", True),
        ("Write", "/site/docs/a/**", True),
        ("Write", "/site/docs/a.md", True),
        ("Write", "/site/docs/../x", False),
        ("Write", "/site/**", False),
        ("Write", "/site/docs/*/../../**", False),
        ("Write", None, False),
        ("Edit", "/site/docs/a.md", False),
        ("send", None, True),
        ("Send", None, False),
    ],
)
def test_a_rule_may_be_granted_when_it_is_no_wider_than_the_setting(
    tool: str, content: str | None, granted: bool
) -> None:
    rule = PermissionRule(tool_name=tool, rule_content=content)

    assert may_grant(rule, GRANTABLE, "/site") is granted
    assert not may_grant(rule.model_copy(update={"behavior": Behavior.ASK}), GRANTABLE, "/site")


def test_a_grantable_rule_comes_along_and_any_other_one_is_refused_with_all_of_them() -> None:
    spec = two_for(grantable=["Measure"])
    play = Play([calls("a Paint"), text("Done.")], spec=spec)
    play.say("Paint")
    play.run()
    before = play.journal.state.permission_context
    granted, forbidden = {"tool_name": "Measure"}, {"tool_name": "Demolish"}

    refusal = decide(play, "ana", rules=[granted, forbidden])

    assert "rules: Demolish(*) was not suggested for 'a'" in str(refusal)
    assert play.journal.state.permission_context == before, "nothing was half applied"
    assert play.run() == Park("person")
    assert decide(play, "ana", rules=[granted]) == {"decided": ["a"]}
    assert [rule.tool_name for rule in play.journal.state.permission_context.rules] == ["Measure"]
