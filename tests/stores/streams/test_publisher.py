"""Publishing never waits and never raises; what could not be written is told."""

import asyncio
import hashlib
import time
from pathlib import Path

import pytest

from longhaul.stores.streams.publisher import BATCH_BYTES, MARKS_SECONDS, MOST_CHARACTERS, MOST_OF_AN_ATTEMPT, Publisher
from longhaul.stores.streams.stream_directory import DirectoryStreams
from longhaul.stores.streams.streams import Item, StreamsUnavailable, decode
from tests.limits import usual

pytestmark = pytest.mark.alone


class Sink(DirectoryStreams):
    """Keeps what it is given, slowly or not at all where a test says so."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"))
        self.writes: list[bytes] = []
        self.seconds = 0.0
        self.broken: Exception | None = None

    async def append(self, key: str, lines: bytes) -> None:
        await asyncio.sleep(self.seconds)
        if self.broken:
            raise self.broken
        self.writes.append(lines)

    def items(self) -> list[Item]:
        decoded = [decode(line) for write in self.writes for line in write.splitlines()]
        return [item for item in decoded if item is not None]


async def test_pieces_come_in_order_numbered_and_between_their_marks() -> None:
    sink = Sink()
    publisher = Publisher(sink)

    outlet = publisher.open("k", "model:0", turn=5, attempt=2, name="scripted:x")
    outlet.write("thinking", "hm")
    outlet.write("text", "For")
    outlet.write("text", "ty.", block=0)
    outlet.write("tool_call", '{"a"', block=2, tool_call_id="c1", name="send")
    outlet.end()
    await publisher.close()

    items = sink.items()
    assert [(item.kind, item.index, item.block, item.text) for item in items[:-1]] == [
        ("begin", 0, 0, ""),
        ("thinking", 1, 0, "hm"),
        ("text", 2, 0, "Forty."),
        ("tool_call", 3, 2, '{"a"'),
    ]
    assert items[-1].text == hashlib.sha256(b'hmForty.{"a"').hexdigest()[:16]
    assert {(item.call, item.turn, item.attempt) for item in items} == {("model:0", 5, 2)}
    assert (items[0].name, items[3].tool_call_id, items[3].name) == ("scripted:x", "c1", "send")


async def test_a_piece_leaves_soon_and_those_that_come_with_it_together() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    outlet = publisher.open("k", "model:0", turn=1, attempt=1)
    outlet.write("text", "0 ")
    await asyncio.sleep(MARKS_SECONDS / 2)
    assert sink.writes
    for number in range(1, 100):
        outlet.write("text", f"{number} ")
        await asyncio.sleep(0)
    assert [item.kind for item in sink.items()][:2] == ["begin", "text"]
    await publisher.close()
    assert len(sink.writes) < 20
    assert "".join(item.text for item in sink.items()) == "".join(f"{number} " for number in range(100))


async def test_arguments_and_marks_wait_for_each_other_but_not_behind_what_is_read() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    outlet = publisher.open("k", "model:0", turn=1, attempt=1)
    outlet.write("tool_call", "{}", tool_call_id="c1", name="send")
    await asyncio.sleep(MARKS_SECONDS / 4)
    assert not sink.writes

    outlet.write("text", "So.")
    await asyncio.sleep(MARKS_SECONDS / 4)
    outlet.write("tool_call", "x" * (BATCH_BYTES + 1), tool_call_id="c2", name="send")
    await asyncio.sleep(MARKS_SECONDS / 4)

    assert [item.kind for item in sink.items()][:3] == ["begin", "tool_call", "text"]
    assert sum(len(item.text) for item in sink.items()) > BATCH_BYTES
    await publisher.close()


async def test_arguments_that_were_shown_in_part_come_to_their_end_at_once() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    outlet = publisher.open("k", "model:0", turn=1, attempt=1)
    outlet.write("tool_call", '{"to": ', tool_call_id="c1", name="send")
    await asyncio.sleep(MARKS_SECONDS * 1.5)

    outlet.write("tool_call", '"Ana"}', tool_call_id="c1", name="send")
    outlet.end()
    await asyncio.sleep(MARKS_SECONDS / 4)

    assert [(item.kind, item.text) for item in sink.items()][1:3] == [("tool_call", '{"to": '), ("tool_call", '"Ana"}')]
    assert sink.items()[-1].kind == "end"
    await publisher.close()


async def test_a_slow_store_never_holds_up_who_publishes_and_what_is_dropped_is_told() -> None:
    sink = Sink()
    sink.seconds = 0.05
    publisher = Publisher(sink)
    outlet = publisher.open("k", "tool:a", turn=1, attempt=1)
    began = time.monotonic()
    for _ in range(MOST_CHARACTERS // 1_000 + 50):
        outlet.write("output", "x" * 1_000)
    assert time.monotonic() - began < usual(1.0)
    await asyncio.sleep(0.2)
    outlet.write("output", "the end")
    outlet.end()

    await publisher.close()

    kinds = [item.kind for item in sink.items()]
    assert kinds.count("lost") == 1
    assert kinds.index("lost") > kinds.index("output")
    assert [item.index for item in sink.items()] == list(range(len(kinds)))


async def test_a_flood_is_shown_up_to_a_limit() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    outlet = publisher.open("k", "tool:a", turn=1, attempt=1)
    for _ in range(MOST_OF_AN_ATTEMPT // 50_000 + 20):
        outlet.write("output", "y" * 50_000)
        await asyncio.sleep(0.01)
    outlet.end()
    await publisher.close()

    assert sum(len(item.text) for item in sink.items() if item.kind == "output") <= MOST_OF_AN_ATTEMPT
    assert [item.kind for item in sink.items()][-2:] == ["lost", "end"]


async def test_a_store_that_fails_is_left_alone_for_a_moment_and_the_gap_shows() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    outlet = publisher.open("k", "model:0", turn=1, attempt=1)
    await publisher.close()
    sink.broken = StreamsUnavailable("it is gone")
    outlet.write("text", "lost")
    await publisher.close()
    sink.broken = None
    outlet.write("text", "silent")
    await publisher.close()
    await asyncio.sleep(1.1)
    outlet.write("text", "heard")
    await publisher.close()

    assert [(item.index, item.text) for item in sink.items()] == [(0, ""), (3, "heard")]


async def test_a_store_of_anybodys_may_raise_what_it_likes() -> None:
    sink = Sink()
    sink.broken = ZeroDivisionError()
    publisher = Publisher(sink)
    publisher.wake("k")

    await publisher.close()

    assert sink.items() == []


async def test_tools_in_threads_may_write_too() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    outlet = publisher.open("k", "tool:a", turn=1, attempt=1)

    def work() -> None:
        for number in range(100):
            outlet.write("output", f"{number};")

    await asyncio.to_thread(work)
    await asyncio.sleep(0)
    await publisher.close()

    assert "".join(item.text for item in sink.items()) == "".join(f"{number};" for number in range(100))


async def test_many_wakes_are_one() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    for _ in range(50):
        publisher.wake("k")
    await publisher.close()

    assert [item.kind for item in sink.items()] == ["wake"]


class HoldsBack:
    """Keeps all but the first character until the block's end."""

    def __init__(self) -> None:
        self.kept = ""

    def feed(self, piece: str) -> str:
        self.kept += piece
        shown, self.kept = self.kept[:1], self.kept[1:]
        return shown.upper()

    def end(self) -> str:
        return self.kept


