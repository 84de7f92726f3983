"""Rules as they are typed: read, or refused with what to write."""

from datetime import UTC, datetime

import pytest

from longhaul.agent.values.permission import Behavior
from longhaul.starter.cli.commands.rules import end_of, list_rules, revoke_rule, typed_rules
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.terminal.screen import Screen

NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)


def test_a_rule_is_typed_as_it_is_shown() -> None:
    typed = {Behavior.ALLOW: ["Bash(git add:*)", "Read"], Behavior.DENY: ["Write(/proj/a (copy)/**)"]}
    rules = typed_rules(typed, "2999-12-31", NOW)

    assert [(rule.tool_name, rule.rule_content, rule.behavior) for rule in rules] == [
        ("Bash", "git add:*", Behavior.ALLOW),
        ("Read", None, Behavior.ALLOW),
        ("Write", "/proj/a (copy)/**", Behavior.DENY),
    ]
    assert {rule.expires_at for rule in rules} == {"2999-12-31T23:59:59.999+00:00"}


@pytest.mark.parametrize(
    ("denied", "until", "sentence"),
    [
        ([], None, "there is no rule; give some by --allow, --ask or --deny"),
        (["rm -rf"], None, "'rm -rf' is no rule"),
        (["Bash"], "soon", "'soon' is no time"),
        (["Bash"], "2020-01-31", "'2020-01-31' is past"),
        (["Bash"], "2020-01-31T18:00+02:00", "is past, so the rule would never count"),
        (["Bash"], "0m", "'0m' is past"),
        (["Bash"], "3651d", "'3651d' is more than ten years"),
    ],
)
def test_what_is_no_rule_is_refused(denied: list[str], until: str | None, sentence: str) -> None:
    with pytest.raises(Misuse, match=sentence):
        typed_rules({Behavior.DENY: denied}, until, NOW)


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
        await list_rules(Screen())
    with pytest.raises(Misuse, match="name the session and the rule's id"):
        await revoke_rule(Screen(), ["x"])
