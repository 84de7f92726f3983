"""The mark of a store: one for all who open it, another one for each other store, and no session."""

import asyncio
from pathlib import Path

from longhaul.stores.state.file_store import MemoryStore
from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.store import CantReplace, SessionRecord, StateStore, mark_of, marked
from tests.stores.state.records import record


async def test_a_store_has_no_mark_until_a_worker_leaves_one(store: StateStore) -> None:
    before = await mark_of(store)

    mark = await marked(store)

    assert (before, len(mark)) == ("", 4)
    assert (await mark_of(store), await marked(store)) == (mark, mark)


async def test_of_many_workers_that_begin_at_once_all_find_the_same(store: StateStore) -> None:
    marks = await asyncio.gather(*(marked(store) for _ in range(8)))

    assert len(set(marks)) == 1


async def test_whoever_opens_the_same_store_finds_the_same_mark(shared_setting: str, tmp_path: Path) -> None:
    async with (
        open_store(shared_setting, data_dir=tmp_path) as one,
        open_store(shared_setting, data_dir=tmp_path / "other") as other,
    ):
        assert await marked(one) == await mark_of(other) != ""


async def test_two_stores_have_two_marks(store: StateStore) -> None:
    assert await marked(store) != await marked(MemoryStore())


async def test_a_mark_stands_in_no_list_of_sessions(store: StateStore) -> None:
    await store.upsert_session(record(1))
    await marked(store)

    assert [row.session_id for row in await store.list_sessions("ana")] == ["s-1"]
    assert await store.list_sessions(None) == []


async def test_a_store_that_can_not_compare_and_write_in_one_step_is_marked_too() -> None:
    class Simple(MemoryStore):
        async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
            raise CantReplace

    store = Simple()

    assert await marked(store) == await mark_of(store) != ""
