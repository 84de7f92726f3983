"""The page about what works has each row once, and each row has the tests that its verdict needs."""

from collections import Counter
from pathlib import Path

from docs.making.proofs import COLUMNS, PAGE, Row, cells, proofs, rows, with_proofs

ROOT = Path(__file__).parents[2]
TEXT = PAGE.read_text(encoding="utf-8")
VERDICTS = ("done", "part", "not started")
GROUPS = {"A": 11, "B": 7, "C": 13, "D": 9, "E": 12, "F": 7, "X": 23}
"""How many rows each operation has: the promises that Longhaul set out with."""


def promises() -> list[Row]:
    return [row for row in rows(TEXT) if row.label[0] in GROUPS]


def test_each_row_stands_once_and_in_order() -> None:
    wanted = [f"{operation}{number}" for operation, last in GROUPS.items() for number in range(1, last + 1)]

    assert [row.label for row in promises()] == wanted


def test_each_operation_and_what_survives_have_a_table_of_the_same_columns() -> None:
    assert TEXT.count(COLUMNS) == len(GROUPS) + 1


def test_each_row_says_what_it_asks_for_and_what_is_missing_is_said_of_a_part_alone() -> None:
    for row in promises():
        assert row.asks, row
        assert row.verdict in VERDICTS, row
        assert (row.missing == "-") == (row.verdict == "done"), row


def test_the_sum_is_that_of_the_rows() -> None:
    count = Counter(row.verdict for row in promises())

    assert ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS) + "." in TEXT.splitlines()


def test_every_mark_names_a_row_that_there_is() -> None:
    assert sorted(proofs().keys() - {row.label for row in rows(TEXT)}) == []


def test_the_site_names_the_tests_of_each_row() -> None:
    shown = [line for line in with_proofs(TEXT).splitlines() if line.startswith("| X2 |")]

    assert len(shown) == 1
    assert "| done | - | `test_" in shown[0]


def test_what_survives_is_proven_row_by_row_as_the_readme_tells_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## What survives what", maxsplit=1)[1].split("\n## ", maxsplit=1)[0]
    promised = [cells(line)[0] for line in section.splitlines() if line.startswith("| ")][1:]
    proven = [row for row in rows(TEXT) if row.label.startswith("S")]

    assert len(promised) > 10
    assert [row.asks for row in proven] == promised
    assert [row for row in proven if row.verdict != "done"] == []
