"""Reading a state that somebody sends: our own export, or one that AgentScope has saved; and which version of a stored
session is read here."""

import json
from collections.abc import Collection
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from longhaul.agent.incarnation.java_state import from_java, is_java
from longhaul.agent.permission.foreign_rules import understood
from longhaul.agent.plain.errors import Damaged, ImportProblem, problems_of, unknown
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.synthetic_results import (
    cancelled_before_start,
    cancelled_outside,
    left_open,
    outcome_unknown,
    stays_with_the_first,
)
from longhaul.agent.values.conversation.messages import Msg, ToolCallBlock, ToolCallState, ToolResultBlock, problem

CURRENT = 1
"""The version of a stored session. A field that may be left out needs no new one; what a reader of the old one would
misunderstand does, and the old one is made a new one in `known_version`, for its sessions lie in stores for years."""


class NewerRecord(Damaged, ValueError):
    """A later version of Longhaul wrote the session; this version can't read it."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"version: {version} was written by a newer Longhaul; this one reads up to {CURRENT}. Run that one, or a "
            "later one, on every worker and client that uses this store"
        )
        self.version = version


class NoRecord(Damaged, ValueError):
    """The document is no stored session. The sentence starts with the field."""


def known_version(stored: object) -> dict[str, Any]:
    """A stored session whose version is read here. Raises NewerRecord or NoRecord."""
    if not isinstance(stored, dict):
        raise NoRecord(f"a session is stored as a JSON object, not as {type(stored).__name__}")
    record = cast(dict[str, Any], stored)
    version = record.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        has = "there is none" if version is None else f"it is {str(version)[:50]!r}"
        raise NoRecord(f"version: must be a whole number from 1 to {CURRENT}, and {has}")
    if version > CURRENT:
        raise NewerRecord(version)
    return record


MAX_BYTES = 16_000_000
MAX_MESSAGES = 50_000
MAX_DEPTH = 100
"""Levels of JSON within JSON; what nests deeper than about 200 can't be read back once it is recorded."""
Way = tuple[Any, ...]
"""How a value is reached: (way to what holds it, its name or index), () for the document."""
LOST = "its session was exported before a result came"


def read_state(text: str | bytes) -> AgentState:
    """The state, with nothing open in it: calls without a result get one that says what is known of them.

    Raises ImportProblem, which says what is wrong at which path.
    """
    return read_whole(text).state


class ReadState(NamedTuple):
    state: AgentState
    left_out: tuple[str, ...]
    """Paths of what means nothing here. What safety hangs on is never among them: it is understood, or refused."""


def read_whole(text: str | bytes, waiting: Collection[str] = ()) -> ReadState:
    """The same, with the places of the document that were left out. Calls that are `waiting` stay without a result
    where none of the others lacks one: then it is the state of the session in which they wait."""
    data = _document(text)
    # What Java does not write is refused there by name.
    read = ReadState(from_java(data), ()) if is_java(data) else _ours(data)
    if len(read.state.context) > MAX_MESSAGES:
        raise ImportProblem(
            [("context", f"has {len(read.state.context):,} messages; at most {MAX_MESSAGES:,} are taken")]
        )
    stays = bool(waiting) and not problem(read.state.context, waiting)
    _close(read.state, waiting if stays else ())
    if wrong := problem(read.state.context, waiting if stays else ()):
        raise ImportProblem([("context", wrong)])
    return read


def _document(text: str | bytes) -> dict[str, Any]:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise ImportProblem([("", f"has {size:,} bytes; at most {MAX_BYTES:,} are read")])
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        raise ImportProblem([("", f"is no JSON: {error.msg} at line {error.lineno}, column {error.colno}")]) from error
    except RecursionError as error:
        raise ImportProblem([("", f"nests deeper than {MAX_DEPTH} levels")]) from error
    except ValueError as error:
        raise ImportProblem([("", f"is no JSON that can be read: {str(error)[:200]}")]) from error
    if not isinstance(data, dict):
        raise ImportProblem([("", "must be a JSON object")])
    document = cast(dict[str, Any], data)
    # No text that has no UTF-8, for it could never be sent on, and no endless nesting.
    level: list[tuple[Way, object]] = [((), document)]
    for _ in range(MAX_DEPTH):
        level = [part for way, value in level for part in _parts(way, value)]
    if level:
        raise ImportProblem([(_path(level[0][0]), f"nests deeper than {MAX_DEPTH} levels")])
    return document


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _no_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the field {twin[:50]!r} twice")
    return fields


