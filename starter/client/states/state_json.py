"""A session's state as JSON: out of it, back into it, changed in places, and into another session.

A place is written as people write it: `context[3].content[0].text`, `metadata["odd.name"]`.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

from pydantic import BaseModel

from longhaul.agent.incarnation import imported_state
from longhaul.agent.incarnation.history import state_of_copy, told_of_its_files, told_of_its_work
from longhaul.agent.incarnation.imported_state import CURRENT, ReadState
from longhaul.agent.permission.rulebook import BadRule, check_book
from longhaul.agent.plain.errors import BadInput, ImportProblem
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.context_state import rewritten, suspects
from longhaul.agent.reducer.session_state import SessionState
from longhaul.starter.client.wire import Refused

FIXED = ("session_id", "user_id", "agent", "behaviour", "reply_context", "tool_context.cwd")
"""What is the session's own: it would keep it whatever was sent."""

_STEP = re.compile(r'\.?([^.\[\]"\s]+)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]')


class BadPath(BadInput, ValueError):
    """The path leads nowhere. The sentence names the part, and what there is instead."""


def steps_of(path: str) -> list[str | int]:
    """The names and indexes of a path. Raises BadPath."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (at == 0 and path[0] in ".["):
            raise BadPath(
                f"{path!r} is no path from {path[at : at + 20]!r} on; write it like context[3].content[0].text"
            )
        name, index, quoted = found.groups()
        steps.append(int(index) if index is not None else json.loads(quoted) if quoted is not None else name)
        at = found.end()
    if not steps:
        raise BadPath("the path is empty; write it like summary or context[3].content[0].text")
    return steps


def with_value(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of the document with another value at the path. An index just past the end adds to the list.

    Raises BadPath for a place that the document does not have, but for the last name: whether a field of that name may
    stand there is known only to who reads the document.
    """
    steps = steps_of(path)
    if steps[0] in FIXED or ".".join(str(step) for step in steps) in FIXED:
        raise BadPath(f"{path}: this belongs to the session and cannot be changed")
    changed = deepcopy(document)
    place: Any = changed
    for at, step in enumerate(steps[:-1]):
        place = _inside(place, step, _spelled(steps[: at + 1]))
    _put(place, steps[-1], value, path)
    return changed


def _inside(place: Any, step: str | int, path: str) -> Any:
    match place:
        case dict():
            fields = cast(dict[str, Any], place)
            if step not in fields:
                raise BadPath(f"{path}: there is no field of that name; {did_you_mean(str(step), fields)}")
            return fields[str(step)]
        case list():
            if not isinstance(step, int) or step >= len(place):
                raise BadPath(f"{path}: that is a list of {len(place)} items; they count from [0]")
            return place[step]
        case _:
            raise BadPath(f"{path}: there is a plain value before it, with nothing inside")


def _put(place: Any, step: str | int, value: Any, path: str) -> None:
    match place:
        case dict() if isinstance(step, str):
            place[step] = value
        case list() if isinstance(step, int) and step < len(place):
            place[step] = value
        case list() if isinstance(step, int) and step == len(place):
            place.append(value)
        case dict():
            raise BadPath(f"{path}: {step!r} is no name of a field; a name follows a dot, or in quotes in brackets")
        case _:
            _inside(place, step, path)


def _spelled(steps: list[str | int]) -> str:
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]
    return "".join(parts).lstrip(".")


State = str | bytes | AgentState | Mapping[str, Any]
"""JSON, or what it says: our own export of any version, or what AgentScope has saved."""

FRESH = 1
"""The number of the first entry: a session that has no other is nobody's yet."""


def exported(state: AgentState) -> str:
    """AgentState as JSON, with the version of its form beside its own fields, and, as AgentScope Java has them, the
    reply that is being made."""
    fields = state.model_dump(mode="json")
    made = {"reply_id": state.reply_id, "cur_iter": state.cur_iter}
    return json.dumps({"version": CURRENT, **fields, **made}, ensure_ascii=False)


def read(given: State, waiting: Collection[str] = ()) -> AgentState:
    """The state with nothing open in it but the calls that wait. Raises Refused with every place that is wrong."""
    return read_whole(given, waiting).state


def read_whole(given: State, waiting: Collection[str] = ()) -> ReadState:
    """The same, with the places of the document that mean nothing here."""
    match given:
        case str() | bytes():
            text = given
        case AgentState():
            text = given.model_dump_json()
        case _:
            text = json.dumps(dict(given))
    try:
        whole = imported_state.read_whole(text, waiting)
        check_book(whole.state.permission_context.rules)
    except ImportProblem as error:
        raise Refused(f"the state can't be taken: {error}") from error
    except BadRule as error:
        raise Refused(f"the state can't be taken: permission_context.{error}") from error
    return whole


def replacement(state: AgentState, *, by: str, why: str, expected_seq: int | None, note: str = "") -> dict[str, Any]:
    """The body of `replace_state`."""
    body = {"state": state.model_dump(mode="json"), "by": by, "why": why, **({"note": note} if note else {})}
    return body if expected_seq is None else {**body, "expected_seq": expected_seq}


def edited(state: AgentState, changes: Mapping[str, Any]) -> AgentState:
    """The state with other values in these places. Raises BadPath, and Refused for values that can't stand there."""
    document = state.model_dump(mode="json")
    for path, value in changes.items():
        document = with_value(document, path, value)
    waiting = state.reply_context.waiting() if state.reply_context else ()
    changed = read(document, [call.block.id for call in waiting])
    for path in changes:
        # A field of another name is nobody's: it would be dropped without a word.
        if not _leads(changed, steps_of(path)):
            raise BadPath(f"{path}: there can be no field of that name")
    return changed


def repaired(state: AgentState) -> tuple[AgentState, int]:
    """The state with no attachment and no thought in its context, and how many there were."""
    outs = suspects(state.context)
    context = list(state.context)
    for place, message in rewritten(context, outs):
        context[place] = message
    waiting = state.reply_context.waiting() if state.reply_context else ()
    changed = read(state.model_copy(update={"context": context}), [call.block.id for call in waiting])
    return changed, len(outs)


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


def copied(session: SessionState) -> AgentState:
    """What another session begins with that goes on from there. Raises Refused."""
    try:
        return told_of_its_work(told_of_its_files(state_of_copy(session), session), session)
    except ImportProblem as error:
        raise Refused(f"the state can't be copied: {error}") from error