async def test_each_block_passes_a_mask_of_its_own_which_may_hold_text_back() -> None:
    sink = Sink()
    publisher = Publisher(sink, HoldsBack)
    outlet = publisher.open("k", "model:0", turn=1, attempt=1)
    outlet.write("text", "abc", block=0)
    outlet.write("text", "xyz", block=1)
    outlet.end()
    await publisher.close()

    texts = {
        block: "".join(item.text for item in sink.items() if item.kind == "text" and item.block == block)
        for block in (0, 1)
    }
    assert texts == {0: "Abc", 1: "Xyz"}


async def test_marks_go_with_what_follows_them() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    publisher.open("k", "tool:a", turn=1, attempt=1).end()
    await asyncio.sleep(0.005)
    publisher.open("k", "model:1", turn=2, attempt=1).write("text", "On.")
    await publisher.close()

    assert len(sink.writes) == 1
    assert [item.kind for item in sink.items()] == ["begin", "end", "begin", "text"]


async def test_marks_alone_are_written_after_a_moment() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    publisher.open("k", "tool:a", turn=1, attempt=1)
    await asyncio.sleep(MARKS_SECONDS * 1.5)

    assert [item.kind for item in sink.items()] == ["begin"]


async def test_the_end_of_a_reply_is_told_at_once() -> None:
    sink = Sink()
    publisher = Publisher(sink)
    publisher.wake("k", settled=True)
    await asyncio.sleep(MARKS_SECONDS / 4)

    assert [(item.kind, item.name) for item in sink.items()] == [("wake", "settled")]
    await publisher.close()
