"""Memories in a SQLite file: found by their words, each owner's alone, written once for each key."""
# ruff: noqa: ASYNC240, RUF001  The loop has nothing else to do, and a sentence is written as it is.

import asyncio
import stat
from pathlib import Path

import pytest

from longhaul.stores.memories.memories import MOST_OF_AN_OWNER, MemoryOwner, NewMemory
from longhaul.stores.memories.sqlite_memories import SqliteMemories
from longhaul.stores.state.store import StoreUnavailable

ANA, BEN, NOBODY = MemoryOwner("ana", "lamp"), MemoryOwner("ben", "lamp"), MemoryOwner(None, "lamp")

ANALYSIS = {
    "The user lives in Porto since 2019.": ["Where does the user live, in which city: Porto or elsewhere?"],
    "The user prefers tea to coffee at breakfast.": ["tea or coffee?", "What would I like for breakfast"],
    "Deploys of the shop happen on Tuesdays, by Marta.": ["When do we deploy the shop?", "Marta"],
    "The database of the shop is PostgreSQL 16 on the host heron.": ["which database does the shop use", "heron"],
    "The user is allergic to peanuts.": ["Is anybody allergic to something?"],
    "Invoices are sent as PDF to billing@harbour.example.": ["Where do invoices go?"],
    "The boat is named Grauwal and lies in berth 14.": ["Which berth has the Grauwal?"],
    "The user's daughter Ida starts school in August 2026.": ["When does Ida start school?"],
    "Tests of the shop are run with pytest -n 4.": ["how do I run the tests"],
    "The user wants short answers without lists.": ["How short should answers be?"],
    "用户住在北京，喜欢喝茶。": ["北京的天气"],
}
"""To each fact the requests that it should come first for."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "memory.db"


@pytest.fixture
def memories(path: Path) -> SqliteMemories:
    return SqliteMemories(path)


def new(*texts: str, session: str = "s1") -> list[NewMemory]:
    return [NewMemory(key=text, text=text, session_id=session) for text in texts]


@pytest.mark.proves("C11")
async def test_the_right_fact_comes_first_among_a_thousand_others(memories: SqliteMemories) -> None:
    others = [f"Lamp number {number} was lit in the year {1800 + number % 200}." for number in range(1_000)]
    await memories.record(ANA, new(*others, *ANALYSIS))
    asked = {request: fact for fact, requests in ANALYSIS.items() for request in requests}

    found = {request: await memories.retrieve(ANA, request, 1) for request in asked}

    assert {request: [each.text for each in first] for request, first in found.items()} == {
        request: [fact] for request, fact in asked.items()
    }


async def test_nobody_sees_or_deletes_what_is_anothers(memories: SqliteMemories) -> None:
    for owner in (ANA, BEN, NOBODY, MemoryOwner("ana", "plumber"), MemoryOwner("", "lamp")):
        await memories.record(owner, new("the key is under the mat", f"the door of {owner.user_id} {owner.agent}"))
    (mine,) = await memories.retrieve(ANA, "door", 50)
    assert mine.text == "the door of ana lamp"
    (theirs,) = await memories.retrieve(BEN, "door", 50)

    assert await memories.delete(ANA, [theirs.id]) == 0
    assert await memories.delete(ANA, None) == 2

    assert await memories.list_memories(ANA, 50) == []
    assert len(await memories.list_memories(MemoryOwner("ana", None), 50)) == 2
    assert [len(await memories.list_memories(owner, 50)) for owner in (BEN, NOBODY, MemoryOwner("", None))] == [2, 2, 2]
    assert [each.text for each in await memories.retrieve(BEN, "key", 5)] == ["the key is under the mat"]


async def test_the_same_key_is_written_once_however_often_and_by_how_many(path: Path) -> None:
    stores = [SqliteMemories(path) for _ in range(8)]

    await asyncio.gather(*(store.record(ANA, new("The tide turns at six.", "Low water.")) for store in stores * 5))

    assert [each.text for each in await stores[0].list_memories(ANA, 50)] == ["Low water.", "The tide turns at six."]
    assert len(await stores[0].retrieve(ANA, "tide water", 50)) == 2


async def test_a_newer_text_stands_in_place_of_the_one_of_its_key(memories: SqliteMemories) -> None:
    await memories.record(ANA, [NewMemory("s1/r1", "The lamp is red.", "s1")])
    await memories.record(ANA, [NewMemory("s1/r1", "The lamp is green.", "s1")])

    assert [each.text for each in await memories.retrieve(ANA, "lamp", 5)] == ["The lamp is green."]
    assert await memories.retrieve(ANA, "red", 5) == []


async def test_what_is_deleted_is_found_by_no_word(memories: SqliteMemories) -> None:
    await memories.record(ANA, new("The lamp is red.", "The lamp is blue."))
    red, *_ = await memories.retrieve(ANA, "red", 5)

    assert await memories.delete(ANA, [red.id, red.id, "no number", "9" * 30, "-1"]) == 1

    assert [each.text for each in await memories.retrieve(ANA, "lamp red", 5)] == ["The lamp is blue."]


async def test_memories_of_the_asking_session_can_be_left_out(memories: SqliteMemories) -> None:
    await memories.record(ANA, [*new("The lamp here.", session="s1"), *new("The lamp there.", session="s2")])

    assert [each.text for each in await memories.retrieve(ANA, "lamp", 5, not_of="s1")] == ["The lamp there."]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "the of and",
        '"',
        'lamp" OR 1=1 --',
        "NEAR(lamp",
        "lamp*",
        "words:lamp",
        "\0lamp\0",
        "lamp " * 100_000,
        "(((",
        "-x",
    ],
)
async def test_any_text_is_a_question_and_no_operator(memories: SqliteMemories, query: str) -> None:
    await memories.record(ANA, new("A lamp."))

    found = await memories.retrieve(ANA, query, 5)

    assert [each.text for each in found] == (["A lamp."] if "lamp" in query.lower() else [])


async def test_the_oldest_go_when_there_are_too_many(memories: SqliteMemories) -> None:
    await memories.record(BEN, new("Ben's own."))
    await memories.record(ANA, new(*(f"Number {number}." for number in range(MOST_OF_AN_OWNER + 3))))

    kept = await memories.list_memories(ANA, MOST_OF_AN_OWNER + 10)

    assert (len(kept), kept[-1].text) == (MOST_OF_AN_OWNER, "Number 3.")
    assert len(await memories.list_memories(BEN, 5)) == 1


async def test_the_file_is_for_its_owner_alone(memories: SqliteMemories, path: Path) -> None:
    await memories.record(ANA, new("A lamp."))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_file_that_is_no_database_is_told_of_and_left_alone(memories: SqliteMemories, path: Path) -> None:
    path.parent.mkdir()
    path.write_text("an operation, which is longer than the header of a database" * 10)

    with pytest.raises(StoreUnavailable, match=r"memory\.db' can't be used: .*not a database"):
        await memories.record(ANA, new("A lamp."))

    assert path.read_text().startswith("an operation")


async def test_a_file_that_was_taken_away_is_started_again(memories: SqliteMemories, path: Path) -> None:
    await memories.record(ANA, new("A lamp."))
    path.unlink()

    with pytest.raises(StoreUnavailable):
        await memories.list_memories(ANA, 5)
    await memories.record(ANA, new("A light."))

    assert [each.text for each in await memories.list_memories(ANA, 5)] == ["A light."]
