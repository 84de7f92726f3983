"""docs/benchmarks.md has several writers; each replaces what stands between its own marks and nothing else."""

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path


def with_section(page: str, name: str, section: str) -> str:
    """The page with that section in place of its former one, or at the end. Raises ValueError for half a mark."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    written = f"{begin}\n{section.strip()}\n{end}"
    if begin not in page and end not in page:
        return f"{page.rstrip()}\n\n{written}\n"
    before, opened, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise ValueError(f"the page has only one of {begin!r} and {end!r}, or has them in the wrong order; put both")
    return f"{before}{written}{after}"


def publish(docs: Path, name: str, section: str, raw: object) -> None:
    """Write the section of that name, and the raw samples beside the page: of a list, each on a line."""
    page = docs / "benchmarks.md"
    page.write_text(with_section(page.read_text(), name, section))
    each = raw if isinstance(raw, list) else None
    text = json.dumps(raw, indent=1) if each is None else "[\n" + ",\n".join(map(json.dumps, each)) + "\n]"
    (docs / "benchmarks" / f"{name}.json").write_text(f"{text}\n")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table in Markdown."""
    return [f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *rows)]


def p95(values: Sequence[float]) -> float:
    """The value that 95 % do not exceed; of few it is the largest."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def spread(values: Sequence[float], digits: int = 2) -> list[str]:
    """Median, p95 and maximum, for a table."""
    return [f"{number:.{digits}f}" for number in (statistics.median(values), p95(values), max(values))]
