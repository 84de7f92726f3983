"""What the measurement of decisions makes of its figures, and that it takes what it says."""

from pathlib import Path

from benchmarks.permission_speed import DECISIONS, MIXED, Took, lines, rows, section
from tests.activities.corpora.stage import build

FIGURES = [Took(MIXED, 30, [number / 100 for number in range(100)], [0.5] * 100)]


def test_a_row_has_the_median_and_the_tail_of_both_clocks() -> None:
    assert rows(FIGURES) == [("mixed", "30", "0.50", "0.95", "0.50", "0.50")]


def test_the_page_says_what_is_meant() -> None:
    said = section(FIGURES)

    assert "| mixed | 30 | 0.50 | 0.95 | 0.50 | 0.50 |" in said
    assert said.endswith("Target: a p95 of at most 2 ms over the mixed lines.")


def test_as_many_lines_are_decided_on_as_is_said_and_the_mixed_ones_are_of_each_kind(tmp_path: Path) -> None:
    texts = lines(build(tmp_path))

    assert {len(each) for each in texts.values()} == {DECISIONS}
    assert texts[MIXED][:3] == [texts[kind][0] for kind in ("plain", "in a chain", "hostile")]
