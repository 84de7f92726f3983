"""Asks Claude to think: in one way for a whole turn. Sources: platform.claude.com, "Thinking", "Thinking
in tool and multi-turn workflows", "Effort"."""

from collections.abc import Sequence
from typing import Any

from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.requests.efforts import NONE, effort_of
from longhaul.activities.models.requests.output_limit import output_limit
from longhaul.activities.models.requests.turns import AssistantTurn, Turn, UserTurn
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock, ToolCallBlock

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta by which a Claude that is given a budget thinks between its calls too, and not at the first one alone."""
BINDING_CONTROLS = "thinking-binding-controls-2026-08-01"
"""The beta that a request names which says what becomes of thoughts behind a changed beginning."""

Version = tuple[int, int]
_THINKS_BY_ITSELF: Version = (5, 0)
_ADAPTIVE: Version = (4, 6)
"""From here on a model finds its own budget, and may think between calls."""
_INTERLEAVES: Version = (4, 0)


def thinking_fields(request: ModelRequest, version: Version, turns: Sequence[Turn], notes: list[str]) -> dict[str, Any]:
    """`thinking` and `output_config`, where they are to be set, and `max_tokens`."""
    wanted, by_itself = request.config.reasoning_effort, version >= _THINKS_BY_ITSELF
    off = wanted == NONE and not by_itself
    effort = None if off else effort_of(request.model, wanted, notes)
    thinking: dict[str, Any] = {"type": "disabled"} if off else _thinking(request, version, turns, notes)
    thinks = by_itself or thinking.get("type") in ("adaptive", "enabled")
    fields: dict[str, Any] = {"max_tokens": output_limit(request.config, thinks=thinks)}
    if thinking.get("type") == "enabled":
        fields["max_tokens"] = request.config.max_output_tokens + thinking["budget_tokens"]
    if thinking:
        fields["thinking"] = thinking
    if effort is not None:
        fields["output_config"] = {"effort": effort}
    return fields


def _thinking(request: ModelRequest, version: Version, turns: Sequence[Turn], notes: list[str]) -> dict[str, Any]:
    config, adaptive = request.config, version >= _ADAPTIVE
    budget = config.thinking_budget_tokens
    wanted = budget is not None or (adaptive and config.reasoning_effort is not None)
    if not wanted:
        return {}
    if request.answer is not None:
        notes.append("Thinking is off for this call: Anthropic does not think when the answer's form is forced.")
        return {}
    if adaptive:
        if budget is not None:
            notes.append("The thinking budget was left out: this model sets its own.")
        return {"type": "adaptive", "display": "summarized"}
    if not _begun_with_thinking(turns):
        notes.append("Thinking is off for the rest of this turn: its first calls were made without it.")
        return {}
    return {"type": "enabled", "budget_tokens": budget}


def _begun_with_thinking(turns: Sequence[Turn]) -> bool:
    """Whether the calls that the request continues, if any, began with a thought that Anthropic has signed.

    A loop of calls is one turn to Anthropic. With a budget the model thinks at its first call, and need not at the
    others; one that was begun without, as by a fallback of another provider, is refused with it. So the first call
    decides, however the turn goes on: a configuration that changes within a turn loses all that is cached of messages,
    each time.
    """
    first: AssistantTurn | None = None
    for turn in reversed(turns):
        if isinstance(turn, UserTurn):
            continue  # a hint, or what was said meanwhile
        if not turn.calls():
            break
        first = turn
    return first is None or is_signed(first.blocks[0])


def is_signed(block: TextBlock | ThinkingBlock | ToolCallBlock) -> bool:
    """Whether it is a thought that Anthropic takes back."""
    extras = (block.model_extra or {}) if isinstance(block, ThinkingBlock) else {}
    return bool(extras.get("signature") or extras.get("redacted_thinking_data"))


def let_thoughts_be_dropped(payload: dict[str, Any]) -> None:
    """Where a beginning has changed that nobody here knows of: the request would be refused. Models that bind thoughts
    to it think whether they are told so or not."""
    thinking = payload.get("thinking", {"type": "adaptive"})
    payload["thinking"] = {**thinking, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def betas_of(payload: dict[str, Any], version: Version) -> list[str]:
    """Those that Anthropic's own server has to be named for this request."""
    thinking = payload.get("thinking", {})
    betas = [INTERLEAVED] if thinking.get("type") == "enabled" and version >= _INTERLEAVES else []
    return [*betas, BINDING_CONTROLS] if "block_binding" in thinking else betas
