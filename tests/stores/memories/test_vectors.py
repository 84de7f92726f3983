"""Memories and passages found by vectors, which a real server gives through the real SDK: how well, and whose."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from longhaul.activities.models.embeddings import open_meaning
from longhaul.activities.models.profiles import read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.stores.memories.memories import KnowledgeBases, Memories, MemoryOwner, NewMemory
from longhaul.stores.memories.open_memories import open_knowledge, open_memories
from longhaul.stores.memories.vectors import NoVectors, fused, packed
from longhaul.stores.state.store import StoreUnavailable
from tests.embedding_server import KEY, EmbeddingServer, embedding_server
from tests.stores.memories.labelled import ANALYSIS, QUESTIONS

ANA, BEN = MemoryOwner("ana", "lamp"), MemoryOwner("ben", "lamp")
PAGE = Path(__file__).parents[3] / "docs" / "agents" / "memory.md"
Way = Literal["words", "vectors", "hybrid"]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as served:
        yield served


def providers(server: EmbeddingServer) -> Providers:
    near = {"provider": "openai", "model": "pieces", "base_url": server.url, "api_key_env": "NEAR_KEY"}
    profiles = read_profiles({"near": near, "other": {**near, "model": "others"}})
    return Providers({"NEAR_KEY": KEY}, (), profiles)


@asynccontextmanager
async def memories(
    server: EmbeddingServer, folder: Path, way: Way = "vectors", model: str = "near"
) -> AsyncIterator[Memories]:
    meaning = None if way == "words" else open_meaning(model, way, providers(server), str)
    opened = open_memories("sqlite", folder, meaning)
    yield opened
    await opened.close()


@asynccontextmanager
async def knowledge(
    server: EmbeddingServer, folder: Path, model: str = "near", way: Literal["vectors", "hybrid"] = "vectors"
) -> AsyncIterator[KnowledgeBases]:
    opened = open_knowledge("sqlite", folder, open_meaning(model, way, providers(server), str))
    yield opened
    await opened.close()


def new(*texts: str, session: str = "s1") -> list[NewMemory]:
    return [NewMemory(key=text, text=text, session_id=session) for text in texts]


def stated() -> dict[tuple[str, str], tuple[float, float]]:
    """What the page says: by setting and way of asking, how many percent come first, and among the first five."""
    heads = [
        cell.strip() for cell in re.findall(r"\| found by \|(.*)\|", PAGE.read_text(encoding="utf-8"))[0].split("|")
    ]
    rows = re.findall(r"^\| (words|vectors|hybrid) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        (found_by, head): (float(first), float(five))
        for found_by, cells in rows
        for head, cell in zip(heads, cells.split("|"), strict=True)
        for first, five in re.findall(r"(\d+) % / (\d+) %", cell)
    }


@pytest.mark.proves("C11")
async def test_of_a_thousand_facts_the_right_one_is_found_as_often_as_the_page_says(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    async with memories(server, tmp_path, "words") as unaware:
        await unaware.record(ANA, new(*ANALYSIS))
    measured: dict[tuple[str, str], tuple[float, float]] = {}
    ways: tuple[Way, ...] = ("words", "vectors", "hybrid")

    for found_by in ways:
        async with memories(server, tmp_path, found_by) as store:
            while found_by == "vectors" and len(server.texts) < len(ANALYSIS):
                await store.retrieve(ANA, "", 1)  # each makes vectors for some that have none yet
            for way, questions in QUESTIONS.items():
                found = [[each.text for each in await store.retrieve(ANA, asked, 5)] for asked in questions]
                right = [*zip(found, questions.values(), strict=True)]
                first, five = (sum(fact in texts[:most] for texts, fact in right) for most in (1, 5))
                measured[found_by, way] = (100 * first / len(right), 100 * five / len(right))

    assert measured == {key: pytest.approx(each, abs=4) for key, each in stated().items()}


@pytest.mark.proves("C11")
async def test_nobody_finds_by_vectors_what_is_anothers(server: EmbeddingServer, tmp_path: Path) -> None:
    async with memories(server, tmp_path) as store:
        await store.record(ANA, new("The key is under the mat."))
        await store.record(BEN, [*new("The mat is red."), *new("The mat is new.", session="s2")])

        found = await store.retrieve(BEN, "mat", 50, not_of="s2")
        assert await store.retrieve(MemoryOwner("ben", "other"), "mat", 50) == []

    assert [each.text for each in found] == ["The mat is red."]


async def test_what_is_deleted_is_near_to_nothing(server: EmbeddingServer, tmp_path: Path) -> None:
    async with memories(server, tmp_path) as store:
        await store.record(ANA, new("The lamp is red.", "The lamp is blue."))
        (red, *_) = await store.retrieve(ANA, "red", 5)
        async with memories(server, tmp_path, "words") as unaware:
            assert await unaware.delete(ANA, [red.id]) == 1

        assert [each.text for each in await store.retrieve(ANA, "red lamp", 5)] == ["The lamp is blue."]


async def test_a_server_that_does_not_answer_costs_no_memory_and_is_made_up_for(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    async with memories(server, tmp_path) as store:
        server.status = 503
        await store.record(ANA, new("The Grauwal lies in berth 14."))
        by_words = await store.retrieve(ANA, "Grauwal", 5)
        server.status = 200
        by_vectors = await store.retrieve(ANA, "Gruawal", 5)

    assert [each.text for each in (*by_words, *by_vectors)] == ["The Grauwal lies in berth 14."] * 2


async def test_a_memory_that_the_server_refuses_costs_the_others_nothing_and_is_not_tried_for_ever(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    server.longest = 60
    long = "A very long tale of the harbour. " * 3
    async with memories(server, tmp_path) as store:
        await store.record(ANA, new(long))
        await store.record(ANA, new("The Grauwal lies in berth 14.", "The lamp is red."))
        first = await store.retrieve(ANA, "Gruawal", 1)
        asked = len(server.asked)
        again = await store.retrieve(ANA, "Gruawal", 1)

    assert [each.text for each in (*first, *again)] == ["The Grauwal lies in berth 14."] * 2
    assert [body["input"] for body in server.asked[asked:]] == [["Gruawal"]]


async def test_one_that_is_refused_while_every_text_is_gets_its_vector_later(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    async with memories(server, tmp_path) as store:
        server.longest = 0
        await store.record(ANA, new("The Grauwal lies in berth 14."))
        server.longest = 10_000
        (found,) = await store.retrieve(ANA, "Gruawal", 1)

    assert found.text == "The Grauwal lies in berth 14."


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        {"data": None},
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": ["a"]}]},
        {"data": [{"index": 0, "embedding": [1e400]}]},
        {"data": [{"index": 0, "embedding": [float("nan")]}]},
        {"data": [{"index": 7, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0] * 20_000}]},
    ],
)
async def test_an_answer_that_is_no_vector_is_refused(server: EmbeddingServer, answer: object) -> None:
    server.answer = answer
    meaning = open_meaning("near", "vectors", providers(server), str)
    assert meaning is not None

    with pytest.raises(NoVectors):
        await meaning.embedder.embed(["a lamp"])
    await meaning.embedder.close()


async def test_vectors_of_another_model_are_made_again(server: EmbeddingServer, tmp_path: Path) -> None:
    async with memories(server, tmp_path) as store:
        await store.record(ANA, new("A lamp."))
    async with memories(server, tmp_path, model="other") as store:
        found = await store.retrieve(ANA, "lamps", 5)

    assert [each.text for each in found] == ["A lamp."]
    assert [(body["model"], body["input"]) for body in server.asked] == [
        ("pieces", ["A lamp."]),
        ("others", ["lamps"]),
        ("others", ["A lamp."]),
    ]


async def test_a_document_is_put_in_with_its_vectors_or_not_at_all(server: EmbeddingServer, tmp_path: Path) -> None:
    passages = [f"Berth {number} is free." for number in range(100)]
    async with knowledge(server, tmp_path) as bases:
        server.status = 503
        with pytest.raises(StoreUnavailable, match="LONGHAUL_EMBEDDINGS: no vectors came: InternalServerError"):
            await bases.put("harbour", "berths.md", "d1", passages)
        assert await bases.list_documents(None) == []
        server.status = 200

        assert (await bases.put("harbour", "berths.md", "d1", passages)).new
        asked = len(server.asked)
        assert not (await bases.put("harbour", "berths.md", "d1", passages)).new
        assert len(server.asked) == asked
        found = await bases.search(["harbour"], "breth 77", 1)
        assert [each.text for each in found] == ["Berth 77 is free."]
        assert await bases.search(["kitchen"], "berth", 5) == []
        (listed,) = await bases.list_documents("harbour")
        await bases.delete("harbour", ["berths.md"])
        assert await bases.search(["harbour"], "berth 77", 1) == []

    assert (listed.digest, listed.passages) == ("d1", 100)


async def test_of_a_document_only_the_refused_passages_are_without_vectors_and_they_are_named(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    server.longest = 60
    long = "A very long tale of the pilot Ottoline. " * 3
    passages = ["The Grauwal lies in berth 14.", long, "The lamp is red."]
    async with knowledge(server, tmp_path, way="hybrid") as bases:
        taken = await bases.put("harbour", "tales.md", "d1", passages)
        near = await bases.search(["harbour"], "Gruawal", 1)
        by_words = await bases.search(["harbour"], "Ottoline", 1)
        asked = len(server.asked)
        again = await bases.put("harbour", "tales.md", "d1", passages)
        alone = await bases.put("harbour", "tale.md", "d2", [long])

    assert (taken.new, taken.by_words_alone) == (True, (1,))
    assert [each.text for each in (*near, *by_words)] == [passages[0], long]
    assert (again.new, len(server.asked[asked:])) == (False, 3)
    assert alone.by_words_alone == (0,)


async def test_where_every_text_is_refused_no_document_is_put_in(server: EmbeddingServer, tmp_path: Path) -> None:
    server.longest = 0
    async with knowledge(server, tmp_path) as bases:
        with pytest.raises(StoreUnavailable, match="BadRequestError"):
            await bases.put("harbour", "tides.md", "d1", ["High water is at six."])
        assert await bases.list_documents(None) == []


async def test_a_document_of_another_models_vectors_is_put_in_again(server: EmbeddingServer, tmp_path: Path) -> None:
    async with knowledge(server, tmp_path) as bases:
        await bases.put("harbour", "tides.md", "d1", ["High water is at six."])
    async with knowledge(server, tmp_path, model="other") as bases:
        (before,) = await bases.list_documents(None)

        assert (await bases.put("harbour", "tides.md", "d1", ["High water is at six."])).new
        assert len(await bases.search(["harbour"], "high water", 5)) == 1

    assert before.digest != "d1"


async def test_the_key_goes_where_the_profile_says_and_secrets_stay_here(server: EmbeddingServer) -> None:
    hidden = {"heron-and-crow": "[HARBOUR_KEY]"}
    meaning = open_meaning("near", "hybrid", providers(server), lambda text: text.replace(*next(iter(hidden.items()))))
    assert meaning is not None

    await meaning.embedder.embed(["The key is heron-and-crow."])
    await meaning.embedder.close()

    assert (server.keys, server.texts) == ([f"Bearer {KEY}"], ["The key is [HARBOUR_KEY]."])


def test_what_stands_high_in_both_rankings_comes_first() -> None:
    assert fused([["a", "b", "c"], ["b", "d"]], 3) == ["b", "a", "d"]


def test_a_text_without_a_direction_has_no_vector() -> None:
    assert packed([0.0, 0.0]) == b""
