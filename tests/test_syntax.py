"""Trees are read whole, whatever the collector would do at that moment."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.codebase.syntax import tree_of


class Lost:
    """A circle, which only the collector ends; its end is deep in the stack, and parses."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        deep(30)


def deep(calls: int) -> None:
    if calls:
        deep(calls - 1)
    else:
        ast.parse("lamp + oil")


@pytest.fixture
def eager() -> Iterator[None]:
    """The collector runs at almost every new object."""
    usual = gc.get_threshold()
    gc.set_threshold(20)
    yield
    gc.set_threshold(*usual)


@pytest.mark.usefixtures("eager")
def test_what_is_collected_meanwhile_does_not_end_a_parse() -> None:
    trees = [tree_of(Path(__file__)) for _ in range(20) if Lost() is not None]

    assert {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)} == {"Lost"}
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        tree_of(Path(__file__))
        assert not gc.isenabled()
    finally:
        gc.enable()
