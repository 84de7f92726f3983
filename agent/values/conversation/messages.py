"""Messages and the blocks they are made of: what the model, a person and the record all read.

Names and states are AgentScope v2's (agentscope/message). Two differences, both for the sake of the record:
ids and times come from outside (the workflow's clock), never from a global; and the unit is one message per
model call and per tool result, because each crosses the history once. `agent.views.transcript` folds them into the
one assistant message per reply that a reader expects.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, assert_never

from pydantic import BeforeValidator, ConfigDict, Field

from longhaul.agent.plain.canonical import digest_of
from longhaul.agent.plain.values import Given, Many, OpenValue, sparse
from longhaul.agent.values.conversation.provider_extras import CONTINUES, Extras
from longhaul.agent.values.permission import PermissionRule


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


ResultStateName = Literal["running", "success", "error", "interrupted", "denied", "unknown"]


class FinishedReason(StrEnum):
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    EXCEED_MAX_ITERS = "exceed_max_iters"
    ERROR = "error"
    STUCK = "stuck"
    """The agent went round in circles. AgentScope has no such end; OpenHands calls a conversation so."""
    REFUSED = "refused"  # No model was willing, or allowed, to answer; not AgentScope's, nor is the next one.
    OUT_OF_BUDGET = "out_of_budget"  # Not AgentScope's either: what the session may spend does not do for another call.
    INCOMPLETE = "incomplete"  # The model's last message is not whole, and it was asked to go on often enough.
    UNSTRUCTURED = "unstructured"  # An answer in a form was asked for, and the model gave words; not AgentScope's.
    REJECTED = "rejected"
    """A person has denied a call, or let its time run out, where `stop_on_reject` is set; not AgentScope's."""


class Base64Source(OpenValue):
    type: Literal["base64"] = "base64"
    data: str
    media_type: str


class URLSource(OpenValue):
    type: Literal["url"] = "url"
    url: str
    media_type: str


class TextBlock(OpenValue):
    type: Literal["text"] = "text"
    text: str
    extras: Extras = sparse({})


class ThinkingBlock(OpenValue):
    """Provider extras (Anthropic's `signature`, `redacted_thinking_data`) are kept, and sent back as they came."""

    model_config = ConfigDict(frozen=True, extra="allow")
    type: Literal["thinking"] = "thinking"
    thinking: str


class DataBlock(OpenValue):
    type: Literal["data"] = "data"
    source: Annotated[Base64Source | URLSource, Field(discriminator="type")]
    name: str | None = sparse(None)


class HintBlock(OpenValue):
    """Text for the model that no person said; sent as a user turn."""

    type: Literal["hint"] = "hint"
    hint: Given[str | tuple[TextBlock | DataBlock, ...], str | Sequence[TextBlock | DataBlock]]
    source: str | None = sparse(None)


class ToolCallBlock(OpenValue):
    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    input: str
    """The arguments as a JSON string, as the model wrote them: it may be broken, or say why they are not known
    (`not_to_run`)."""
    extras: Extras = sparse({})
    state: ToolCallState = sparse(ToolCallState.PENDING)
    suggested_rules: Many[PermissionRule] = sparse(())


_NOT_TO_RUN = re.compile(r"\(not run: ([^()]{1,400})\)")


def not_to_run(why: str, arrived: str) -> str:
    """The input of a call whose arguments are not known for certain: no JSON, so that nothing can run it. `why`: a
    clause for the model, without brackets; `arrived`: what came in the place of arguments."""
    return f"(not run: {why}) {arrived}".rstrip()


def why_not_to_run(arguments: str) -> str:
    """Empty for an input that is none of these."""
    found = _NOT_TO_RUN.match(arguments)
    return found[1] if found else ""


class ToolResultBlock(OpenValue):
    type: Literal["tool_result"] = "tool_result"
    id: str
    """The id of the call that it answers."""
    name: str
    output: Given[
        str | tuple[Annotated[TextBlock | DataBlock, Field(discriminator="type")], ...],
        str | Sequence[TextBlock | DataBlock],
    ]
    state: Given[ToolResultState, ToolResultState | ResultStateName] = sparse(ToolResultState.SUCCESS)
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


