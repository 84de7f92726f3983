"""What every store promises, asked of every store."""

import asyncio
import string
from itertools import combinations, cycle, islice
from pathlib import Path

import pytest

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.store import SessionRecord, StateStore
from tests.stores.state.records import record
from tests.stores.state.writers import Writers

HOSTILE = [
    "", " ", "a ", "..", "/", "a/b", "a:b", "~", "=", "%", "%2F", "_", "anonymous", "Ana", "ana", "Àna", "ANA", "null",
    "None", "*", "?", "[a-z]", "{tag}", "a\0b", "a\nb", "'; DROP TABLE longhaul_sessions_1; --", "İ", "ß", "ss",
    "日本", "\U0001f980", "x" * 3_000, "X" * 3_000, "\ud800", "-rf", ".hidden", "nul", "a\\b", "C:", "e\u0301", "é",
]  # fmt: skip


def same(one: SessionRecord | None, other: SessionRecord) -> bool:
    """But for the time of writing, which is the store's."""
    return one is not None and one.model_copy(update={"updated_at": ""}) == other


@pytest.mark.proves("A11")
async def test_what_was_stored_comes_back(store: StateStore) -> None:
    kept = record(7, incarnation=2, closed=True, text="zwei\0drei \U0001f980 日本 \ud83d")
    kept.segments = [{"key": "seg-1", "first_seq": 1, "last_seq": 5}]
    kept.run_id = "run-4711"

    await store.upsert_session(kept)

    found = await store.get_session("ana", "reviewer", "s-1")
    assert same(found, kept)
    assert found is not None
    assert found.updated_at > "2026"
    assert found.version == 1


async def test_a_session_that_nobody_stored_is_none(store: StateStore) -> None:
    assert await store.get_session("ana", "reviewer", "s-1") is None
    assert await store.list_sessions("ana") == []
    assert await store.delete_session("ana", "reviewer", "s-1") is False


@pytest.mark.proves("E5")
async def test_hostile_ids_are_kept_apart(store: StateStore) -> None:
    users: list[str | None] = [None, *HOSTILE]
    slots = [(user, "reviewer", "s-1") for user in users]
    slots += [("ana", agent, "s-1") for agent in HOSTILE]
    slots += [("ana", "reviewer", session) for session in HOSTILE]
    slots += [("a/b", "c", "d"), ("a", "b/c", "d"), ("a", "b", "c/d"), (None, "~", "s-1")]
    slots = list(dict.fromkeys(slots))
    for number, (user, agent, session) in enumerate(slots):
        await store.upsert_session(record(number, user=user, agent=agent, session=session))

    for number, (user, agent, session) in enumerate(slots):
        assert same(
            await store.get_session(user, agent, session), record(number, user=user, agent=agent, session=session)
        )
    for user in users:
        listed = [(row.user_id, row.agent_id, row.session_id) for row in await store.list_sessions(user)]
        assert sorted(map(repr, listed)) == sorted(repr(slot) for slot in slots if slot[0] == user)


def test_the_hostile_ids_are_different_from_each_other() -> None:
    assert all(one != other for one, other in combinations(HOSTILE, 2))


async def test_a_state_of_two_megabytes_comes_back(store: StateStore) -> None:
    large = record(1, text="".join(islice(cycle(string.printable + "äß日\U0001f980"), 2_000_000)))

    assert await store.save_checkpoint(large) is True

    assert same(await store.get_session("ana", "reviewer", "s-1"), large)
    assert [row.session_id for row in await store.list_sessions("ana")] == ["s-1"]


async def test_what_was_read_can_be_changed_without_changing_the_store(store: StateStore) -> None:
    await store.upsert_session(record(1))
    found = await store.get_session("ana", "reviewer", "s-1")
    assert found is not None

    found.state.summary = "changed"

    assert same(await store.get_session("ana", "reviewer", "s-1"), record(1))


async def test_a_state_is_put_into_a_stored_session_and_nothing_else_changes(store: StateStore) -> None:
    await store.upsert_session(record(9, incarnation=3, closed=True))
    state = AgentState(session_id="s-1", user_id="ana", summary="edited", context=[UserMsg("ana", "hi")])

    await store.update_session_state("ana", "reviewer", "s-1", state)

    assert same(
        await store.get_session("ana", "reviewer", "s-1"),
        record(9, incarnation=3, closed=True).model_copy(update={"state": state}),
    )


@pytest.mark.proves("A11")
async def test_a_state_for_a_session_that_is_not_stored_is_a_key_error(store: StateStore) -> None:
    await store.upsert_session(record(1))

    with pytest.raises(KeyError, match="user 'bob' has no stored session 's-1' of agent 'reviewer'"):
        await store.update_session_state("bob", "reviewer", "s-1", AgentState(session_id="s-1"))
    with pytest.raises(KeyError, match="the anonymous user"):
        await store.update_session_state(None, "reviewer", "s-1", AgentState(session_id="s-1"))

    assert await store.get_session("bob", "reviewer", "s-1") is None


