"""A condenser gets a look at the context and a way to ask a model, and gives back the context that should be."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from longhaul.activities.compression.rendering import Piece, readable_text
from longhaul.activities.models.model import AnswerSchema
from longhaul.agent.values.conversation.messages import DATA_TOKENS, FRAME_TOKENS, DataBlock, Msg, Usage
from longhaul.agent.values.spec.agent_spec import ContextConfig

Count = Callable[[str], int]
"""Tokens of a text, for the model at hand."""
CountFor = Callable[[str, str], int]
"""Tokens of a text for the model of that full name, as `TokenCounter.count_text`. Called in threads too."""


def no_complaint(fields: Mapping[str, Any]) -> str:
    """The check of a question that takes every answer that fits its schema."""
    return ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model. `pieces` is the material, shortened where it does not fit the model's window."""

    system: str
    pieces: Sequence[Piece]
    task: str
    """Comes last, and is never shortened."""
    answer: AnswerSchema | None = None
    check: Callable[[Mapping[str, Any]], str] = no_complaint
    """What is wrong with an answer that fits the schema; empty when nothing is. The model is told, once."""


@dataclass(frozen=True, slots=True)
class SummaryAnswer:
    fields: dict[str, Any]
    """Empty where no form was asked for."""
    text: str
    model: str


Ask = Callable[[Question], Awaitable[SummaryAnswer]]
"""The session's model, then its fallback. What it costs is counted; what it raises is best let through."""


@dataclass(frozen=True, slots=True)
class View:
    """The context to make shorter. Indexes count in `messages`."""

    messages: tuple[Msg, ...]
    """Without the old summary."""
    old_summary: str
    """Empty when there was none."""
    keep_from: int
    pinned: tuple[int, ...]
    goal_tokens: int
    """What everything before `keep_from`, `pinned` left out, should come down to, the summary included."""
    system_prompt: str
    context_config: ContextConfig
    instructions: str
    must_mention: tuple[str, ...]
    count: Count
    ask: Ask

    def droppable(self) -> tuple[int, ...]:
        """The indexes of the messages that may go."""
        return tuple(index for index in range(self.keep_from) if index not in set(self.pinned))

    def tokens(self, messages: Sequence[Msg], summary: str = "") -> int:
        """Of these messages and a summary together."""
        frame = FRAME_TOKENS if summary else 0
        return sum(message_tokens(message, self.count) for message in messages) + frame + self.count(summary)


@dataclass(frozen=True, slots=True)
class Condensation:
    """What stays: `messages[i] for i in pinned`, then `messages[keep_from:]`, the results of `masked` left out."""

    keep_from: int
    pinned: tuple[int, ...] = ()
    masked: tuple[int, ...] = ()
    summary: str | None = None
    """The whole new summary; None = the old one stays."""
    fields: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    prompt_digest: str = ""
    usage: Usage | None = None
    """Of model calls that were not made by `View.ask`."""


class Condenser(Protocol):
    """Raises nothing of its own: what it can't do is None, and the next one in the chain is asked."""

    async def condense(self, view: View) -> Condensation | None: ...


def by_bytes(text: str, model: str = "") -> int:
    """Tokens, guessed for whatever model: a third of the bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


def message_tokens(message: Msg, count: Count) -> int:
    data = sum(isinstance(block, DataBlock) for block in message.content)
    data += sum(
        isinstance(part, DataBlock)
        for result in message.get_tool_results()
        if not isinstance(result.output, str)
        for part in result.output
    )
    return FRAME_TOKENS + data * DATA_TOKENS + count(readable_text(message))
