"""The pages of decisions: one form, one subject to a page, and a line for each in the list that the site shows."""

import re
from pathlib import Path

import pytest

from docs.making.reference import decisions

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for page in (ROOT / "docs" / "decisions").glob("*.md") if page.stem != "index")
FIELDS = ("Question", "Choice", "Cost", "Gain", "What would change it")
NEEDED = {"Choice", "Cost", "What would change it"}

HEADING = re.compile(r"(?m)^## (.*)$")
LINE = re.compile(r"(?m)^- (\d{4}-\d{2}-\d{2}) \[(.+)\]\((\w+)\.md#(\S+)\)$")


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


def test_the_list_that_the_site_shows_has_one_line_for_each_decision_in_the_order_of_its_page() -> None:
    listed = [(page, date, question) for date, question, page, _ in LINE.findall(decisions())]

    assert listed == [(page.stem, *entry) for page in PAGES for entry in headings(page)]


def test_no_question_is_decided_twice() -> None:
    questions = [question for page in PAGES for _, question in headings(page)]

    assert len(questions) == len(set(questions))
