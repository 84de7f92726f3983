"""Rules of a user in every store: people who change them at the same instant lose none of them."""

import asyncio
import time
from pathlib import Path

import pytest

from longhaul.agent.permission.rulebook import BadRule, id_of
from longhaul.agent.plain.measures import iso
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.stores.state.file_store import FileStore
from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.store import CantReplace, StateStore, UserRules
from tests.stores.state.records import record
from tests.stores.state.writers import Writers

NEVER_PUSH = PermissionRule(tool_name="Bash", rule_content="git push:*", behavior=Behavior.DENY)


async def test_what_is_replaced_has_to_be_what_was_read(store: StateStore) -> None:
    first, second, later = record(1), record(2), record(1, incarnation=2)

    answers = [
        await store.replace_session(first, (1, 1)),
        await store.replace_session(first, None),
        await store.replace_session(second, None),
        await store.replace_session(second, (1, 1)),
        await store.replace_session(later, (1, 1)),
        await store.replace_session(later, (1, 2)),
        await store.replace_session(first, (2, 1)),
    ]

    assert answers == [False, True, False, True, False, True, True]
    found = await store.get_session("ana", "reviewer", "s-1")
    assert found is not None
    assert found.position() == (1, 1)


async def test_of_many_changes_at_once_none_is_lost(store: StateStore) -> None:
    rules = UserRules(store)
    patterns = [f"rm {number}" for number in range(8)]
    kept = [PermissionRule(tool_name="Bash", rule_content=each, behavior=Behavior.DENY) for each in patterns]

    await asyncio.gather(*(rules.change("ana", (rule,), (), by="ana", why="") for rule in kept))

    assert {rule.rule_content for rule in await rules.of("ana")} == set(patterns)
    assert len(await rules.changes_of("ana")) == len(patterns)


async def test_changes_of_several_processes_are_all_kept(shared_setting: str, writers: Writers, tmp_path: Path) -> None:
    shares = [[f"rm {process}-{number}" for number in range(6)] for process in range(len(writers.processes))]
    async with open_store(shared_setting, data_dir=tmp_path) as store:
        await store.list_sessions("ana")  # makes what there is to make

        await asyncio.to_thread(writers.change_rules, shared_setting, shares)

        rules = UserRules(store)
        assert {rule.rule_content for rule in await rules.of("ana")} == {each for share in shares for each in share}
        assert sorted(change.by for change in await rules.changes_of("ana")) == sorted(
            each for share in shares for each in share
        )


async def test_of_two_who_revoke_one_rule_the_second_is_told(store: StateStore) -> None:
    rules = UserRules(store)
    (rule_id,) = await rules.change("ana", (NEVER_PUSH,), (), by="ana", why="")

    came_to = await asyncio.gather(
        *(rules.change("ana", (), (rule_id,), by=name, why="") for name in ("ben", "eve")), return_exceptions=True
    )

    assert sorted(type(each).__name__ for each in came_to) == ["BadRule", "tuple"]


async def test_a_rule_that_is_over_already_is_refused(store: StateStore) -> None:
    rules = UserRules(store)
    over = NEVER_PUSH.model_copy(update={"expires_at": "2020-01-31T23:59:59.999+00:00"})

    with pytest.raises(BadRule, match=r"Bash\(git push:\*\) has ended at 2020-01-31T"):
        await rules.change("ana", (over,), (), by="ana", why="")

    assert await rules.of("ana") == ()


async def test_who_changes_rules_with_a_clock_that_is_ahead_takes_none_away_that_still_holds(store: StateStore) -> None:
    """By such a clock a rule of the next hours has ended, as this one has by ours."""
    rules = UserRules(store)
    soon_over = NEVER_PUSH.model_copy(update={"expires_at": iso(int(time.time() * 1000) + 300)})
    await rules.change("ana", (soon_over,), (), by="ana", why="")
    await asyncio.sleep(0.4)

    await rules.change("ana", (PermissionRule(tool_name="Read"),), (), by="ana", why="")

    assert [rule.tool_name for rule in await rules.of("ana")] == ["Bash", "Read"]


class OldStore(FileStore):
    """As somebody may have written it before there was `replace_session`."""

    replace_session = StateStore.replace_session


async def test_a_store_that_can_not_compare_takes_no_change_and_says_so(tmp_path: Path) -> None:
    known = UserRules(FileStore(tmp_path))
    await known.change("ana", (NEVER_PUSH,), (), by="ana", why="")

    with pytest.raises(CantReplace, match="replace_session"):
        await UserRules(OldStore(tmp_path)).change("ana", (), (id_of((await known.of("ana"))[0]),), by="eve", why="")

    assert [rule.rule_content for rule in await UserRules(OldStore(tmp_path)).of("ana")] == ["git push:*"]


async def test_a_rule_about_a_misspelt_tool_is_not_taken_and_about_another_one_it_is(store: StateStore) -> None:
    rules = UserRules(store)
    slip = PermissionRule(tool_name="Bsh", behavior=Behavior.DENY)
    others = PermissionRule(tool_name="mcp__mail__send", behavior=Behavior.DENY)

    with pytest.raises(BadRule, match=r"there is no tool 'Bsh', .*; did you mean 'Bash'"):
        await rules.change("ana", (NEVER_PUSH, slip), (), by="ana", why="")
    await rules.change("ana", (others,), (), by="ana", why="")

    assert [rule.tool_name for rule in await rules.of("ana")] == ["mcp__mail__send"]
