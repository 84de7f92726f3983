"""What the measurements without a contender make of their marks."""

import itertools
import os

import pytest

from benchmarks.measure import memory_bytes
from benchmarks.parked import Parked
from benchmarks.parked import section as parked_section
from benchmarks.soak import Mark, Soak, rows, section, stretches


def mark(steps: int, wall: float) -> Mark:
    return Mark(
        steps=steps, wall=wall, worker_cpu=wall / 2, server_cpu=wall, worker_bytes=2**20, blob_bytes=steps * 10,
        compressions=0,
    )  # fmt: skip


@pytest.mark.proves("X18")
def test_a_stretch_costs_what_lies_between_its_marks() -> None:
    first, second = stretches([mark(0, 0), mark(100, 2_000), mark(300, 8_000)])

    assert (first.per_step("wall"), second.per_step("wall")) == (20.0, 30.0)
    assert second.per_step("blob_bytes") == 10


def test_the_parts_of_a_long_session_leave_no_step_out() -> None:
    marks = [mark(steps, steps) for steps in range(0, 10_250, 250)]

    parts = stretches(marks)

    assert (parts[0].begin.steps, parts[-1].end.steps, len(parts)) == (0, 10_000, 10)
    assert all(before.end == after.begin for before, after in itertools.pairwise(parts))


def test_the_page_has_a_line_for_each_part_of_a_soak() -> None:
    found = Soak((mark(0, 0), mark(100, 2_000)), events=1_200, history_bytes=400_000, runs=1, messages=201)

    assert section(found).count("| 0 to 100 | 20.0 | 10.0 | 20.0 |") == len(rows(found)) == 1
    assert "12.0 events" in section(found)


def test_the_page_tells_how_soon_a_parked_session_answers() -> None:
    times = tuple(float(number) for number in range(1, 101))
    text = parked_section(Parked(1_000, 2**20, 2**21, 2**21, times, times))

    assert "1,000 sessions" in text
    assert "95 ms (p95)" in text


def test_a_process_that_runs_holds_memory() -> None:
    assert memory_bytes(os.getpid()) > 2**20
