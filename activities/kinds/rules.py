"""Looks at the source of a module in which a kind stands, before a worker takes it: what it imports, and which built-in
functions it names.

A reply is made anew from its beginning at each step, so that a clock, a file or chance would lead each time elsewhere.
This finds mistakes; it is no wall against malice: a kind is the operator's own code, as tools are.
"""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from longhaul.agent.plain.errors import BadSetup

COMPUTING = frozenset({
    "__future__", "abc", "base64", "bisect", "collections", "copy", "dataclasses", "decimal", "difflib", "enum",
    "fractions", "functools", "hashlib", "heapq", "html", "itertools", "json", "math", "numbers", "operator",
    "pydantic", "re", "statistics", "string", "textwrap", "types", "typing", "typing_extensions", "unicodedata",
})  # fmt: skip
"""Modules that compute, and nothing else; `longhaul` itself counts too, but none of its rooms."""

REACHING = frozenset({
    "__import__", "breakpoint", "compile", "eval", "exec", "globals", "hash", "id", "input", "open", "print",
})  # fmt: skip
"""Built-in functions that reach the world, or say something else in each process."""

WHY = (
    "its steps have to come out the same each time. What it needs of the world it asks its session for: a tool, "
    "another agent, its model (docs/agents/kinds.md)"
)


class KindSetupError(BadSetup):
    """The operator's mistake: a kind with a wrong name, or one whose module does what a kind may not."""


def check_module(name: str) -> None:
    """Raises KindSetupError with module and line of the first thing that a kind may not do; modules of the same package
    that it imports are looked at too."""
    top, seen, waiting = name.partition(".")[0], set[str](), [name]
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        path = _source_of(module)
        if path is None:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            _check_names(node, module)
            for imported in _imports(node, module, is_package=path.name == "__init__.py"):
                if imported.partition(".")[0] == top and "." in imported:
                    waiting.append(imported)
                elif not _computes(imported):
                    raise _refused(module, node, f"imports {imported!r}")


def _computes(imported: str) -> bool:
    first, _, rest = imported.partition(".")
    return first in COMPUTING or (first == "longhaul" and "." not in rest)


def _check_names(node: ast.AST, module: str) -> None:
    if isinstance(node, ast.Name) and node.id in REACHING:
        raise _refused(module, node, f"uses {node.id!r}")
    if isinstance(node, ast.Global):
        raise _refused(module, node, f"changes {node.names[0]!r} for all sessions (`global`)")


def _imports(node: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    """In full; `from a import b` as `a.b`, which may be a module or a name in `a`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = module.split(".")[: None if is_package and node.level == 1 else -node.level or None]
        if is_package and node.level > 1:
            above = module.split(".")[: 1 - node.level]
        home = ".".join((*above, *([node.module] if node.module else []))) if node.level else node.module or ""
        yield from (f"{home}.{alias.name}" for alias in node.names)


def _source_of(module: str) -> Path | None:
    """The file of a module; of a name that stands in a module, that one's. None: no Python file holds it."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None and "." in module:
        return _source_of(module.rpartition(".")[0])
    origin = spec.origin if spec else None
    return Path(origin) if origin and origin.endswith(".py") else None


def _refused(module: str, node: ast.AST, what: str) -> KindSetupError:
    line = getattr(node, "lineno", 0)
    return KindSetupError(f"the module {module!r}, line {line}, {what}, and a kind of agent stands in it: {WHY}")
