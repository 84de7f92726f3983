"""One event as a client is told it: the types are the seed's (agentscope/event)."""

from typing import Any, Literal

from agent.messages import DataBlock, ErrorInfo, FinishedReason, TextBlock, ToolCallBlock, ToolResultState
from agent.values import Guest, sparse

EventType = Literal[
    "REPLY_START",
    "REPLY_END",
    "MODEL_CALL_START",
    "MODEL_CALL_END",
    "TEXT_BLOCK_START",
    "TEXT_BLOCK_DELTA",
    "TEXT_BLOCK_END",
    "THINKING_BLOCK_START",
    "THINKING_BLOCK_DELTA",
    "THINKING_BLOCK_END",
    "TOOL_CALL_START",
    "TOOL_CALL_DELTA",
    "TOOL_CALL_END",
    "TOOL_RESULT_START",
    "TOOL_RESULT_TEXT_DELTA",
    "TOOL_RESULT_END",
    "REQUIRE_USER_CONFIRM",
    "REQUIRE_EXTERNAL_EXECUTION",
    "USER_CONFIRM_RESULT",
    "EXTERNAL_EXECUTION_RESULT",
    "USER_INTERRUPT",
    "EXCEED_MAX_ITERS",
    "CUSTOM",
]


class Live(Guest):
    """Where an event comes from that was told while it happened."""

    call: str
    """`model:N` (N model calls were answered before it) or `tool:ID`."""
    attempt: int = 1
    index: int = 0
    """Of what was published in this attempt; it counts up."""


class AgentEvent(Guest):
    """One event. Which fields are set depends on `type`; the rest are left out of the JSON."""

    type: EventType
    seq: int = sparse(0)
    """Of a recorded event. One without is told while it happens, and what is recorded later takes its place."""
    live: Live | None = sparse(None)
    created_at: str = sparse("")
    reply_id: str = sparse("")
    name: str = sparse("")
    """Agent (REPLY_START, EXCEED_MAX_ITERS) or kind (CUSTOM: `model_failed`, `call_unsettled`, …)."""
    block_id: str = sparse("")
    delta: str = sparse("")
    tool_call_id: str = sparse("")
    tool_call_name: str = sparse("")
    tool_calls: tuple[ToolCallBlock, ...] = sparse(())
    model_name: str = sparse("")
    input_tokens: int = sparse(0)
    output_tokens: int = sparse(0)
    cache_input_tokens: int = sparse(0)
    cache_creation_input_tokens: int = sparse(0)
    metadata: dict[str, Any] = sparse({})
    """Of a tool's result (TOOL_RESULT_END), and what a provider has added to its thinking (THINKING_BLOCK_END)."""
    output: tuple[TextBlock | DataBlock, ...] | None = sparse(None)
    """Of TOOL_RESULT_END: the parts of a result that is not one text; then the delta is their text alone."""
    state: ToolResultState | None = sparse(None)
    finished_reason: FinishedReason | None = sparse(None)
    error: ErrorInfo | None = sparse(None)
    value: Any = sparse(None)


class EventsSoFar(Guest):
    """What the events of earlier entries leave to know for those that come."""

    count: int = sparse(0)
    agent: str = sparse("")
    reply_id: str = sparse("")
    calls: dict[str, ToolCallBlock] = sparse({})
    """Those of the reply that is being made that have no result yet, or none for certain."""
    started: tuple[str, ...] = sparse(())
    told: dict[str, int] = sparse({})
    """Characters of results that came in pieces and are still to end."""
