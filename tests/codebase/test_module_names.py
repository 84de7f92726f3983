"""Names of modules and classes: a newcomer can guess a file by its name."""

import ast
import re
from collections import Counter
from pathlib import Path

from tests.codebase.figures import DOORS, ROOMS, stems_of
from tests.codebase.syntax import tree_of
from tests.codebase.test_codebase import ROOT, name_of, python_files

PARTICIPLE = re.compile(r".+(ing|ed|en|told|kept|seen|held)")
NOUNS = {"children", "feed", "keyring", "loading", "matching", "pending", "screen", "steering", "token", "tracing"}
"""They end as a participle does, and are nouns."""
NAMED_BY_A_VERB: set[str] = set()
NAMED_TWICE: dict[str, str] = {}
"""A file name to the reason why a room has it twice."""
RENAMED = {"workflows: contract as world", "activities/shell: tree as shell_tree"}
"""By folder. `workflows/` has a contract of its own."""
QUESTION = re.compile(r"(What|Which|Who|Whose|Whom|How|When|Where|Why|Whether|Of)\b")


def modules() -> list[Path]:
    return [path for path in (*python_files(*ROOMS), ROOT / "worker.py", *DOORS) if "demo/project" not in name_of(path)]


def last_word(path: Path) -> str:
    """The one that says what the file is: `stored_lives` are lives."""
    return path.stem.split("_")[-1]


def test_a_file_is_named_by_a_noun() -> None:
    """`announcing` says what the code does, and not what is in the file."""
    verbs = {name_of(path) for path in modules() if PARTICIPLE.fullmatch(last_word(path))}

    assert {name for name in verbs if last_word(Path(name)) not in NOUNS} == NAMED_BY_A_VERB


def test_no_name_stands_twice_in_a_room() -> None:
    """Whoever searches for a file by its name finds one."""
    twice = {stem for room in ROOMS for stem in stems_of(room)}

    assert twice == NAMED_TWICE.keys()


def test_a_module_of_ours_keeps_its_name_where_it_is_imported() -> None:
    """Only the entries have a second one, `e`: decisions and the state name dozens of them."""
    renamed = {
        f"{name_of(path.parent)}: {alias.name} as {alias.asname}"
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("longhaul")
        for alias in node.names
        if alias.asname not in (None, alias.name) and is_module(f"{node.module}.{alias.name}")
    }

    assert {each for each in renamed if not each.endswith("entries as e")} == RENAMED


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


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
