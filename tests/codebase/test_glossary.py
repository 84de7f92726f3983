"""The glossary has its words in order, defines each in one sentence, and names no code that is not there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")
WORDS, RETIRED = PAGE.split("\n## Retired words\n")
MOST_CHARACTERS = 130


def rows(text: str) -> list[list[str]]:
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return found[1:]


def test_each_word_has_one_row_in_alphabetical_order() -> None:
    words = [word for word, _ in rows(WORDS)]

    assert len(words) > 30
    assert words == sorted(set(words))


def test_a_word_is_defined_in_one_short_sentence() -> None:
    for word, meaning in rows(WORDS):
        sentence, _, _ = meaning.partition(" (in code: ")
        assert len(sentence) <= MOST_CHARACTERS, word
        assert re.fullmatch(r"[^.]+\.", sentence), word


def test_a_name_that_is_said_to_be_in_the_code_is_there() -> None:
    layers = ("longhaul/agent", "activities", "workflows", "longhaul/stores", "starter")
    code = "\n".join(file.read_text(encoding="utf-8") for layer in layers for file in (ROOT / layer).rglob("*.py"))
    named = re.findall(r"\(in code: `(\w+)`\)", WORDS)

    assert len(named) > 2
    assert [name for name in named if not re.search(rf"\b{name}\b", code)] == []


def test_no_word_is_both_used_and_retired() -> None:
    used = {word for word, _ in rows(WORDS)}
    retired = {word.partition(" (")[0] for left, _ in rows(RETIRED) for word in left.split(", ")}

    assert used & retired == set()


def test_the_readme_and_the_page_for_contributors_link_to_it() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        assert "](docs/GLOSSARY.md)" in (ROOT / page).read_text(encoding="utf-8"), page
