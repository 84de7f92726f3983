"""The glossary has its words in order, says each in a sentence or two, and leads to files that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")
MOST_CHARACTERS = 200


def rows(text: str) -> list[list[str]]:
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return found[1:]


def test_words_stand_once_and_in_order() -> None:
    words = [row[0] for row in rows(PAGE)]

    assert len(words) > 30
    assert words == sorted(set(words))


def test_a_word_is_said_in_a_sentence_or_two() -> None:
    for word, meaning, _ in rows(PAGE):
        assert len(meaning) <= MOST_CHARACTERS, word
        assert 1 <= len(re.findall(r"[a-z`)]\.(?: |$)", meaning)) <= 2, word


def test_a_word_leads_to_where_it_is_read_about() -> None:
    missing = [(word, place) for word, _, place in rows(PAGE) if not (ROOT / place.strip("`")).is_file()]

    assert missing == []


def test_the_readme_and_the_house_lead_to_it() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        assert "](docs/GLOSSARY.md)" in (ROOT / page).read_text(encoding="utf-8"), page
