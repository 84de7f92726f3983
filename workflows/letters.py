"""From the payloads of a signal or update to plain JSON values, whatever was sent."""

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from pydantic import ValidationError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from activities.contract import BAD_START
from agent.bodies import Unusable, what_is_wrong
from agent.entries import SessionOpened
from agent.record import Record
from agent.settings import AgentSpec
from workflows.arrivals import why_missed, why_start_missed
from workflows.contract import WORKFLOW, SessionStart
from workflows.storage import KEY

MAX_NAME = 200
LARGEST_LETTER = 1_900_000
"""Bytes. An accepted update stands in one event, and the server terminates a session for an event above 2 MiB."""
LARGEST_BY_REFERENCE = 16_000_000
"""Bytes of an argument of which only a reference stands in the event: the session has to carry it all the same."""


def decode(arguments: Sequence[RawValue]) -> list[Any]:
    """The arguments as JSON values; raises Unusable for one that is not there, is too large, or is not plain JSON.

    To be called once for each letter, by its handler: see `arrivals.why_missed`.
    """
    # For all of them before any is refused: each takes its number in the order of arrival.
    missed = [why_missed(argument.payload) for argument in arguments]
    for index, why in enumerate(missed, start=1):
        if why is not None:
            raise Unusable(
                f"argument {index} was sent by reference, and {why}; send it again, and see that LONGHAUL_BLOBS is the "
                "same for workers and clients"
            )
    return [_value(index, argument) for index, argument in enumerate(arguments, start=1)]


def weigh(arguments: Sequence[RawValue]) -> int:
    """Bytes that came in with the event; what came by reference is not among them."""
    return sum(len(argument.payload.data) for argument in arguments if KEY not in argument.payload.metadata)


def _value(index: int, argument: RawValue) -> Any:
    if len(argument.payload.data) > LARGEST_BY_REFERENCE:
        raise Unusable(
            f"argument {index} has {len(argument.payload.data) // 1000} kB, and the most is "
            f"{LARGEST_BY_REFERENCE // 1000} kB; put the content into a file and name it"
        )
    encoding = argument.payload.metadata.get("encoding", b"").decode("ascii", "replace")
    if encoding == "binary/null":
        return None
    if encoding != "json/plain":
        raise Unusable(f"argument {index} is encoded as {encoding[:40]!r}; send JSON with encoding 'json/plain'")
    try:
        text = argument.payload.data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant)
        # A lone surrogate, or a number like 1e999, would pass here and fail every later query and roll-over.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except RecursionError as error:
        raise Unusable(f"argument {index} is nested too deeply; send a flat JSON object") from error
    except ValueError as error:
        raise Unusable(f"argument {index} is not JSON: {str(error)[:200]}") from error
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def read_start(workflow_type: str, arguments: Sequence[RawValue]) -> SessionStart:
    """The input of a run. One that can't be read fails the workflow with a sentence: no retry could mend it."""
    if workflow_type != WORKFLOW:
        raise _bad_start(f"there is no workflow type {workflow_type[:MAX_NAME]!r} here; it is {WORKFLOW!r}")
    if len(arguments) != 1:
        raise _bad_start(f"{WORKFLOW} takes one argument, a SessionStart, and {len(arguments)} came")
    if (why := why_start_missed(arguments[0].payload)) is not None:
        raise _bad_start(f"the start input was sent by reference, and {why}")
    try:
        return SessionStart.model_validate_json(arguments[0].payload.data)
    except ValidationError as error:
        raise _bad_start(f"the start input is not a SessionStart: {what_is_wrong(error)}") from error


def _bad_start(why: str) -> ApplicationError:
    return ApplicationError(why, type=BAD_START, non_retryable=True)


def open_record(start: SessionStart, at: int, *, rolled_over: bool) -> Record:
    """The record that a run begins with. Entries that a stranger made up fail the workflow; entries of our own that
    can't be folded are a defect of ours, which fails the task until it is mended."""
    if start.carried is not None:
        return Record.over(start.carried.ledger)
    if not start.entries:
        return Record.of([_opening(start, at)])
    try:
        return Record.of(list(start.entries))
    except (ValueError, LookupError) as error:
        if rolled_over:
            raise
        raise _bad_start(f"entries can't be folded: {type(error).__name__}: {str(error)[:200]}") from error


def _opening(start: SessionStart, at: int) -> SessionOpened:
    return SessionOpened(
        seq=1,
        at=at,
        session_id=start.session_id,
        user_id=start.user_id,
        spec=start.spec or AgentSpec(),
        search_attributes=start.search_attributes,
        format=start.format,
    )
