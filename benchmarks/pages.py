"""docs/benchmarks.md has several writers; each replaces what stands between its own marks and nothing else."""


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
