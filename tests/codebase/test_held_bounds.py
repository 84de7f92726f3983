"""Each number of `longhaul/agent` that has a name is held by a test: `held_bounds.toml` says by which one.

That test was seen to fail when the number was ten times larger. Who adds a number, or changes such a test, tries the
same before the list says so.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.codebase.syntax import tree_of

ROOT = Path(__file__).parents[2]
HELD: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("held_bounds.toml").read_text("utf-8"))
VERSIONS = {"decision": {"BEHAVIOUR"}}
"""They bound nothing."""
PARTS = (ast.Tuple, ast.Load, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Constant)


def is_number(value: ast.expr) -> bool:
    """Also one that is worked out of others, as `24 * 3_600`, or several."""
    parts = [*ast.walk(value)]
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    return all(isinstance(part, PARTS) for part in parts) and all(type(each) in (int, float) for each in numbers)


def numbers_in(path: Path) -> Iterator[str]:
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and is_number(node.value):
            names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
            yield from (name for name in names if name.isupper())


def test_each_named_number_is_held_by_a_test() -> None:
    agent = ROOT / "longhaul" / "agent"
    found = {
        path.relative_to(agent).with_suffix("").as_posix(): names
        for path in sorted(agent.rglob("*.py"))
        if (names := {*numbers_in(path)})
    }

    assert found == VERSIONS | {file: {*tests} for file, tests in HELD.items()}


def test_those_tests_are_there() -> None:
    named = {test for tests in HELD.values() for test in tests.values()}
    there = {
        f"{file}::{node.name}"
        for file in {test.partition("::")[0] for test in named}
        for node in ast.walk(tree_of(ROOT / file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }

    assert named - there == set()
