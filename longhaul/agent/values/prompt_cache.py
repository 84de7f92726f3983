"""A provider's prompt cache: how much of a model call it should serve, and why it served less.

A provider keeps the beginning of each request for some minutes: model, tools, system prompt, messages, in this order.
The next call reads it at a tenth of the price as long as nothing in it has changed.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import Usage

MissReason = Literal["", "model", "tools", "system", "messages", "choice", "settings", "idle", "hooks", "provider"]

REASONS: Mapping[MissReason, str] = {
    "model": "another model was called",
    "tools": "other tools were offered",
    "system": "the system prompt changed",
    "messages": "earlier messages changed: a compression, or something that the provider refused",
    "choice": "the last call of a reply may call no tool",
    "settings": "another effort or thinking budget",
    "idle": "more than five minutes passed since the call before",
    "hooks": "hooks or middlewares write the system prompt",
    "provider": "nothing changed here: the provider had it no more",
}

IDLE_MS = 300_000
"""Anthropic keeps a prefix for five minutes, OpenAI for five to thirty."""
LEAST_CACHED_TOKENS = 1_024
"""No provider caches a shorter prefix, and none counts so exactly that less of it would tell anything."""


class PromptSent(NamedTuple):
    """What stood before the newest message of a model call, by digest or number, and how much all of it was."""

    model: str
    """Full name."""
    tools: str
    system: str
    messages: int
    choice: str
    settings: str
    at: int
    """Milliseconds since 1970."""
    tokens: int
    """As its provider reported them; 0 where it did not."""


class Missed(OpenValue):
    """Of the calls that one reason made dearer."""

    calls: int = 0
    tokens: int = sparse(0)
    """That were read at the full price, or written again."""


def change(before: PromptSent, now: PromptSent) -> MissReason:
    """The first part that differs, in the order of a request; empty where the cache should serve all of the one
    before."""
    if before.model != now.model:
        return "model"
    if before.system != now.system:
        return "system"
    if before.tools != now.tools:
        return "tools"
    if before.messages != now.messages:
        return "messages"
    if before.choice != now.choice:
        return "choice"
    if before.settings != now.settings:
        return "settings"
    return "idle" if now.at - before.at > IDLE_MS else ""


def missed_tokens(expected: int, usage: Usage) -> int:
    """Tokens that the cache should have served and did not; 0 where the difference is one of counting.

    `expected`: the input of the call before. A context that has become shorter has less to miss.
    """
    could = min(expected, usage.input_tokens)
    missed = could - usage.cache_input_tokens
    return missed if missed > max(LEAST_CACHED_TOKENS, could // 10) else 0
