"""What tools tell while they work: line by line from programs, from threads too, and to nobody where nobody asked."""

import asyncio

from longhaul.activities.masker import Masker
from longhaul.activities.process.program_output import (
    LONGEST_LINE,
    MOST_BYTES,
    ClippedBytes,
    MaskedBytes,
    ToldBytes,
    progress,
    told_to,
)


def sink() -> tuple[ToldBytes, ClippedBytes]:
    kept = ClippedBytes()
    return ToldBytes(MaskedBytes(kept, Masker({}))), kept


def test_a_programs_output_is_told_by_whole_lines_and_kept_as_it_is() -> None:
    told: list[str] = []
    output, kept = sink()
    with told_to(told.append):
        for chunk in (b"on", b"e\ntw", b"o\nth", b"ree \xe2", b"\x82\xac\0"):
            output.add(chunk)
        output.end()

    assert told == ["one\n", "two\n", "three €�"]
    assert kept.text() == "one\ntwo\nthree €�"


def test_a_line_without_an_end_is_told_when_it_is_long() -> None:
    told: list[str] = []
    output, _ = sink()
    with told_to(told.append):
        output.add(b"x" * (LONGEST_LINE + 1))

    assert told == ["x" * (LONGEST_LINE + 1)]


def test_a_flood_is_told_up_to_a_limit_and_kept_as_ever() -> None:
    told: list[str] = []
    output, kept = sink()
    with told_to(told.append):
        for _ in range(100):
            output.add(b"y\n" * 50_000)

    assert sum(map(len, told)) <= MOST_BYTES
    assert kept.total_bytes == 10_000_000


async def test_who_tells_from_a_thread_is_heard_and_calls_do_not_hear_each_other() -> None:
    heard: dict[str, list[str]] = {"a": [], "b": []}

    async def call(name: str) -> None:
        with told_to(heard[name].append):
            await asyncio.to_thread(progress, f"{name} from a thread")
            await asyncio.sleep(0)
            progress(f"{name} itself")

    await asyncio.gather(call("a"), call("b"))

    assert heard == {name: [f"{name} from a thread", f"{name} itself"] for name in ("a", "b")}


def test_outside_of_a_call_nobody_is_told() -> None:
    progress("to nobody")
