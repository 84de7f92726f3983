"""Rules with scope, author and end: which count when, who may take them away, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhaul.agent import entries as e
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.permission.rulebook import BadRule, check_rule, id_of, in_force
from longhaul.agent.plain.measures import iso, moment
from longhaul.agent.steps import Act, Judge
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule, Scope
from tests.agent.play import NOON, SPEC, Play, calls, text

PAINT = {"tool_name": "Paint"}
HOUR = 3_600_000


def painting(**more: Any) -> Play:
    play = Play([calls("a Paint"), text("Done.")], **more)
    play.tell("rules", {"add": [{**PAINT, "expires_at": iso(NOON + HOUR)}], "by": "ana", "why": "the fence"})
    return play


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2026-12-31", "2026-12-31T23:59:59.999+00:00"),
        ("2026-12-31T18:00", "2026-12-31T18:00:00.000+00:00"),
        ("2026-12-31T18:00+02:00", "2026-12-31T16:00:00.000+00:00"),
        ("2026-12-31T18:00:00Z", "2026-12-31T18:00:00.000+00:00"),
    ],
)
def test_an_end_is_a_date_or_a_time(given: str, meant: str) -> None:
    assert PermissionRule(tool_name="Bash", expires_at=given).expires_at == meant


@pytest.mark.parametrize("given", ["soon", "2026-13-01", 7, "0001-01-01T00:00+14:00", True])
def test_what_is_no_time_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="time"):
        moment(given)


def test_a_rule_is_kept_with_its_author_its_reason_and_its_end() -> None:
    (rule,) = painting().journal.state.permission_context.rules[-1:]

    assert (rule.author, rule.reason, rule.scope) == ("ana", "the fence", Scope.SESSION)
    assert (rule.created_at[:10], rule.expires_at) == ("2025-11-25", iso(NOON + HOUR))


def test_a_rule_that_was_sent_with_an_author_gets_the_one_who_sent_it() -> None:
    play = painting()

    play.tell("rules", {"add": [{"tool_name": "Look", "author": "the owner", "scope": "user"}], "by": "eve"})

    (rule,) = play.journal.state.permission_context.rules[-1:]
    assert (rule.author, rule.scope) == ("eve", Scope.SESSION)


def test_an_allow_rule_counts_until_its_end_and_not_after_it() -> None:
    before, after = painting(), painting()
    after.now = NOON + HOUR

    for play in (before, after):
        play.say("Paint the fence")
        play.run()

    assert [call_id for call_id, *_ in before.results()] == ["a"]
    assert [call.block.id for call in after.journal.current.waiting()] == ["a"]


@pytest.mark.proves("X5")
def test_time_alone_ends_a_rule_before_its_call_starts() -> None:
    """As when no worker was there between the verdict and the start of the next run."""
    play = painting()
    play.say("Paint the fence")
    while not isinstance(play.begin(), Judge):
        if play.asked:
            play.complete()
    play.load = Load(at=NOON + HOUR)

    step = play.begin()

    assert not isinstance(step, Act)


def test_a_revoked_rule_does_not_count_for_a_call_that_was_allowed_and_has_not_started() -> None:
    play = painting()
    (rule,) = play.journal.state.permission_context.rules[-1:]
    play.say("Paint the fence")
    while not isinstance(play.begin(), Judge):
        if play.asked:
            play.complete()

    answer = play.tell("rules", {"revoke": [id_of(rule)], "by": "ben", "why": "wet paint"})
    play.run()

    assert answer == {"added": [], "revoked": [id_of(rule)]}
    assert [call.block.id for call in play.journal.current.waiting()] == ["a"]
    changes = [entry for entry in play.journal.log if isinstance(entry, e.RulesChanged)]
    assert [(entry.by, entry.why) for entry in changes] == [("ana", "the fence"), ("ben", "wet paint")]


def test_a_deny_rule_that_came_while_a_call_waited_beats_its_approval() -> None:
    play = Play([calls("a Paint"), text("Done.")])
    play.say("Paint")
    play.run()
    play.tell("rules", {"add": [{**PAINT, "behavior": "deny"}], "by": "ana"})

    play.allow("a")
    play.run()

    assert [(call_id, state) for call_id, state, _ in play.results()] == [("a", "denied")]


def test_a_users_deny_rule_beats_what_the_session_allows() -> None:
    play = painting()
    play.journal.rules.of_user = (PermissionRule(tool_name="Paint", behavior=Behavior.DENY, scope=Scope.USER),)

    play.say("Paint")
    play.run()

    assert [state for _, state, _ in play.results()] == ["denied"]


def test_accepted_suggestions_say_who_took_them_why_and_until_when() -> None:
    play = Play([calls("a Paint"), text("Done.")])
    play.say("Paint")
    play.run()

    play.allow("a", rules=[{**PAINT, "expires_at": "2026-01-31", "reason": "all of January"}])

    (rule,) = play.journal.state.permission_context.rules[-1:]
    assert (rule.scope, rule.author, rule.reason) == (Scope.SUGGESTED, "ben", "all of January")
    assert rule.expires_at == "2026-01-31T23:59:59.999+00:00"


def test_a_renewed_rule_stands_beside_the_one_that_ends_earlier() -> None:
    play = painting()

    play.tell("rules", {"add": [PAINT], "by": "ana"})
    play.tell("rules", {"add": [PAINT], "by": "ana"})

    rules = [rule for rule in play.journal.state.permission_context.rules if rule.tool_name == "Paint"]
    assert [bool(rule.expires_at) for rule in rules] == [True, False]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "there is nothing to change"),
        ({"revoke": ["nowhere"]}, "there is no rule 'nowhere'; there are: "),
        ({"add": [{"tool_name": ""}]}, "a rule needs a tool_name"),
        ({"add": [{"tool_name": "Bash", "rule_content": "git add x && rm y"}]}, "'&' joins commands"),
        ({"add": [{"tool_name": "Bash", "behaviour": "deny"}]}, "a rule has no 'behaviour'"),
        ({"add": [{"tool_name": "Bash", "expires_at": "soon"}]}, "'soon' is no time"),
        ({"add": [{"tool_name": "Bash", "expires_at": "2025-11-24"}]}, "has ended at 2025-11-24T23:59:59.999"),
        ({"add": [{"tool_name": f"T{n}"} for n in range(200)]}, "more than 200 rules"),
        ({"add": [{"tool_name": f"T{n}", "reason": "w" * 2000} for n in range(120)]}, "more than 200 kB"),
        ({"add": [{"tool_name": "Look", "id": "x"}, {"tool_name": "Bash", "id": "x"}]}, "'x' is another rule's"),
    ],
)
def test_a_change_that_can_not_be_meant_changes_nothing(body: dict[str, Any], sentence: str) -> None:
    play = Play()
    before = play.journal.state.permission_context

    answer = play.tell("rules", body)

    assert sentence in str(answer)
    assert play.journal.state.permission_context == before


@pytest.mark.parametrize(
    ("tool", "content", "behavior", "what_to_write"),
    [
        ("Bash", "git *", "allow", "':*'"),
        ("Bash", "rm x; ls", "deny", "write a rule for each"),
        ("Bash", "echo $HOME", "deny", "'$'"),
        ("Bash", "'open", "deny", "quote as for a shell"),
        ("Bash", "   ", "deny", "leave rule_content out"),
        ("Bash", "ls\nrm x", "deny", "one line"),
        ("Bash", "make > log", "allow", "rule of its own"),
        ("Write", "~/.ssh/**", "allow", "the absolute path"),
        ("Read", "~ana/x", "deny", "'~/.ssh/**'"),
        ("Read", "src/**.py", "deny", "'**/*.py'"),
        ("Read", "C:\\proj", "deny", "'/'"),
        ("Read", "a" * 1001, "deny", "at most 1000"),
        ("Read", "/a\x00b", "deny", "one line"),
        ("Ba*", None, "deny", "name one tool"),
    ],
)
def test_a_pattern_that_can_not_match_what_it_means_is_refused(
    tool: str, content: str | None, behavior: str, what_to_write: str
) -> None:
    rule = PermissionRule(tool_name=tool, rule_content=content, behavior=Behavior(behavior))

    with pytest.raises(BadRule) as refusal:
        check_rule(rule)

    assert what_to_write in str(refusal.value)


@pytest.mark.parametrize(
    ("tool", "content"),
    [("Bash", "git add:*"), ("Bash", "> /proj/log"), ("Bash", "find . -name '*.py'"), ("Bash", "A=1 make"),
     ("Bash", ":*"), ("Bash", "echo 'a;b'"), ("Read", "/proj/**"), ("Write", "app/[id]/*.tsx"), ("Grep", "src"),
     ("mcp__mail__send", None)],
)  # fmt: skip
def test_a_pattern_that_means_something_is_taken(tool: str, content: str | None) -> None:
    check_rule(PermissionRule(tool_name=tool, rule_content=content))


TIMES = st.integers(0, 10**13)


@given(TIMES, TIMES, TIMES)
def test_what_has_expired_never_comes_back(end: int, one: int, other: int) -> None:
    rule = PermissionRule(tool_name="Bash", expires_at=iso(end))
    earlier, later = sorted((one, other))
    context = PermissionContext(rules=(rule,))

    assert len(in_force(context, later).rules) <= len(in_force(context, earlier).rules)
    assert bool(in_force(context, earlier).rules) is (earlier < end)


def test_an_agents_rules_can_be_revoked_for_one_session_by_their_id() -> None:
    play = Play(spec=SPEC)
    (order, demolish) = play.journal.state.permission_context.rules

    play.tell("rules", {"revoke": [id_of(order)], "by": "ana"})

    assert (order.scope, play.journal.state.permission_context.rules) == (Scope.AGENT, (demolish,))


def test_ids_follow_from_what_rules_say() -> None:
    rule = PermissionRule(tool_name="Bash", rule_content="git push:*", behavior=Behavior.DENY, scope=Scope.USER)
    told = rule.model_copy(update={"author": "ana", "reason": "freeze", "created_at": iso(NOON)})

    assert id_of(rule) == id_of(told)
    assert id_of(rule) != id_of(rule.model_copy(update={"behavior": Behavior.ALLOW}))
