"""Which tests prove which row of docs/coverage.md, read from their marks: `@pytest.mark.proves("A1", "X3")`.

The page in the repository holds what is promised and what is missing of it. The site adds the verdict and the tests.
`python -m docs.making.proofs A1` prints the tests of one row.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "coverage.md"
COLUMNS = "| row | asks for | missing |"
RULE = "|---|---|---|"
LABEL = re.compile(r"\| [A-Z]\d+ \|")
NOTHING = "-"


class Row(NamedTuple):
    label: str
    asks: str
    missing: str

    @property
    def verdict(self) -> str:
        if self.label not in proofs():
            return "not started"
        return "done" if self.missing == NOTHING else "part"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows(page: str) -> list[Row]:
    """In the page's order. Raises TypeError for a row of other columns."""
    return [Row(*cells(line)) for line in page.splitlines() if LABEL.match(line)]


@cache
def proofs() -> dict[str, list[str]]:
    """For each label the names of its tests, sorted; a label that no test bears is not in it."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.proves(" in text:
            for label, test in _marked(ast.parse(text)):
                found.setdefault(label, set()).add(test)
    return {label: sorted(tests) for label, tests in sorted(found.items())}


def _marked(module: ast.Module) -> Iterator[tuple[str, str]]:
    for test in module.body:
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in test.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.proves":
                    yield from ((str(ast.literal_eval(label)), test.name) for label in mark.args)


def with_proofs(page: str) -> str:
    """The page as the site shows it: each row with its verdict and its tests."""
    lines = []
    for line in page.splitlines():
        if line == COLUMNS:
            lines.append("| row | asks for | verdict | missing | tests |")
        elif line == RULE:
            lines.append("|---|---|---|---|---|")
        elif LABEL.match(line):
            row = Row(*cells(line))
            tests = ", ".join(f"`{test}`" for test in proofs().get(row.label, [])) or NOTHING
            lines.append(f"| {row.label} | {row.asks} | {row.verdict} | {row.missing} | {tests} |")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print("\n".join(proofs().get(sys.argv[1], [])))
