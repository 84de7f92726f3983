"""Reads what a provider reports of a call's tokens, in each of the ways that servers have; what it leaves out is
estimated, and marked as such.

The same numbers have many names: cache reads are `prompt_tokens_details.cached_tokens` at OpenAI,
`prompt_cache_hit_tokens` at DeepSeek, `cached_tokens` at Kimi, `num_cached_tokens` at Mistral, and as at Anthropic
behind LiteLLM. Gemini and xAI leave reasoning out of `completion_tokens`, and count it in `total_tokens` alone.
"""

from collections.abc import Mapping
from typing import Any

from longhaul.agent.values.conversation.messages import Usage

_MOST = 10**9
_CACHE_READS = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("cached_tokens",),
    ("num_cached_tokens",),
    ("cache_read_input_tokens",),
)
_CACHE_WRITES = (
    ("prompt_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("prompt_tokens_details", "cache_creation_input_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("cache_creation_input_tokens",),
)
_REASONING = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
)


def openai_usage(usage: object) -> Usage:
    """Of OpenAI's two APIs and of who speaks like them. What is not there, or no count, is 0."""
    read = _first(usage, ("prompt_tokens",), ("input_tokens",))
    wrote = _first(usage, ("completion_tokens",), ("output_tokens",))
    total, reasoning = _first(usage, ("total_tokens",)), _first(usage, *_REASONING)
    hidden = max(total - read - wrote, 0) if read else 0
    if hidden and reasoning in (0, hidden):
        wrote, reasoning = wrote + hidden, hidden
    return Usage(
        input_tokens=read,
        output_tokens=wrote,
        cache_input_tokens=min(_first(usage, *_CACHE_READS), read),
        cache_creation_input_tokens=min(_first(usage, *_CACHE_WRITES), read),
        reasoning_tokens=min(reasoning, wrote),
    )


def usage_of_chunk(chunk: object) -> Usage | None:
    """Of a piece of a streamed answer; None where it tells nothing. Kimi tells it in the choice, Groq in a field of its
    own."""
    choices = _field(chunk, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for told in (_field(chunk, "usage"), _field(_field(chunk, "x_groq"), "usage"), _field(choice, "usage")):
        if told is not None and (usage := openai_usage(told)) != Usage():
            return usage
    return None


def anthropic_usage(counts: Mapping[str, int]) -> Usage:
    """Anthropic counts cached tokens apart, we count them in. `counts`: by Anthropic's names, and `thinking_tokens`."""
    read, created = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
    wrote = counts.get("output_tokens", 0)
    return Usage(
        input_tokens=counts.get("input_tokens", 0) + read + created,
        output_tokens=wrote,
        cache_input_tokens=read,
        cache_creation_input_tokens=created,
        reasoning_tokens=min(counts.get("thinking_tokens", 0), wrote),
    )


def anthropic_counts(usage: object) -> dict[str, int]:
    """Those that one event of Anthropic's names: a later event leaves out what has not changed."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    told = {name: _count(_field(usage, name)) for name in names if _field(usage, name) is not None}
    thinking = _field(_field(usage, "output_tokens_details"), "thinking_tokens")
    return told if thinking is None else {**told, "thinking_tokens": _count(thinking)}


def estimated_where_silent(usage: Usage | None, input_estimate: int, output_estimate: int) -> Usage:
    """What was reported, and the worker's own counts for what was not."""
    told = usage or Usage()
    missing: dict[str, Any] = {}
    if not told.input_tokens and input_estimate:
        missing["input_tokens"] = input_estimate
    if not told.output_tokens and output_estimate:
        missing["output_tokens"] = output_estimate
    return told.model_copy(update={**missing, "estimated": True}) if missing else told


def _first(usage: object, *paths: tuple[str, ...]) -> int:
    """The first that is told and not 0."""
    for path in paths:
        value = usage
        for name in path:
            value = _field(value, name)
        if count := _count(value):
            return count
    return 0


def _field(value: object, name: str) -> Any:
    """Of an SDK's object, which keeps what it does not know as plain JSON."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _count(value: object) -> int:
    """A server may say anything: what is no count of tokens is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= _MOST else 0