class Usage(OpenValue):
    """Tokens, as the provider reported them. `input_tokens` includes the cached ones, `output_tokens` the reasoning."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_input_tokens: int = sparse(0)
    cache_creation_input_tokens: int = sparse(0)
    reasoning_tokens: int = sparse(0)
    estimated: bool = sparse(False)
    """A provider has left counts out, and they are the worker's own."""

    def __add__(self, other: "Usage") -> "Usage":
        # Spelt out: each entry of a session adds some up, and so does each replay.
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_input_tokens=self.cache_input_tokens + other.cache_input_tokens,
            cache_creation_input_tokens=self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            estimated=self.estimated or other.estimated,
        )


class ErrorInfo(OpenValue):
    """Why a reply failed, for a person."""

    type: str
    """authentication, permission, rate_limit, invalid_request, context_overflow, upstream, connection, internal,
    setup, middleware, kind, stuck, refused, filtered, incomplete, unstructured or overdue."""
    message: str


def _as_blocks(content: object) -> object:
    return ({"type": "text", "text": content},) if isinstance(content, str) else content


IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Media types that providers take as images."""


class Msg(OpenValue):
    """One message. `content` may be given as a string: it becomes one text block."""

    name: str
    role: Literal["user", "assistant", "system"]
    content: Given[Annotated[tuple[ContentBlock, ...], BeforeValidator(_as_blocks)], str | Sequence[ContentBlock]]
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
        """The text blocks joined by `separator`; thinking, calls and results are left out. Of a reply with tools: what
        was said last, behind the last result, as the seed's `reply` returns it. What a model went on with where its
        answer had broken off is joined by nothing."""
        said: list[str] = []
        for block in reversed(self.content):
            if isinstance(block, ToolResultBlock):
                break
            if isinstance(block, TextBlock):
                said += [block.text, "" if CONTINUES in block.extras else separator]
        return "".join(reversed(said[:-1]))

    @cached_property
    def text_length(self) -> int:
        """Characters of what the model reads, attachments at a flat 100. Kept, for a long session asks it often; a
        `model_copy` keeps it too, so never copy with other content."""
        parts = (part for block in self.content for part in parts_of(block))
        return sum(len(part) if isinstance(part, str) else 100 for part in parts)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is words, calls and results alone, with nothing that one provider takes and another refuses:
        attachments, thoughts, extras. Kept as the length is: each request looks at all messages."""
        return not any(_is_particular(block) for block in self.content)

    def get_tool_calls(self) -> tuple[ToolCallBlock, ...]:
        return tuple([block for block in self.content if isinstance(block, ToolCallBlock)])

    def get_tool_results(self) -> tuple[ToolResultBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolResultBlock))


def with_content(message: Msg, content: Sequence[ContentBlock]) -> Msg:
    """The message with other content, made anew: a copy would keep what was measured."""
    return Msg.model_validate({**dict(message), "content": tuple(content)})


def _is_particular(block: ContentBlock) -> bool:
    if isinstance(block, ThinkingBlock) or (isinstance(block, TextBlock | ToolCallBlock) and block.extras):
        return True
    return any(isinstance(part, DataBlock) for part in parts_of(block))


def parts_of(block: ContentBlock) -> tuple[str | DataBlock, ...]:
    """What a model reads of a block, in order: texts and attachments; of a call its arguments alone."""
    match block:
        case TextBlock():
            return (block.text,)
        case ThinkingBlock():
            return (block.thinking,)
        case ToolCallBlock():
            return (block.input,)
        case DataBlock():
            return (block,)
        case HintBlock():
            return parts_of_output(block.hint)
        case ToolResultBlock():
            return parts_of_output(block.output)
        case _ as never:
            assert_never(never)


def parts_of_output(output: str | tuple[TextBlock | DataBlock, ...]) -> tuple[str | DataBlock, ...]:
    """The same of what a tool gives, or a hint tells."""
    if isinstance(output, str):
        return (output,)
    return tuple(part.text if isinstance(part, TextBlock) else part for part in output)


Content = str | Iterable[ContentBlock | dict[str, Any]]


def UserMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "user", "content": _listed(content), **fields})


def AssistantMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "assistant", "content": _listed(content), **fields})


def SystemMsg(name: str, content: Content, **fields: Any) -> Msg:  # noqa: N802  the seed's name
    return Msg.model_validate({"name": name, "role": "system", "content": _listed(content), **fields})


def _listed(content: Content) -> object:
    return content if isinstance(content, str) else tuple(content)


SEEN_BY_THE_MODEL = {"role", "name", "content"}


def message_digest(message: Msg) -> str:
    """Digest of what the model sees of a message: ids, times and usage are not part of it."""
    return digest_of(message.model_dump(mode="json", include=SEEN_BY_THE_MODEL))
