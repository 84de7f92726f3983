"""Knows from their names which efforts models have, and finds the one that a model is asked for.

Sources: platform.claude.com, "Effort"; developers.openai.com, "Reasoning", and its models' own pages; ai.google.dev,
"OpenAI compatibility", "Gemini 3"; docs.x.ai, "Reasoning".
"""

import re

from longhaul.activities.models.requests.openai_parts import is_grok
from longhaul.agent.values.spec.known_names import EFFORTS

NONE = "none"
_CLASSIC = ("low", "medium", "high")
_CLAUDE = (*_CLASSIC, "xhigh", "max")
_GPT = (NONE, *_CLASSIC, "xhigh")

_LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"claude-(fable|mythos)-\d", _CLAUDE),
    (r"claude-mythos-preview", (*_CLASSIC, "max")),
    (r"claude-([a-z]+-)?([5-9]|\d\d)\b", _CLAUDE),
    (r"claude-([a-z]+-)?4[-.]([7-9]|\d\d)\b", _CLAUDE),
    (r"claude-([a-z]+-)?4[-.]6\b", (*_CLASSIC, "max")),
    (r"claude-opus-4[-.]5\b", _CLASSIC),
    (r"claude-(instant|v?[1-4]\b|[a-z]+-[1-4]\b)", ()),
    (r"gpt-(3\.5|4)|chatgpt-|gpt-[5-9][\d.]*-chat", ()),
    (r"gpt-oss", _CLASSIC),
    (r"gpt-5-pro", ("high",)),
    (r"gpt-5(\.\d+)?-pro", ("medium", "high", "xhigh")),
    (r"gpt-5\.1-codex-max|gpt-5\.[2-9][\d]*-codex", (*_CLASSIC, "xhigh")),
    (r"gpt-5(\.1)?-codex|codex-mini", _CLASSIC),
    (r"gpt-5\.1\b", (NONE, *_CLASSIC)),
    (r"gpt-5\.[2-5]\b", _GPT),
    (r"gpt-5\.\d", (*_GPT, "max")),
    (r"gpt-5\b", ("minimal", *_CLASSIC)),
    (r"(^|[/.:])o\d(-|$)", _CLASSIC),
    (r"grok-(4\.3\b|latest|[34](-latest)?$|4-0709|4-(1-)?fast)", (NONE, *_CLASSIC)),
    (r"grok-(4\.[56]\b|build-latest)", _CLASSIC),
    (r"grok-(4\.7\b|4\.20-multi-agent)", (*_CLASSIC, "xhigh")),
    (r"grok-3-mini", ("low", "high")),
    (r"grok-(4\.20|build|code|composer)", ()),
    (r"gemini-3-pro", ("low", "high")),
    (r"gemini-[3-9][\d.]*-pro", _CLASSIC),
    (r"gemini-", (NONE, "minimal", *_CLASSIC)),
)
"""By a part of the name, the first that fits; gateways put names of their own around it. A model that is not here is
sent what was asked for: its provider knows better."""
_LEVELS_OF = tuple((re.compile(pattern, re.IGNORECASE), levels) for pattern, levels in _LEVELS)


def levels_of(model: str) -> tuple[str, ...] | None:
    """The efforts that it is known to have, ascending; None where that is not known."""
    return next((levels for pattern, levels in _LEVELS_OF if pattern.search(model)), None)


def may_reason(model: str) -> bool:
    """False for one that is known to have no efforts, but Grok, which reasons anyhow: the name of an Azure deployment
    says nothing."""
    return levels_of(model) != () or is_grok(model)


def effort_of(model: str, wanted: str | None, notes: list[str]) -> str | None:
    """The effort to send: the one that is wanted, or the nearest that the model has, which `notes` then say. None:
    the field is left out."""
    levels = levels_of(model)
    if wanted is None or levels is None or wanted in levels:
        return wanted
    # Whoever wants little is not given nothing: that would switch reasoning off.
    near = [level for level in levels if level != NONE]
    if not near:
        if wanted != NONE:
            notes.append(f"The effort {wanted!r} was left out: this model has none.")
        return None
    nearest = min(near, key=lambda level: abs(EFFORTS.index(level) - EFFORTS.index(wanted)))
    notes.append(f"This model has no effort {wanted!r}: it is asked for {nearest!r}. It has: {', '.join(levels)}.")
    return nearest
