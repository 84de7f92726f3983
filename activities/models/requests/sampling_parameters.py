"""Knows which models take no temperature, `top_p` or stop words, whatever an agent or a profile says.

Sources stand with the rules in tests/activities/models, `published_messages.py` and its neighbours.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from longhaul.activities.models.requests.openai_parts import is_reasoning_model
from longhaul.agent.values.spec.profiles import ModelProfile

_NAMES = {"temperature": "temperature", "top_p": "field top_p", "stop": "list of stop words"}
_FIXED = re.compile(r"kimi-(?:k[2-9]|k\d\d|for|thinking)", re.IGNORECASE)
"""Kimi's models sample in one way, and refuse to be told another; moonshot-v1 and the oldest don't."""
_LEAST_WHILE_THINKING = 0.95


def is_fixed(model: str) -> bool:
    return bool(_FIXED.search(model))


def refused_by_claude(payload: Mapping[str, Any], profile: ModelProfile | None, version: tuple[int, int]) -> set[str]:
    """Of a profile, for this request. `top_p` is refused from 4.7 on, next to a temperature, and next to thinking."""
    top_p = None if profile is None else profile.top_p
    thinks = payload.get("thinking", {}).get("type") in ("adaptive", "enabled")
    beside = "temperature" in payload.get("extra_body", {}) and version >= (4, 1)
    low = thinks and top_p is not None and top_p < _LEAST_WHILE_THINKING
    return {"top_p"} if version >= (4, 7) or beside or low else set()


def refused_by_responses(model: str) -> set[str]:
    return {"top_p"} if is_reasoning_model(model) else set()


def refused_by_chat(model: str, *, official: bool) -> set[str]:
    if official and is_reasoning_model(model):
        return {"top_p", "stop"}
    return {"top_p"} if is_fixed(model) else set()


def noted(profile: ModelProfile | None, refused: Collection[str], notes: list[str]) -> set[str]:
    """Those that the profile says; `notes` say that they were left out."""
    said = {name for name in refused if profile is not None and getattr(profile, name) not in (None, ())}
    notes += [f"The {_NAMES[name]} was left out: this model takes none with these settings." for name in sorted(said)]
    return said
