"""The steps of a pipeline: rows of a CSV file are checked here, and an external system loads them."""

import csv
from pathlib import Path

from longhaul import tool


@tool(effect="read", read_only=True)
def check(file: str) -> str:
    """Count the rows of a CSV file, and name those whose amount is no number."""
    with Path(file).open(newline="") as text:
        rows = [*csv.DictReader(text)]
    wrong = [str(number) for number, row in enumerate(rows, start=1) if not row["euros"].isdecimal()]
    return f"{len(rows)} rows; wrong: {', '.join(wrong) or 'none'}"


LOADED = {"type": "object", "required": ["loaded"], "properties": {"loaded": {"type": "integer"}}}


@tool(is_external_tool=True, result_schema=LOADED)
def load(file: str, table: str) -> str:
    """Have the warehouse load a CSV file into a table; the result says how many rows the table has."""
    raise NotImplementedError
