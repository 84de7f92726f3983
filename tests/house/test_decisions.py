"""The pages of decisions: one form, one subject to a page, and a line for each in the table of contents."""

import re
from pathlib import Path

import pytest

from tests.house.headings import anchor_of

ROOT = Path(__file__).parents[2]
CONTENTS = (ROOT / "DECISIONS.md").read_text(encoding="utf-8")
PAGES = sorted((ROOT / "docs" / "decisions").glob("*.md"))
FIELDS = ("Question", "Choice", "Cost", "Gain", "What would change it")
NEEDED = {"Choice", "Cost", "What would change it"}

HEADING = re.compile(r"(?m)^## (.*)$")
LINE = re.compile(r"(?m)^- (\d{4}-\d{2}-\d{2}) \[(.+)\]\(docs/decisions/(\w+)\.md#(\S+)\)$")


def headings(page: Path) -> list[tuple[str, str]]:
    """Date and question of each decision on the page, as they stand there."""
    found = [re.fullmatch(r"(\d{4}-\d{2}-\d{2}) — (.+\?)", heading) for heading in headed(page)]

    assert None not in found, headed(page)
    return [(match[1], match[2]) for match in found if match]


def headed(page: Path) -> list[str]:
    return HEADING.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_decision_says_what_was_chosen_what_it_costs_and_what_would_change_it(page: Path) -> None:
    _, *entries = HEADING.split(page.read_text(encoding="utf-8"))

    for heading, body in zip(entries[::2], entries[1::2], strict=True):
        labels = re.findall(r"(?m)^\*\*(.+?)\.\*\* (?=\S)", body)
        assert labels == [label for label in FIELDS if label in labels], heading
        assert set(labels) >= NEEDED, heading
        assert body.strip().startswith("**"), heading


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_newest_decision_of_a_subject_stands_on_top(page: Path) -> None:
    dates = [date for date, _ in headings(page)]

    assert dates
    assert dates == sorted(dates, reverse=True)


def test_the_contents_have_one_line_for_each_decision_in_the_order_of_its_page() -> None:
    written = {(page.stem, *entry, anchor_of(" — ".join(entry))) for page in PAGES for entry in headings(page)}
    listed = [(page, date, question, anchor) for date, question, page, anchor in LINE.findall(CONTENTS)]

    assert set(listed) == written
    assert len(listed) == len(written)
    for page in PAGES:
        assert [entry[1:3] for entry in listed if entry[0] == page.stem] == headings(page)


def test_the_contents_hold_no_decision_themselves() -> None:
    """A decision that is written here would be missing from the page of its subject."""
    assert re.findall(r"(?m)^(?:## \d|\*\*).*", CONTENTS) == []


def test_no_question_is_decided_twice() -> None:
    questions = [question for page in PAGES for _, question in headings(page)]

    assert len(questions) == len(set(questions))
