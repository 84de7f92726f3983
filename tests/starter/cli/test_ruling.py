"""Rules as they are typed: read, or refused with what to write."""

from datetime import UTC, datetime

import pytest

from longhaul.agent.values.permission import Behavior
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.work.rules import RuleOwner, RulesSaid, TypedRules, end_of, list_rules, revoke_rule

NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)


def given(*, allow: tuple[str, ...] = (), deny: tuple[str, ...] = (), until: str | None = None) -> TypedRules:
    return TypedRules(allow=allow, ask=(), deny=deny, until=until, why="", approver="ana")


def test_a_rule_is_typed_as_it_is_shown() -> None:
    rules = given(allow=("Bash(git add:*)", "Read"), deny=("Write(/proj/a (copy)/**)",), until="2999-12-31").rules(NOW)

    assert [(rule.tool_name, rule.rule_content, rule.behavior) for rule in rules] == [
        ("Bash", "git add:*", Behavior.ALLOW),
        ("Read", None, Behavior.ALLOW),
        ("Write", "/proj/a (copy)/**", Behavior.DENY),
    ]
    assert {rule.expires_at for rule in rules} == {"2999-12-31T23:59:59.999+00:00"}


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (given(), "there is no rule; give some by --allow, --ask or --deny"),
        (given(deny=("rm -rf",)), "'rm -rf' is no rule"),
        (given(deny=("Bash",), until="soon"), "'soon' is no time"),
        (given(deny=("Bash",), until="2020-01-31"), "'2020-01-31' is past"),
        (given(deny=("Bash",), until="2020-01-31T18:00+02:00"), "is past, so the rule would never count"),
        (given(deny=("Bash",), until="0m"), "'0m' is past"),
        (given(deny=("Bash",), until="3651d"), "'3651d' is more than ten years"),
    ],
)
def test_what_is_no_rule_is_refused(typed: TypedRules, sentence: str) -> None:
    with pytest.raises(Misuse, match=sentence):
        typed.rules(NOW)


@pytest.mark.parametrize(
    ("until", "ends"),
    [
        ("90s", "2026-11-28T09:31:30.000+00:00"),
        ("90m", "2026-11-28T11:00:00.000+00:00"),
        ("2.5h", "2026-11-28T12:00:00.000+00:00"),
        ("30d", "2026-12-28T09:30:00.000+00:00"),
    ],
)
def test_an_end_may_be_given_as_a_while(until: str, ends: str) -> None:
    assert end_of(until, NOW) == ends


async def test_somebody_has_to_be_named() -> None:
    with pytest.raises(Misuse, match="name a session, or a user by --user"):
        await list_rules(Screen(), RuleOwner(None), changes=False)
    with pytest.raises(Misuse, match="name the session and the rule's id"):
        await revoke_rule(Screen(), ["x"], None, None, RulesSaid("", None))
