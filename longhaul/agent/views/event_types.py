"""One event as a client is told it: the types are the seed's (agentscope/event)."""

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeVar

from pydantic import model_validator

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import (
    Base64Source,
    DataBlock,
    ErrorInfo,
    FinishedReason,
    TextBlock,
    ToolCallBlock,
    ToolResultState,
    URLSource,
)

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
    "DATA_BLOCK_START",
    "DATA_BLOCK_DELTA",
    "DATA_BLOCK_END",
    "HINT_BLOCK",
    "TOOL_CALL_START",
    "TOOL_CALL_DELTA",
    "TOOL_CALL_END",
    "TOOL_RESULT_START",
    "TOOL_RESULT_TEXT_DELTA",
    "TOOL_RESULT_DATA_DELTA",
    "TOOL_RESULT_END",
    "REQUIRE_USER_CONFIRM",
    "REQUIRE_EXTERNAL_EXECUTION",
    "USER_CONFIRM_RESULT",
    "EXTERNAL_EXECUTION_RESULT",
    "USER_INTERRUPT",
    "EXCEED_MAX_ITERS",
    "CUSTOM",
]


class Live(OpenValue):
    """Where a live event comes from."""

    call: str
    """The call: `model:N` (N model calls were answered before it) or `tool:ID`."""
    attempt: int = 1
    index: int = 0
    """Number of the event among those published in this attempt, counting up."""


