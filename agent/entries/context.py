"""Entries about the context as a whole: when it was made shorter, and what came of it."""

from typing import Any, Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.conversation.messages import ErrorInfo, Usage
from longhaul.agent.values.spec.agent_spec import ContextConfig


class CompressAsked(Entry):
    """Somebody wants the context made shorter now; it happens at the next step boundary."""

    kind: Literal["compress_asked"] = "compress_asked"
    config: ContextConfig | None = sparse(None)
    """For this once; None = the session's own."""
    instructions: str = sparse("")
    by: str = sparse("")


class ContextCompressed(Entry):
    """The context became shorter: `context[i] for i in pinned`, then `context[keep_from:]`, some results masked.

    Indexes count in the context of the old epoch, without the summary. What was dropped stays in the session's
    record and can be recalled.
    """

    kind: Literal["compressed"] = "compressed"
    epoch: int
    """The new one: addresses of the old one are refused from now on."""
    keep_from: int
    pinned: tuple[int, ...] = sparse(())
    masked: tuple[int, ...] = sparse(())
    """Tool results whose text is replaced by `agent.decisions.compaction.MASK`."""
    summary: str | None = sparse(None)
    """The whole new summary; None = the old one stays."""
    summary_tokens: int = sparse(0)
    fields: dict[str, Any] = sparse({})
    """The summary as the model gave it."""
    condenser: str = sparse("summary")
    model: str = sparse("")
    prompt_digest: str = sparse("")
    """Of the prompt that asked for the summary."""
    source_digest: str = sparse("")
    """Of the context that was read for it."""
    offloaded: str = sparse("")
    """Where the dropped messages were written for the agent to read; empty when nowhere."""
    usage: Usage | None = sparse(None)
    adjusted: tuple[str, ...] = sparse(())
    """Of the request for a summary, as of `ModelSaid`."""
    lost_attempts: int = sparse(0)
    """As of `ModelSaid`."""
    context_digest: str = sparse("")
    context_length: int = sparse(0)
    """Of the new epoch's context, summary included: the prefix of the next model call."""


class NotCompressed(Entry):
    """Nothing changed; the session goes on with the context as it is, or says why it can't."""

    kind: Literal["compression_failed"] = "compression_failed"
    error: ErrorInfo
    usage: Usage | None = sparse(None)
    lost_attempts: int = sparse(0)
    """As of `ModelSaid`."""


ContextEntry = CompressAsked | ContextCompressed | NotCompressed
