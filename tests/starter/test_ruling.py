"""Rules as they are typed: read, or refused with what to write."""

import pytest

from agent.permission.rules import Behavior
from starter.cli.leaving import Misuse
from starter.cli.ruling import Given, Said, Whose, end_of, list_rules, revoke_rule
from starter.cli.screen import Screen


def given(*, allow: tuple[str, ...] = (), deny: tuple[str, ...] = (), until: str | None = None) -> Given:
    return Given(allow=allow, ask=(), deny=deny, until=until, why="", approver="ana")


def test_a_rule_is_typed_as_it_is_shown() -> None:
    rules = given(allow=("Bash(git add:*)", "Read"), deny=("Write(/proj/a (copy)/**)",), until="2026-12-31").rules()

    assert [(rule.tool_name, rule.rule_content, rule.behavior) for rule in rules] == [
        ("Bash", "git add:*", Behavior.ALLOW),
        ("Read", None, Behavior.ALLOW),
        ("Write", "/proj/a (copy)/**", Behavior.DENY),
    ]
    assert {rule.expires_at for rule in rules} == {"2026-12-31T23:59:59.999+00:00"}


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (given(), "there is no rule; give some by --allow, --ask or --deny"),
        (given(deny=("rm -rf",)), "'rm -rf' is no rule"),
        (given(deny=("Bash",), until="soon"), "'soon' is no time"),
    ],
)
def test_what_is_no_rule_is_refused(typed: Given, sentence: str) -> None:
    with pytest.raises(Misuse, match=sentence):
        typed.rules()


@pytest.mark.parametrize("until", ["90m", "8h", "30d"])
def test_an_end_may_be_given_as_a_while(until: str) -> None:
    assert end_of(until).endswith("+00:00")


async def test_somebody_has_to_be_named() -> None:
    with pytest.raises(Misuse, match="name a session, or a user by --user"):
        await list_rules(Screen(), Whose(None), changes=False)
    with pytest.raises(Misuse, match="name the session and the rule's id"):
        await revoke_rule(Screen(), ["x"], None, None, Said("", None))
