"""Names of modules and classes: a newcomer can guess a file by its name, or finds it in the glossary."""

import ast
import re
from collections import Counter
from pathlib import Path

from tests.house.syntax import tree_of
from tests.house.test_glossary import FILES, rows
from tests.house.test_house import ROOMS, ROOT, name_of, python_files

PARTICIPLE = re.compile(r".+(ing|ed|en|told|kept|seen|held)")
NO_PARTICIPLES = {"children", "feed", "keyring", "pending", "screen", "token"}
QUESTION = re.compile(r"(What|Which|Who|Whose|Whom|How|When|Where|Why|Whether|Of)\b")


def modules() -> list[Path]:
    return [path for path in (*python_files(*ROOMS), ROOT / "worker.py") if "demo/project" not in name_of(path)]


def last_word(path: Path) -> str:
    """The one that says what the file is: `stored_lives` are lives."""
    return path.stem.split("_")[-1]


def test_a_file_that_is_named_by_a_verb_stands_in_the_glossary() -> None:
    explained = {row[0] for row in rows(FILES)}
    verbs = {last_word(path) for path in modules() if PARTICIPLE.fullmatch(last_word(path))}

    assert verbs - NO_PARTICIPLES == explained


def test_no_public_class_has_the_name_of_another_one() -> None:
    names = Counter(
        node.name
        for path in modules()
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )

    assert [name for name, times in names.items() if times > 1] == []


def test_a_module_says_what_it_is_and_asks_nothing() -> None:
    """`What becomes of …` has to be decoded: whoever looks for something reads fifty of these lines."""
    openings = {name_of(path): ast.get_docstring(tree_of(path)) for path in modules()}

    assert [name for name, opening in openings.items() if opening and QUESTION.match(opening)] == []
