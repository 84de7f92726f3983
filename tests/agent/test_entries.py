"""Every entry stands in the one list of them, in one subject, and people outside are told of it, or knowingly not."""

import ast
from collections import Counter
from pathlib import Path
from types import UnionType
from typing import Any, get_args

from longhaul.agent import entries as e
from longhaul.agent.views import events
from tests.codebase.syntax import tree_of

SUBJECTS = {name: union for name, union in vars(e).items() if name.endswith("Entry") and isinstance(union, UnionType)}
SILENT = {
    "BudgetAllotted",
    "BudgetReleased",
    "BudgetReserved",
    "CheckpointFailed",
    "Checkpointed",
    "CompressAsked",
    "DecisionsReceived",
    "Observed",
    "DecisionsVerified",
    "OperationRefused",
    "RequestAccepted",
    "RestoreFailed",
    "ResultReceived",
    "QuarantineEnded",
    "TimeReached",
    "ChildrenTold",
    "ParentTold",
    "ReportAsked",
    "AskerCame",
    "AskerTold",
    "HubHeard",
    "HubTold",
}
"""Of these nobody is told. Refusals are forgotten in time: an event for them would shift all later numbers."""


def every() -> tuple[type[e.Entry], ...]:
    annotated: Any = e.AnyEntry
    kinds: tuple[type[e.Entry], ...] = get_args(get_args(annotated)[0])
    return kinds


def told() -> set[str]:
    """Names of entries for which the files about events have an arm."""
    paths = (Path(str(module.__file__)) for module in (events, events))
    trees = (tree_of(path) for path in paths)
    return {
        node.cls.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Attribute) and node.cls.attr in vars(e)
    }


def test_whatever_can_be_recorded_stands_in_the_list() -> None:
    assert set(every()) == set(e.Entry.__subclasses__())
    assert len({kind.model_fields["kind"].default for kind in every()}) == len(every()) == 68


def test_each_entry_is_of_one_subject() -> None:
    counted = Counter(kind for union in SUBJECTS.values() for kind in get_args(union))

    assert set(counted) == set(every())
    assert set(counted.values()) == {1}


def test_people_are_told_of_each_entry_unless_it_is_known_that_they_are_not() -> None:
    names = {kind.__name__ for kind in every()}

    assert told() <= names
    assert names - told() == SILENT
