"""What keeps secrets in is handed over wherever it is needed: left out, it would mask nothing and say nothing."""

import ast
from pathlib import Path

from tests.codebase.syntax import tree_of

ACTIVITIES = Path(__file__).parents[2] / "activities"
GUARDS = ("Secrets", "Masker")
FEWEST = 10
"""Fewer would mean that the parameters were not found."""


def guards() -> list[tuple[str, bool]]:
    """Each parameter that takes one, with whether it may be left out."""
    found = list[tuple[str, bool]]()
    for path in ACTIVITIES.rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                plain = [*node.args.posonlyargs, *node.args.args]
                given = [None] * (len(plain) - len(node.args.defaults)) + list(node.args.defaults)
                for one, default in [
                    *zip(plain, given, strict=True),
                    *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
                ]:
                    if one.annotation and any(guard in ast.unparse(one.annotation).split(" ") for guard in GUARDS):
                        found.append((f"{path.relative_to(ACTIVITIES)}: {node.name}({one.arg})", default is not None))
    return found


def test_nothing_that_keeps_secrets_may_be_left_out() -> None:
    found = guards()

    assert len(found) > FEWEST
    assert [where for where, may_be_left_out in found if may_be_left_out] == []
