"""A session's state as JSON: out of it, back into it, changed in places, and into another session."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from agent.forking import state_of_copy
from agent.import_problem import ImportProblem
from agent.imports import read_state
from agent.ledger import Ledger
from agent.migrations import CURRENT
from agent.permission.checks import BadRule
from agent.permission.rulebook import check_book
from agent.state import AgentState
from starter.state_paths import BadPath, steps_of, with_value
from starter.wire import Refused

State = str | bytes | AgentState | Mapping[str, Any]
"""JSON, or what it says: our own export of any version, or what AgentScope Java has saved."""

FRESH = 1
"""The number of the first entry: a session that has no other is nobody's yet."""


def exported(state: AgentState) -> str:
    """AgentState as JSON, with the version of its form beside its own fields."""
    return json.dumps({"version": CURRENT, **state.model_dump(mode="json")}, ensure_ascii=False)


def read(given: State) -> AgentState:
    """The state with nothing open in it. Raises Refused with every place that is wrong."""
    match given:
        case str() | bytes():
            text = given
        case AgentState():
            text = given.model_dump_json()
        case _:
            text = json.dumps(dict(given))
    try:
        state = read_state(text)
        check_book(state.permission_context.rules)
    except ImportProblem as error:
        raise Refused(f"the state can't be taken: {error}") from error
    except BadRule as error:
        raise Refused(f"the state can't be taken: permission_context.{error}") from error
    return state


def replacement(state: AgentState, *, by: str, why: str, expected_seq: int | None) -> dict[str, Any]:
    """The body of `replace_state`."""
    body = {"state": state.model_dump(mode="json"), "by": by, "why": why}
    return body if expected_seq is None else {**body, "expected_seq": expected_seq}


def edited(state: AgentState, changes: Mapping[str, Any]) -> AgentState:
    """The state with other values in these places. Raises BadPath, and Refused for values that can't stand there."""
    document = state.model_dump(mode="json")
    for path, value in changes.items():
        document = with_value(document, path, value)
    changed = read(document)
    for path in changes:
        # A field of another name is nobody's: it would be dropped without a word.
        if not _leads(changed, steps_of(path)):
            raise BadPath(f"{path}: nothing of that name can stand there")
    return changed


def _leads(value: object, steps: Sequence[str | int]) -> bool:
    """Whether each step names a part: a field that holds its default is no part of the JSON, but may be set."""
    for step in steps:
        match value:
            case BaseModel() if step in type(value).model_fields:
                value = getattr(value, str(step))
            case dict() | list() | tuple():
                value = cast(Any, value)[step]
            case _:
                return False
    return True


def copied(ledger: Ledger) -> AgentState:
    """What another session begins with that goes on from there. Raises Refused."""
    try:
        return state_of_copy(ledger)
    except ImportProblem as error:
        raise Refused(f"the state can't be copied: {error}") from error
