"""Messages and the blocks they are made of: what the model, a person and the record all read.

Names and states are AgentScope v2's (agentscope/message). Two differences, both for the sake of the record:
ids and times come from outside (the workflow's clock), never from a global; and the unit is one message per
model call and per tool result, because each crosses the history once. `agent.transcript` folds them into the
one assistant message per reply that a reader expects.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, assert_never

from pydantic import BeforeValidator, ConfigDict, Field

from agent.permission.rules import PermissionRule
from agent.values import Guest, sparse


class ToolCallState(StrEnum):
    PENDING = "pending"
    ASKING = "asking"
    ALLOWED = "allowed"
    SUBMITTED = "submitted"
    FINISHED = "finished"


class ToolResultState(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    DENIED = "denied"
    UNKNOWN = "unknown"
    """Outcome unknown: an effect of class `once` was started and its worker lost. AgentScope has no such state."""


class FinishedReason(StrEnum):
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    EXCEED_MAX_ITERS = "exceed_max_iters"
    ERROR = "error"
    STUCK = "stuck"
    """The agent went round in circles. AgentScope has no such end; OpenHands calls a conversation so."""


class Base64Source(Guest):
    type: Literal["base64"] = "base64"
    data: str
    media_type: str


class URLSource(Guest):
    type: Literal["url"] = "url"
    url: str
    media_type: str


class TextBlock(Guest):
    type: Literal["text"] = "text"
    text: str


class ThinkingBlock(Guest):
    """Provider extras (Anthropic's `signature`, `redacted_thinking_data`) are kept, and sent back as they came."""

    model_config = ConfigDict(frozen=True, extra="allow")
    type: Literal["thinking"] = "thinking"
    thinking: str


class DataBlock(Guest):
    type: Literal["data"] = "data"
    source: Annotated[Base64Source | URLSource, Field(discriminator="type")]
    name: str | None = sparse(None)


class HintBlock(Guest):
    """Text for the model that no person said; sent as a user turn."""

    type: Literal["hint"] = "hint"
    hint: str | tuple[TextBlock | DataBlock, ...]
    source: str | None = sparse(None)


class ToolCallBlock(Guest):
    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    input: str
    """The arguments as a JSON string, as the model wrote them: it may be broken."""
    state: ToolCallState = sparse(ToolCallState.PENDING)
    suggested_rules: tuple[PermissionRule, ...] = sparse(())


class ToolResultBlock(Guest):
    type: Literal["tool_result"] = "tool_result"
    id: str
    """The id of the call that it answers."""
    name: str
    output: str | tuple[Annotated[TextBlock | DataBlock, Field(discriminator="type")], ...]
    state: ToolResultState = sparse(ToolResultState.SUCCESS)
    metadata: dict[str, Any] = sparse({})

    def get_text(self) -> str:
        """The text parts joined by newlines; data blocks are left out."""
        if isinstance(self.output, str):
            return self.output
        return "\n".join(part.text for part in self.output if isinstance(part, TextBlock))


ContentBlock = Annotated[
    TextBlock | ThinkingBlock | DataBlock | HintBlock | ToolCallBlock | ToolResultBlock,
    Field(discriminator="type"),
]


class Usage(Guest):
    """Tokens of one model call, as the provider reported them. `input_tokens` includes the cached ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_input_tokens: int = sparse(0)
    cache_creation_input_tokens: int = sparse(0)

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_input_tokens=self.cache_input_tokens + other.cache_input_tokens,
            cache_creation_input_tokens=self.cache_creation_input_tokens + other.cache_creation_input_tokens,
        )


class ErrorInfo(Guest):
    """Why a reply failed, for a person."""

    type: str
    """authentication, permission, rate_limit, invalid_request, context_overflow, upstream, connection, internal,
    setup or stuck."""
    message: str


def _as_blocks(content: object) -> object:
    return ({"type": "text", "text": content},) if isinstance(content, str) else content


class Msg(Guest):
    """One message. `content` may be given as a string: it becomes one text block."""

    name: str
    role: Literal["user", "assistant", "system"]
    content: Annotated[tuple[ContentBlock, ...], BeforeValidator(_as_blocks)]
    id: str = sparse("")
    metadata: dict[str, Any] = sparse({})
    created_at: str = sparse("")
    """ISO 8601 with zone; empty until the record has stamped it."""
    usage: Usage | None = sparse(None)
    finished_at: str = sparse("")
    finished_reason: FinishedReason | None = sparse(None)
    structured_output: dict[str, Any] | None = sparse(None)
    error: ErrorInfo | None = sparse(None)

    def get_text_content(self, separator: str = "\n") -> str:
        """The text blocks joined by `separator`; thinking, calls and results are left out."""
        return separator.join(block.text for block in self.content if isinstance(block, TextBlock))

    @cached_property
    def text_length(self) -> int:
        """Characters of what the model reads, attachments at a flat 100. Kept, for a long session asks it often; a
        `model_copy` keeps it too, so never copy with other content."""
        return sum(_text_length(block) for block in self.content)

    def get_tool_calls(self) -> tuple[ToolCallBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolCallBlock))

    def get_tool_results(self) -> tuple[ToolResultBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolResultBlock))


def _text_length(block: ContentBlock) -> int:
    match block:
        case TextBlock():
            return len(block.text)
        case ThinkingBlock():
            return len(block.thinking)
        case ToolCallBlock():
            return len(block.input)
        case ToolResultBlock():
            return len(block.get_text())
        case HintBlock():
            return len(block.hint) if isinstance(block.hint, str) else 100
        case DataBlock():
            return 100
        case _ as never:
            assert_never(never)


Content = str | Iterable[ContentBlock | dict[str, Any]]


def UserMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "user", "content": _listed(content), **fields})


def AssistantMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "assistant", "content": _listed(content), **fields})


def SystemMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "system", "content": _listed(content), **fields})


def _listed(content: Content) -> object:
    return content if isinstance(content, str) else tuple(content)
