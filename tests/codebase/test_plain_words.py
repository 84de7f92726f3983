"""Pages for readers are in plain words: the words that the glossary retires do not come back."""

import re
from pathlib import Path

import pytest

from docs.making.reference import PAGES as REFERENCE
from tests.codebase.test_site import FOR_USERS

ROOT = Path(__file__).parents[2]
QUOTING = {"GLOSSARY.md", *REFERENCE}
"""The glossary quotes the retired words, and the pages of reference quote the code."""
PAGES = ["README.md", "docs/architecture.md", *(f"docs/{page}" for page in FOR_USERS if page not in QUOTING)]
RETIRED = (
    "anew",
    "begun",
    "beside",
    "doubt",
    "firing",
    "findings",
    "held",
    "ledger",
    "letter",
    "mend",
    "mended",
    "mends",
    "one's own",
    "roll-over",
    "roll-overs",
    "rubbish",
    "settle",
    "settled",
    "settles",
    "spelt",
    "told",
    "unasked",
    "whoever",
    "(?:are|is|was|were) away",
)
"""Patterns of whole words. Each has no other use on these pages."""


def prose_of(page: str) -> str:
    """Without code, the targets of links, and the rows of operations, which are the program's own words."""
    prose = re.sub(r"(?ms)^ *```.*?^ *```", "", page)
    prose = re.sub(r"(?m)^\|.*`POST …/.*$", "", prose)
    prose = re.sub(r"`[^`]*`", "", prose)
    return re.sub(r"\]\([^)]*\)", "]", prose)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_for_readers_has_no_retired_word(page: str) -> None:
    prose = prose_of((ROOT / page).read_text(encoding="utf-8"))

    found = re.findall(rf"(?i)(?<![\w-])(?:{'|'.join(RETIRED)})(?![\w-])", prose)

    assert found == []


def test_code_and_targets_of_links_are_no_prose() -> None:
    page = "See [here](letters.md#told) `settle`.\n```sh\nlonghaul resolve\n```\nDone."

    assert prose_of(page) == "See [here] .\n\nDone."
