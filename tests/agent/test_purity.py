"""longhaul/agent computes: it reads no clock, no file, no environment, and rolls no dice."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from longhaul import agent
from tests.codebase.syntax import tree_of

ROOM = Path(agent.__file__).parent
FILES = sorted(ROOM.rglob("*.py"))
FORBIDDEN = {
    "asyncio", "concurrent", "glob", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "select",
    "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib",
    "uuid", "temporalio", "httpx",
}  # fmt: skip
NOW = {"now", "utcnow", "today", "uuid4", "urandom", "getenv", "environ"}
BUILTINS = {"open", "input", "print", "exec", "eval", "compile", "__import__", "id", "hash", "globals"}
"""`hash` and `id` differ from one process to the next: an order made from them would not replay."""


def _is_world(module: str) -> bool:
    first = module.split(".", maxsplit=1)[0]
    return first in FORBIDDEN or (first == "longhaul" and not module.startswith("longhaul.agent"))


def _sins(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if _is_world(alias.name))
            case ast.ImportFrom(module=str(module)) if _is_world(module):
                yield module
            case ast.Attribute(attr=attr) if attr in NOW:
                yield attr
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                yield name
            case _:
                pass


def test_every_file_of_the_package_is_looked_at() -> None:
    assert {"journal.py", "decision.py", "all_operations.py", "decision_table.py"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOM)))
def test_a_file_of_the_package_only_computes(path: Path) -> None:
    assert list(_sins(tree_of(path))) == []


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "import os.path",
        "from longhaul.stores import names",
        "from longhaul import worker",
        "from uuid import uuid4",
        "datetime.now(UTC)",
        "open('x')",
        "hash('x')",
    ],
)
def test_a_sin_would_be_found(line: str) -> None:
    assert list(_sins(ast.parse(line)))
