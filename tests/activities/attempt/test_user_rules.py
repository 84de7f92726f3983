"""Rules of a user, in a real store: found by their owner alone, changed with a word on who and why."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt.own_session import found
from longhaul.agent.permission.rulebook import MAX_RULES, BadRule, id_of
from longhaul.agent.values.permission import Behavior, PermissionRule, Scope
from longhaul.stores.state.file_store import FileStore, MemoryStore
from longhaul.stores.state.store import UserRules

NEVER_PUSH = PermissionRule(tool_name="Bash", rule_content="git push:*", behavior=Behavior.DENY)


@pytest.fixture
def rules(tmp_path: Path) -> UserRules:
    return UserRules(FileStore(tmp_path))


async def test_a_users_rules_are_kept_with_who_and_why(rules: UserRules) -> None:
    (rule_id,) = await rules.change("ana", (NEVER_PUSH,), (), by="ana", why="code freeze")

    (kept,) = await rules.of("ana")
    (change,) = await rules.changes_of("ana")
    assert (kept.rule_content, kept.scope, kept.author, kept.reason) == ("git push:*", Scope.USER, "ana", "code freeze")
    assert id_of(kept) == rule_id
    assert (change.by, change.why, change.added) == ("ana", "code freeze", (kept,))


async def test_a_revoked_rule_is_gone_and_remembered(rules: UserRules) -> None:
    (rule_id,) = await rules.change("ana", (NEVER_PUSH,), (), by="ana", why="")

    await rules.change("ana", (), (rule_id,), by="ben", why="the freeze is over")

    changes = await rules.changes_of("ana")
    assert await rules.of("ana") == ()
    assert [(change.by, [rule.tool_name for rule in change.revoked]) for change in changes] == [
        ("ana", []),
        ("ben", ["Bash"]),
    ]


async def test_a_session_is_told_only_what_it_does_not_have(rules: UserRules) -> None:
    await rules.change("ana", (NEVER_PUSH,), (), by="ana", why="")

    first = await found(rules, "ana", "")
    again = await found(rules, "ana", first.digest)
    await rules.change("ana", (), tuple(map(id_of, await rules.of("ana"))), by="ana", why="")
    without = await found(rules, "ana", first.digest)

    assert [rule.rule_content for rule in first.rules or ()] == ["git push:*"]
    assert again.rules is None
    assert (without.digest, without.rules) == ("", ())


@pytest.mark.parametrize("somebody", [None, "", "~", "ANA", "ana/rules", "an a", "anä"])
async def test_nobody_elses_rules_are_found(rules: UserRules, somebody: str | None) -> None:
    await rules.change("ana", (NEVER_PUSH,), (), by="ana", why="")

    assert (await found(rules, somebody, "")).rules is None


NAMES = st.text(max_size=12).filter(lambda name: "\0" not in name)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES, NAMES)
async def test_what_another_user_adds_changes_nothing(one: str, other: str) -> None:
    rules = UserRules(MemoryStore())
    await rules.change(one, (NEVER_PUSH,), (), by="", why="")
    before = await rules.of(one)

    if other != one:
        await rules.change(other, (PermissionRule(tool_name="Bash"),), (), by="", why="")
        assert await rules.of(one) == before


async def test_a_change_that_is_refused_leaves_everything_as_it_was(rules: UserRules) -> None:
    await rules.change("ana", (NEVER_PUSH,), (), by="ana", why="")
    before = await rules.of("ana")

    for add, revoke, sentence in (
        ((PermissionRule(tool_name="Bash", rule_content="git *"),), (), "'\\*' has no meaning"),
        ((), ("nowhere",), "there is no rule 'nowhere'"),
        (tuple(PermissionRule(tool_name=f"T{n}") for n in range(MAX_RULES)), (), "more than 200 rules"),
    ):
        with pytest.raises(BadRule, match=sentence):
            await rules.change("ana", add, revoke, by="eve", why="")

    assert await rules.of("ana") == before
    assert len(await rules.changes_of("ana")) == 1


async def test_rules_that_can_not_be_read_are_not_taken_for_none(tmp_path: Path) -> None:
    rules = UserRules(FileStore(tmp_path))
    await rules.change("ana", (NEVER_PUSH,), (), by="ana", why="")
    _damage(tmp_path)

    with pytest.raises(ApplicationError) as failure:
        await found(rules, "ana", "")

    assert failure.value.non_retryable


def _damage(folder: Path) -> None:
    (file,) = [path for path in folder.rglob("*.json") if path.is_file()]
    file.write_text("no JSON")
