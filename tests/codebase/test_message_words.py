"""Messages, help and the console's pages have no retired word: the program speaks as the pages do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.codebase.figures import source_files
from tests.codebase.syntax import tree_of
from tests.codebase.test_plain_words import RETIRED

ROOT = Path(__file__).parents[2]
WORDS = (*(word for word in RETIRED if word != "letter"), "letter reception", "rolls? over")
"""Patterns of whole words. *letter* stays: names are made of letters and digits."""
PATTERN = re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(WORDS)})(?![\w-])")
TEMPLATES = sorted((ROOT / "starter" / "console" / "templates").glob("*.html"))
MOST_MESSAGES = 20_000


def messages_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each string of several words that is no docstring; of an f-string each part."""
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip() and id(node) not in docstrings:
                yield node.lineno, text
            case _:
                pass


def prose(text: str) -> str:
    """Without what stands in backticks: commands, flags and values have the names that the program gives them."""
    return re.sub(r"`[^`\n]*`", "", text)


def prose_of_template(text: str) -> str:
    """Without tags, and without what the page fills in."""
    return re.sub(r"(?s)\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}|<[^>]*>", " ", text)


def retired_in(path: Path) -> list[str]:
    found = ((line, PATTERN.search(prose(text))) for line, text in messages_in(tree_of(path)))
    return [f"{path.relative_to(ROOT)}:{line}: {match[0]}" for line, match in found if match]


SHELL_PROGRAM = "activities/process/container.py"
"""Its script for a container's shell writes a mark that its other half reads."""


def test_no_message_and_no_help_has_a_retired_word() -> None:
    paths = [path for path in source_files() if path.relative_to(ROOT).as_posix() != SHELL_PROGRAM]

    assert [line for path in paths for line in retired_in(path)] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_page_of_the_console_has_a_retired_word(template: Path) -> None:
    assert PATTERN.findall(prose_of_template(template.read_text(encoding="utf-8"))) == []


def test_what_is_searched_is_what_people_read() -> None:
    code = '''
"""Told once."""
def told() -> None:
    """Whoever asks."""
    raise Refused(f"call {call!r} was told off; see `longhaul resolve`", "told")
'''
    found = [prose(text) for _, text in messages_in(ast.parse(code))]

    assert found == [" was told off; see "]
    assert PATTERN.findall(prose_of_template("<b told>{{ told }}{# told #}It was told.</b>")) == ["told"]


def test_messages_are_found_at_all() -> None:
    count = sum(1 for path in source_files() for _ in messages_in(tree_of(path)))

    assert 3_000 < count < MOST_MESSAGES
