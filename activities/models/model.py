"""A model takes one request and gives one reply, with pieces on the way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, Literal, Protocol

from longhaul.activities.models.replies.stop_reason_table import stop_of
from longhaul.agent.values.conversation.messages import Msg, StopReason, TextBlock, ThinkingBlock, ToolCallBlock, Usage
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.profiles import ModelProfile


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The one form that an answer may have: the provider is made to call a tool of this name with these arguments."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of an object."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. `messages` are the recorded ones in order: one per model call and one per tool result, so
    neighbours of one role have to be joined for providers that want them in turn, and the results of one
    turn's calls follow the assistant message that made them (in any order, nothing in between)."""

    model: str
    """The provider's own name, without our prefix. With a profile: the name by which the model's family is told; the
    server is sent the profile's."""
    system: str
    messages: Sequence[Msg]
    tools: Sequence[ToolDescriptor]
    config: ModelConfig
    call_number: int = 0
    """How many model calls the session has made before this one; the scripted model answers with that line."""
    attempt: int = 1
    answer: AnswerSchema | None = None
    """Asked for instead of a free reply; `activities.models.requests.structured_output.answer_of` reads it."""
    no_calls: bool = False
    """The tools stand in the request, for the provider's cache of the prompt, and none may be called."""
    must_call: str = ""
    """The one of the tools that has to be called, where the provider can be told so; empty: as the model likes."""
    purpose: Literal["reply", "summary", "judgement", "sampling"] = "reply"
    """What the answer is for: the conversation, a shorter context, how risky a tool call is, or a server. Each is
    counted by itself; the scripted model has lines of their own for summaries."""
    profile: ModelProfile | None = None
    """Set by `activities.models.providers`, where the model was called by a name of one."""

    def with_messages(self, messages: Sequence[Msg]) -> "ModelRequest":
        """The same request where each of these is the one that it has."""
        same = all(map(is_, messages, self.messages))
        return self if same else replace(self, messages=messages)


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply while it streams."""

    kind: Literal["text", "thinking", "tool_call"]
    index: int
    """Which block of the reply."""
    text: str
    tool_call_id: str = ""
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    content: tuple[TextBlock | ThinkingBlock | ToolCallBlock, ...]
    """In the order that the model produced them. `ToolCallBlock.input` is the raw string, broken or not."""
    usage: Usage
    model: str
    """The provider's name of what answered."""
    stop_reason: str = ""
    """As the provider says: end_turn, tool_use, max_tokens, refusal, …"""
    notes: tuple[str, ...] = field(default=())
    """What the provider's API could not express and was left out or changed, for the log."""
    refusal: str = ""
    """What the provider says of a refusal beside the content, for a person."""

    @property
    def stop(self) -> StopReason:
        """What that comes to."""
        return stop_of(self.stop_reason)


class Model(Protocol):
    """A provider. Raises the provider SDK's own errors, which `failures.failure_classification` reads."""

    async def call(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply: ...

    async def close(self) -> None: ...
