"""An attempt as telemetry knows it: names of its reply and its calls, its failure in one word that quotes nothing, and
the numbers that an activity tells whoever measures it.
"""

import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from pydantic import ValidationError
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.worker import ExecuteActivityInput

from longhaul.activities.contract import MODEL_FAILED
from longhaul.agent.entries import AnyEntry, ModelSaid, ToolReturned
from longhaul.agent.plain.ids import HEADER, LONGEST_HEADER_BYTES, TraceHeader
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import ErrorInfo, ToolCallBlock


def is_tool(activity_type: str) -> bool:
    """Our own activities carry a dot, which no tool name can."""
    return "." not in activity_type


def header_in(headers: Mapping[str, Payload]) -> TraceHeader:
    """An empty one when there is none that can be read."""
    payload = headers.get(HEADER)
    if payload is None or len(payload.data) > LONGEST_HEADER_BYTES:
        return TraceHeader()
    try:
        return TraceHeader.model_validate_json(payload.data)
    except ValidationError:
        return TraceHeader()


def call_id_in(input: ExecuteActivityInput) -> str:  # noqa: A002  the SDK's name
    """Of a tool's activity; empty for our own."""
    return str(ask_of(input).get("call_id", "")) if is_tool(activity.info().activity_type) else ""


def ask_of(input: ExecuteActivityInput) -> dict[str, Any]:  # noqa: A002  the SDK's name
    """Of a tool's activity: what it was asked, as JSON. Empty when that can't be read; the tool itself will say so."""
    first = input.args[0] if input.args else None
    raw = first[0] if isinstance(first, Sequence) and first else first
    try:
        ask = json.loads(raw.payload.data) if isinstance(raw, RawValue) else {}
    except ValueError:
        return {}
    return ask if isinstance(ask, dict) else {}


def read_along(result: object) -> list[tuple[ToolCallBlock, ToolReturned]]:
    """The calls that a model's activity has made at once, with what they came to."""
    if not isinstance(result, ModelSaid) or not result.reads:
        return []
    calls = result.message.get_tool_calls()
    return [(call, read) for call in calls if (read := result.reads.get(call.id)) is not None]


def kind_of(error: BaseException) -> str:
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__


def class_of(error: BaseException) -> str:
    """The type that a provider's verdict gave it, for a model that failed for good; else the kind of the failure."""
    if isinstance(error, ApplicationError) and error.type == MODEL_FAILED and error.details:
        match error.details[0]:
            case ErrorInfo(type=kind):
                return kind
            case {"type": str(kind)}:
                return kind
            case _:
                pass
    return kind_of(error)


class Listener(Protocol):
    """Hears of one attempt of one activity."""

    def written(self, entries: Sequence[AnyEntry], session: SessionState) -> None:
        """A checkpoint has these entries that no earlier one had; the session state is the session's behind them."""


_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("longhaul_listeners", default=())


def listen(listener: Listener) -> None:
    """For the rest of this activity's attempt: each has a context of its own."""
    _LISTENERS.set((*_LISTENERS.get(), listener))


def written(entries: Sequence[AnyEntry], session: SessionState) -> None:
    for listener in _LISTENERS.get():
        listener.written(entries, session)
