"""Which files come first where several processes share the tests: those that wait for servers and programs."""

from collections import Counter
from pathlib import Path

import pytest

SLOW_MARKS = {"server", "redis", "sql", "aimock"}
SLOW_FOLDER = Path(__file__).parents[1] / "e2e"


def slowest_first(items: list[pytest.Item]) -> None:
    """Sort in place. Each file stays whole, and its tests in their order.

    One slow test, begun last, would keep one process busy for a minute while the others have nothing to do; behind it
    the quick files fill all of them to the end. Of either, the largest come first.
    """
    slow = {item.path for item in items if is_slow(item)}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in slow, -tests[item.path]))


def is_slow(item: pytest.Item) -> bool:
    return SLOW_FOLDER in item.path.parents or any(mark.name in SLOW_MARKS for mark in item.iter_markers())