class AgentEvent(OpenValue):
    """One event. `type` says which fields are set; the others are left out of the JSON."""

    type: EventType
    seq: int = sparse(0)
    """Number of a recorded event. A live event has none; the recorded event that comes later replaces it."""
    live: Live | None = sparse(None)
    created_at: str = sparse("")
    reply_id: str = sparse("")
    session_id: str = sparse("")
    """Session of REPLY_START and REPLY_END."""
    name: str = sparse("")
    """Name of the agent (REPLY_START, EXCEED_MAX_ITERS), of data (data DELTAs), or of a CUSTOM event: `model_failed`,
    `call_unsettled`, …."""
    role: Literal["", "assistant"] = sparse("")
    """Role, for REPLY_START."""
    block_id: str = sparse("")
    delta: str = sparse("")
    whole: str | None = sparse(None)
    """For a recorded delta whose beginning the reader got live: the whole text. The delta is the rest."""
    media_type: str = sparse("")
    """Media type of data: at its start, and in its DELTA. There `data` is all of it in base64, or `url` says where it
    is."""
    data: str | None = sparse(None)
    url: str | None = sparse(None)
    hint: str | tuple[TextBlock | DataBlock, ...] | None = sparse(None)
    source: str | None = sparse(None)
    """For a reminder: where it comes from."""
    tool_call_id: str = sparse("")
    tool_call_name: str = sparse("")
    tool_calls: tuple[ToolCallBlock, ...] = sparse(())
    model_name: str = sparse("")
    input_tokens: int = sparse(0)
    output_tokens: int = sparse(0)
    cache_input_tokens: int = sparse(0)
    cache_creation_input_tokens: int = sparse(0)
    reasoning_tokens: int = sparse(0)
    estimated: bool = sparse(False)
    """For tokens: the provider did not report all of them, and the worker counted the rest."""
    metadata: dict[str, Any] = sparse({})
    """For a tool's result (TOOL_RESULT_END), its metadata. For thinking (THINKING_BLOCK_END), what the provider
    added."""
    state: ToolResultState | None = sparse(None)
    finished_reason: FinishedReason | None = sparse(None)
    error: ErrorInfo | None = sparse(None)
    value: Any = sparse(None)

    @property
    def id(self) -> str:
        """Id of the event: equal for each delivery of the same event, and different from all other events of the
        session."""
        if self.seq:
            return str(self.seq)
        made = (self.live.call, str(self.live.attempt), str(self.live.index)) if self.live else ()
        return "/".join(part for part in (self.reply_id, *made, self.block_id, self.type, self.name) if part)

    def outside(self) -> dict[str, Any]:
        """The event as JSON for other programs. Pages of events have no ids, because ids follow from the other
        fields."""
        return {"id": self.id, **self.model_dump(mode="json")}

    def data_block(self) -> DataBlock:
        """Of a DELTA of data."""
        source = (
            Base64Source(data=self.data or "", media_type=self.media_type)
            if self.url is None
            else URLSource(url=self.url, media_type=self.media_type)
        )
        return DataBlock(source=source, name=self.name or None)

    @model_validator(mode="after")
    def _is_of_its_class(self) -> Self:
        return _of_its_class(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        return _of_its_class(super().model_copy(update=update, deep=deep))


class ReplyStartEvent(AgentEvent): ...


class ReplyEndEvent(AgentEvent): ...


class ModelCallStartEvent(AgentEvent): ...


class ModelCallEndEvent(AgentEvent): ...


class TextBlockStartEvent(AgentEvent): ...


class TextBlockDeltaEvent(AgentEvent): ...


class TextBlockEndEvent(AgentEvent): ...


class ThinkingBlockStartEvent(AgentEvent): ...


class ThinkingBlockDeltaEvent(AgentEvent): ...


class ThinkingBlockEndEvent(AgentEvent): ...


class DataBlockStartEvent(AgentEvent): ...


class DataBlockDeltaEvent(AgentEvent): ...


class DataBlockEndEvent(AgentEvent): ...


class HintBlockEvent(AgentEvent): ...


class ToolCallStartEvent(AgentEvent): ...


class ToolCallDeltaEvent(AgentEvent): ...


class ToolCallEndEvent(AgentEvent): ...


class ToolResultStartEvent(AgentEvent): ...


class ToolResultTextDeltaEvent(AgentEvent): ...


class ToolResultDataDeltaEvent(AgentEvent): ...


class ToolResultEndEvent(AgentEvent): ...


class RequireUserConfirmEvent(AgentEvent): ...


class RequireExternalExecutionEvent(AgentEvent): ...


class UserConfirmResultTold(AgentEvent): ...


class ExternalExecutionResultTold(AgentEvent): ...


class UserInterruptEvent(AgentEvent): ...


class ExceedMaxItersEvent(AgentEvent): ...


class CustomEvent(AgentEvent): ...


CLASSES: dict[EventType, type[AgentEvent]] = {
    "REPLY_START": ReplyStartEvent,
    "REPLY_END": ReplyEndEvent,
    "MODEL_CALL_START": ModelCallStartEvent,
    "MODEL_CALL_END": ModelCallEndEvent,
    "TEXT_BLOCK_START": TextBlockStartEvent,
    "TEXT_BLOCK_DELTA": TextBlockDeltaEvent,
    "TEXT_BLOCK_END": TextBlockEndEvent,
    "THINKING_BLOCK_START": ThinkingBlockStartEvent,
    "THINKING_BLOCK_DELTA": ThinkingBlockDeltaEvent,
    "THINKING_BLOCK_END": ThinkingBlockEndEvent,
    "DATA_BLOCK_START": DataBlockStartEvent,
    "DATA_BLOCK_DELTA": DataBlockDeltaEvent,
    "DATA_BLOCK_END": DataBlockEndEvent,
    "HINT_BLOCK": HintBlockEvent,
    "TOOL_CALL_START": ToolCallStartEvent,
    "TOOL_CALL_DELTA": ToolCallDeltaEvent,
    "TOOL_CALL_END": ToolCallEndEvent,
    "TOOL_RESULT_START": ToolResultStartEvent,
    "TOOL_RESULT_TEXT_DELTA": ToolResultTextDeltaEvent,
    "TOOL_RESULT_DATA_DELTA": ToolResultDataDeltaEvent,
    "TOOL_RESULT_END": ToolResultEndEvent,
    "REQUIRE_USER_CONFIRM": RequireUserConfirmEvent,
    "REQUIRE_EXTERNAL_EXECUTION": RequireExternalExecutionEvent,
    "USER_CONFIRM_RESULT": UserConfirmResultTold,
    "EXTERNAL_EXECUTION_RESULT": ExternalExecutionResultTold,
    "USER_INTERRUPT": UserInterruptEvent,
    "EXCEED_MAX_ITERS": ExceedMaxItersEvent,
    "CUSTOM": CustomEvent,
}
"""Each type of event to its class, for `isinstance`; an AgentEvent is of it however it was made. The two that tell of
answers are not the seed's, whose names the answers themselves bear (`agent.operations.bodies`)."""

Event = TypeVar("Event", bound=AgentEvent)


def _of_its_class(event: Event) -> Event:
    # Past the frozen fields: the classes differ in nothing but their names.
    object.__setattr__(event, "__class__", CLASSES[event.type])
    return event


class EventsSoFar(OpenValue):
    """What the events of earlier entries leave to know for those that come."""

    count: int = sparse(0)
    session_id: str = sparse("")
    agent: str = sparse("")
    reply_id: str = sparse("")
    calls: dict[str, ToolCallBlock] = sparse({})
    """Those of the reply that is being made that have no result yet, or none for certain."""
    started: tuple[str, ...] = sparse(())
    told: dict[str, int] = sparse({})
    """Characters of results that came in pieces and are still to end."""
    edits: dict[str, str] = sparse({})
    """Arguments of approvers, by call id, that no worker has looked at yet."""
