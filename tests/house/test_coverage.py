"""The page about what works has each row once, a verdict that its other columns bear out, and tests that exist."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
COLUMNS = ["row", "asks for", "verdict", "missing", "tests"]
VERDICTS = ("done", "part", "not begun")
GROUPS = {"A": 11, "B": 7, "C": 13, "D": 9, "E": 12, "F": 7, "X": 21}
"""How many rows each letter has: the promises that Longhaul set out with."""


class Row(NamedTuple):
    label: str
    asks: str
    verdict: str
    missing: str
    tests: str


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows() -> list[Row]:
    lines = [cells(line) for line in PAGE.splitlines() if re.match(r"\| [A-Z]\d+ \|", line)]

    assert [line for line in lines if len(line) != len(COLUMNS)] == []
    return [Row(*line) for line in lines]


def known_tests() -> set[str]:
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    return {name for text in files for name in re.findall(r"(?m)^(?:async )?def (test_\w+)\(", text)}


def test_each_row_stands_once_and_in_order() -> None:
    wanted = [f"{letter}{number}" for letter, last in GROUPS.items() for number in range(1, last + 1)]

    assert [row.label for row in rows()] == wanted


def test_each_letter_has_a_table_of_the_same_columns() -> None:
    assert PAGE.count(f"| {' | '.join(COLUMNS)} |") == len(GROUPS)


def test_a_verdict_is_borne_out_by_what_is_missing_and_by_tests() -> None:
    for row in rows():
        assert row.asks, row
        assert row.verdict in VERDICTS, row
        assert (row.missing == "-") == (row.verdict == "done"), row
        assert (row.tests == "-") == (row.verdict == "not begun"), row


def test_the_sum_is_that_of_the_rows() -> None:
    count = Counter(row.verdict for row in rows())

    assert ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS) + "." in PAGE.splitlines()


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(test_\w+)`", PAGE)

    assert len(named) > sum(GROUPS.values())
    assert sorted(set(named) - known_tests()) == []


def test_each_row_names_tests_and_nothing_else_as_its_tests() -> None:
    odd = [row.label for row in rows() if not re.fullmatch(r"-|`test_\w+`(, `test_\w+`)*", row.tests)]

    assert odd == []


def test_what_survives_is_proven_row_by_row_as_the_readme_tells_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    promised = section_rows(readme, "## What survives what")
    proven = section_rows(PAGE, "## The README's table of what survives")

    assert len(promised) > 10
    assert [row[0] for row in proven] == [row[0] for row in promised]
    assert [row for row in proven if not row[1].startswith("`test_")] == []


def section_rows(text: str, heading: str) -> list[list[str]]:
    section = text.split(heading, maxsplit=1)[1].split("\n## ", maxsplit=1)[0]
    return [cells(line) for line in section.splitlines() if line.startswith("| ")][1:]