async def test_a_listing_is_of_one_user_and_the_newest_comes_first(store: StateStore) -> None:
    await store.upsert_session(record(1, session="old"))
    await store.upsert_session(record(1, session="closed", closed=True))
    await store.upsert_session(record(1, session="tidy-1", agent="tidier"))
    await store.upsert_session(record(1, session="bob's", user="bob"))
    await store.upsert_session(record(1, session="nobody's", user=None))
    await store.upsert_session(record(2, session="old"))

    of_ana = await store.list_sessions("ana")
    assert [(row.session_id, row.closed) for row in of_ana] == [("old", False), ("tidy-1", False), ("closed", True)]
    assert [row.session_id for row in await store.list_sessions("ana", "tidier")] == ["tidy-1"]
    assert [row.session_id for row in await store.list_sessions(None)] == ["nobody's"]


async def test_a_deleted_session_is_gone_and_the_others_stay(store: StateStore) -> None:
    await store.upsert_session(record(1))
    await store.upsert_session(record(1, session="s-2"))

    assert await store.delete_session("ana", "reviewer", "s-1") is True

    assert await store.get_session("ana", "reviewer", "s-1") is None
    assert [row.session_id for row in await store.list_sessions("ana")] == ["s-2"]


@pytest.mark.proves("E3")
async def test_an_older_checkpoint_changes_nothing(store: StateStore) -> None:
    await store.save_checkpoint(record(10, incarnation=2))
    before = await store.get_session("ana", "reviewer", "s-1")

    assert await store.save_checkpoint(record(9, incarnation=2, closed=True)) is False
    assert await store.save_checkpoint(record(99, incarnation=1)) is False

    assert await store.get_session("ana", "reviewer", "s-1") == before


async def test_a_later_checkpoint_replaces_an_earlier_one(store: StateStore) -> None:
    assert await store.save_checkpoint(record(10, incarnation=2, closed=True)) is True
    assert await store.save_checkpoint(record(11, incarnation=2)) is True
    assert await store.save_checkpoint(record(1, incarnation=3)) is True

    assert same(await store.get_session("ana", "reviewer", "s-1"), record(1, incarnation=3))


async def test_the_same_checkpoint_again_is_no_mistake_but_does_not_open_a_closed_one(store: StateStore) -> None:
    assert await store.save_checkpoint(record(10)) is True
    assert await store.save_checkpoint(record(10, closed=True)) is True
    assert await store.save_checkpoint(record(10)) is True

    assert same(await store.get_session("ana", "reviewer", "s-1"), record(10, closed=True))


async def test_writing_by_hand_goes_back_too(store: StateStore) -> None:
    await store.save_checkpoint(record(10, incarnation=2))

    await store.upsert_session(record(3))

    assert same(await store.get_session("ana", "reviewer", "s-1"), record(3))


async def test_fields_of_a_later_version_are_kept(store: StateStore) -> None:
    later = SessionRecord.model_validate({**record(1).model_dump(), "colour": "green"})
    await store.upsert_session(later)

    await store.update_session_state("ana", "reviewer", "s-1", record(2).state)

    found = await store.get_session("ana", "reviewer", "s-1")
    assert found is not None
    assert found.model_extra == {"colour": "green"}
    assert found.state.summary == "1.2"


@pytest.mark.proves("E3")
async def test_of_many_writers_in_several_processes_the_latest_checkpoint_stays(
    shared_setting: str, writers: Writers, tmp_path: Path
) -> None:
    seqs = [8, 21, 3, 14, 1, 19, 6, 11, 17, 2, 20, 9, 5, 15, 12, 4, 18, 7, 16, 10, 13]

    answers = await asyncio.to_thread(writers.save, shared_setting, [seqs[:7], seqs[7:14], seqs[14:]])
    late = await asyncio.to_thread(writers.save, shared_setting, [[5], [20], [1]])

    assert answers[seqs.index(21)] is True
    assert late == [False, False, False]
    async with open_store(shared_setting, data_dir=tmp_path) as store:
        assert same(await store.get_session("ana", "reviewer", "s-1"), record(21))
        assert len(await store.list_sessions("ana")) == 1


async def test_a_state_and_a_checkpoint_at_the_same_time_lose_nothing(store: StateStore) -> None:
    await store.save_checkpoint(record(1))
    edited = record(1).state.model_copy(update={"summary": "edited"})
    edits = [store.update_session_state("ana", "reviewer", "s-1", edited) for _ in range(3)]

    await asyncio.gather(*edits, *(store.save_checkpoint(record(seq)) for seq in range(2, 6)))

    found = await store.get_session("ana", "reviewer", "s-1")
    assert found is not None
    assert found.seq == 5
    assert found.state.summary in {"edited", "1.5"}
