"""Entries in segments: nothing is lost or doubled, few are written again, and what is damaged is named."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhaul.agent import entries as e
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.stores.blobs.blob_directory import DirectoryBlobs
from longhaul.stores.blobs.blobs import key_of, session_prefix
from longhaul.stores.segments import DamagedSegment, Segments, cut, line_of, plan

PREFIX = session_prefix("default", "longhaul/mason/~/wall-7")
LIMIT = 1_000


def entries(first: int, *lengths: int) -> list[e.AnyEntry]:
    """Observations, numbered from `first`, with texts of these lengths."""
    return [
        e.Observed(seq=first + place, at=place, messages=(UserMsg("ana", f"{first + place} " + "b" * length),))
        for place, length in enumerate(lengths)
    ]


@pytest.fixture
def blobs(tmp_path: Path) -> DirectoryBlobs:
    return DirectoryBlobs(tmp_path, fsync=False)


@given(sizes=st.lists(st.integers(1, 3 * LIMIT), max_size=60))
def test_cutting_keeps_every_item_in_its_order_and_every_group_small(sizes: list[int]) -> None:
    groups = cut([(place, size) for place, size in enumerate(sizes)], LIMIT)

    assert [place for group in groups for place in group] == list(range(len(sizes)))
    assert all(len(group) == 1 or sum(sizes[place] for place in group) <= LIMIT for group in groups)
    assert all(group for group in groups)


@given(batches=st.lists(st.integers(1, 2 * LIMIT), min_size=1, max_size=200))
def test_merging_loses_nothing_and_leaves_few_segments(batches: list[int]) -> None:
    """Bytes stand for entries: each batch is one that can't be cut."""
    segments: list[list[int]] = []
    written = [0] * len(batches)
    for number, size in enumerate(batches):
        keep, whole = plan([sum(batches[one] for one in segment) for segment in segments], size, LIMIT)
        again = [one for segment in segments[keep:] for one in segment]
        assert whole == sum(batches[one] for one in [*again, number])
        assert whole <= max(LIMIT, size)
        segments = [*segments[:keep], [*again, number]]
        for one in segments[-1]:
            written[one] += 1

    assert [one for segment in segments for one in segment] == list(range(len(batches)))
    sizes = [sum(batches[one] for one in segment) for segment in segments]
    assert all(newer <= older / 2 or older + newer > LIMIT for older, newer in pairwise(sizes))
    # Each time that it is written again its segment is half as large again: log 1.5 of 1,000, and the first time.
    assert max(written) <= 19


def test_a_hundred_equal_batches_are_written_as_a_counter_counts() -> None:
    sizes: list[int] = []
    total = 0
    for _ in range(100):
        keep, whole = plan(sizes, 5, 2**20)
        sizes = [*sizes[:keep], whole]
        total += whole

    assert sizes == [320, 160, 20]
    assert total < 100 * 5 * 8


@pytest.mark.parametrize("checkpoints", [1_000, 10_000])
@pytest.mark.parametrize(("each", "most"), [(1_500, 5.0), (20_000, 3.0), (60_000, 2.5), (250_000, 2.0)])
def test_what_lies_in_the_store_is_a_small_multiple_of_the_entries(each: int, most: float, checkpoints: int) -> None:
    """All that was ever written, for nothing is deleted before the session is."""
    sizes: list[int] = []
    total = 0
    for _ in range(checkpoints):
        keep, whole = plan(sizes, each)
        sizes = [*sizes[:keep], whole]
        total += whole

    assert total <= most * each * checkpoints


async def test_what_is_read_is_what_was_written(blobs: DirectoryBlobs) -> None:
    written = entries(1, 10, 700, 20)

    (segment,) = await Segments(blobs).write(PREFIX, written)

    assert (segment.first_seq, segment.last_seq) == (1, 3)
    assert segment.size == sum(len(line_of(entry)) for entry in written)
    assert await Segments(blobs).read(segment) == written


async def test_a_large_entry_is_a_segment_of_its_own(blobs: DirectoryBlobs) -> None:
    written = await Segments(blobs, limit=1_000).write(PREFIX, entries(1, 10, 5_000, 10))

    assert [(segment.first_seq, segment.last_seq) for segment in written] == [(1, 1), (2, 2), (3, 3)]


async def test_half_a_surrogate_pair_survives(blobs: DirectoryBlobs) -> None:
    written: list[e.AnyEntry] = [e.OperationRefused(seq=1, at=1, name="submit", reason="torn \ud83d here")]

    (segment,) = await Segments(blobs).write(PREFIX, written)

    assert await Segments(blobs).read(segment) == written


async def test_small_segments_become_one(blobs: DirectoryBlobs) -> None:
    segments = Segments(blobs)
    (first,) = await segments.write(PREFIX, entries(1, 10, 10))
    (second,) = await segments.write(PREFIX, entries(3, 900))

    extended = await segments.extend(PREFIX, [second, first], entries(3, 10, 10))

    assert extended.keep == 1
    assert [entry.seq for entry in await segments.read(extended.new[0])] == [1, 2, 3, 4]


async def test_writing_twice_gives_the_same_segments(blobs: DirectoryBlobs) -> None:
    segments = Segments(blobs)
    older = await segments.write(PREFIX, entries(1, 30))

    first = await segments.extend(PREFIX, older, entries(2, 40, 50))
    second = await segments.extend(PREFIX, older, entries(2, 40, 50))

    assert first == second
    assert len(await blobs.keys(PREFIX)) == 2


async def test_one_that_is_damaged_is_left_as_it_is(blobs: DirectoryBlobs) -> None:
    segments = Segments(blobs)
    (whole,) = await segments.write(PREFIX, entries(1, 10))
    lost = whole.model_copy(update={"key": key_of(PREFIX, b"never written"), "first_seq": 2, "last_seq": 2})

    extended = await segments.extend(PREFIX, [whole, lost], entries(3, 10))

    assert extended.keep == 2
    assert [entry.seq for entry in await segments.read(extended.new[0])] == [3]


@pytest.mark.parametrize(
    ("wrong", "data"),
    [
        ("no entry", b"rubbish\n"),
        ("no entry", b'{"kind": "miracle", "seq": 1}\n'),
        ("not the ones", b"".join(line_of(entry) for entry in entries(2, 10))),
    ],
)
async def test_a_damaged_segment_is_named(blobs: DirectoryBlobs, wrong: str, data: bytes) -> None:
    segments = Segments(blobs)
    await blobs.put(key_of(PREFIX, data), data)
    damaged = e.Segment(key=key_of(PREFIX, data), first_seq=1, last_seq=1, size=len(data))

    with pytest.raises(DamagedSegment, match=wrong):
        await segments.read(damaged)
    with pytest.raises(DamagedSegment, match="entries 1 to 1"):
        await segments.read(damaged.model_copy(update={"key": "../../etc/passwd"}))
