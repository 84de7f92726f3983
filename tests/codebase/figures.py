"""Figures of the codebase, from its syntax trees: `python -m tests.codebase.figures` prints them.

`test_law.py` holds the code to some of them. docs/architecture.md says what they were.
"""

import ast
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.codebase.syntax import tree_of

ROOT = Path(__file__).parents[2]
ROOMS = ("longhaul/agent", "longhaul/stores", "workflows", "activities", "starter")
"""Where the sources are; `longhaul/` holds links to those that lie beside it."""
DOORS = (ROOT / "longhaul" / "plugin.py", ROOT / "longhaul" / "workflow.py", ROOT / "longhaul" / "nexus.py")
"""Modules that applications import by name."""
LOADED_BY_HAND = "demo/project"
"""A sample project, broken on purpose: no part of the code."""


def source_files() -> list[Path]:
    """Every Python file of the rooms that holds code, the worker and the test kit."""
    found = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if path.stat().st_size]
    kit = ROOT / "longhaul" / "testing.py", ROOT / "longhaul" / "pytest_plugin.py"
    return [path for path in (*found, ROOT / "worker.py", *DOORS, *kit) if LOADED_BY_HAND not in path.as_posix()]


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def import_lines(path: Path) -> int:
    nodes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


@dataclass(frozen=True)
class Function:
    path: Path
    name: str
    lines: int
    """Without its docstring and its decorators."""
    called_once: bool
    """Private, and named at one place of its file beside its definition."""


def functions_of(path: Path) -> list[Function]:
    tree = tree_of(path)
    named = Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            named[node.id] += 1
        elif isinstance(node, ast.Attribute):
            named[node.attr] += 1
    return [
        Function(path, node.name, _body_lines(node), _is_private(node.name) and named[node.name] == 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def stems_of(room: str) -> dict[str, list[str]]:
    """Each file name that stands twice in a room, with where."""
    places = defaultdict[str, list[str]](list)
    for path in source_files():
        if path.is_relative_to(ROOT / room) and path.stem not in ("__init__", "__main__"):
            places[path.stem].append(path.relative_to(ROOT).as_posix())
    return {stem: paths for stem, paths in places.items() if len(paths) > 1}


def report() -> dict[str, str]:
    files = source_files()
    sizes = [lines_of(path) for path in files]
    functions = [function for path in files for function in functions_of(path)]
    once = [function for function in functions if function.called_once]
    return {
        "files": f"{len(files)}",
        "lines": f"{sum(sizes)}",
        "lines of a file, median": f"{median(sizes):g}",
        "lines that import": f"{sum(map(import_lines, files)) / sum(sizes):.1%}",
        "functions": f"{len(functions)}",
        "private functions called once": f"{len(once)} ({len(once) / len(functions):.1%})",
        "... of at most four lines": f"{sum(function.lines <= 4 for function in once)}",
        "file names that stand twice in a room": f"{sum(len(stems_of(room)) for room in ROOMS)}",
    }


if __name__ == "__main__":
    for name, figure in report().items():
        print(f"{name:40} {figure}")