def _parts(way: Way, value: object) -> list[tuple[Way, object]]:
    match value:
        case str():
            _check_text(value, way)
            return []
        case list():
            return [((way, index), item) for index, item in enumerate(cast(list[object], value))]
        case dict():
            fields = cast(dict[str, object], value)
            for name in fields:
                _check_text(name, way)
            return [((way, name), item) for name, item in fields.items()]
        case _:
            return []


def _check_text(text: str, way: Way) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ImportProblem([(_path(way), f"holds half a surrogate pair at character {error.start}")]) from None


def _path(way: Way) -> str:
    steps: list[str] = []
    while way:
        way, step = way
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step[:50]}")
    return "".join(reversed(steps[-20:])).lstrip(".")


def _ours(data: dict[str, Any]) -> ReadState:
    at = "state." if "state" in data else ""
    try:
        # People write a state by hand, without a version; an export has it beside the state's own fields.
        whole = known_version(data) if "version" in data or at else data
    except (NewerRecord, NoRecord) as error:
        path, _, what = str(error).partition(": ")
        raise ImportProblem([(path, what)]) from error
    # An export says once more what `reply_context` holds.
    beside = ("version", "reply_id", "cur_iter") if "version" in data else ()
    written = whole["state"] if at else {name: whole[name] for name in whole if name not in beside}
    given = understood(cast(dict[str, Any], written), at) if isinstance(written, dict) else {}
    theirs = given.get("reply_context")
    if isinstance(theirs, dict) and "request_id" not in theirs:
        given = {**given, "reply_context": None}  # AgentScope's; whatever it is, no reply stays open
    try:
        state = AgentState.model_validate(given if isinstance(written, dict) else written)
        if "session_id" not in given:
            raise ImportProblem([(f"{at}session_id", "is required: without one this is no session's state")])
        return ReadState(state, tuple(f"{at}{path}" for path in unknown(given, state)))
    except ValidationError as error:
        raise ImportProblem([(f"{at}{path}".rstrip("."), what) for path, what in problems_of(error, given)]) from error


def _close(state: AgentState, waiting: Collection[str]) -> None:
    """Answer the calls of the last turn that have no result, but for those that wait, and leave no reply open."""
    answered = {result.id for message in state.context for result in message.get_tool_results()}
    last = next((part for part in reversed(state.context) if part.get_tool_calls()), None)
    for call in last.get_tool_calls() if last else ():
        if call.id not in answered and call.id not in waiting:
            state.context.append(_closing(state, call, last))
    state.context = [_plain(message) for message in state.context]
    state.reply_context = None


def _closing(state: AgentState, call: ToolCallBlock, turn: Msg | None) -> Msg:
    name, reply = (turn.name, turn.id) if turn else (state.agent, "")
    return Msg(name=name, role="assistant", content=(_result(state, call),), id=reply)


def _result(state: AgentState, call: ToolCallBlock) -> ToolResultBlock:
    """Of a call that was allowed nobody knows whether it had been started; nor of one that Java calls pending."""
    here = state.reply_context.calls.get(call.id) if state.reply_context else None
    how_far = here.state if here else call.state
    if here is not None and here.sleep is not None:
        return left_open(here, {})
    if here is not None and here.child:
        return stays_with_the_first(call)
    if how_far is ToolCallState.SUBMITTED:
        return cancelled_outside(call)
    waited = how_far is ToolCallState.ASKING or (here is not None and how_far is ToolCallState.PENDING)
    return cancelled_before_start(call) if waited else outcome_unknown(call, LOST)


def _plain(message: Msg) -> Msg:
    """Calls as the model wrote them: how far they have come is no part of what was said."""
    if all(call.state is ToolCallState.PENDING for call in message.get_tool_calls()):
        return message
    content = tuple(
        block.model_copy(update={"state": ToolCallState.PENDING}) if isinstance(block, ToolCallBlock) else block
        for block in message.content
    )
    return message.model_copy(update={"content": content})
