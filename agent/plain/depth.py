"""Bounds how deep JSON from outside may nest."""

from collections.abc import Iterable
from typing import cast

MAX_DEPTH = 50
"""JSON within JSON. What nests deeper than about 200 could be recorded, but never be read back."""


def too_deep(body: object) -> bool:
    """Level by level, because a recursion here would end where the one that must be prevented does."""
    level: list[object] = [body]
    for _ in range(MAX_DEPTH):
        level = [part for value in level for part in _parts(value)]
    return bool(level)


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast(dict[str, object], value).values()
    return cast(list[object], value) if isinstance(value, list) else ()
