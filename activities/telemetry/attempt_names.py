"""Names what an attempt of an activity works for: its reply by the header, its tool calls by the arguments or by what
came along with an answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.worker import ExecuteActivityInput

from longhaul.agent.entries import ModelSaid, ToolReturned
from longhaul.agent.plain.ids import HEADER, LONGEST_HEADER_BYTES, TraceHeader
from longhaul.agent.values.conversation.messages import ToolCallBlock


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
