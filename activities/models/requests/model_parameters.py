"""The parameters that a model takes, known by its name: whether it reasons, its efforts, temperature, `top_p` and stop
words; and what OpenAI's two APIs share of results and attachments.

Knows from their names which efforts models have, and finds the one that a model is asked for.

Sources: platform.claude.com, "Effort"; developers.openai.com, "Reasoning", and its models' own pages; ai.google.dev,
"OpenAI compatibility", "Gemini 3"; docs.x.ai, "Reasoning".
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from longhaul.activities.models.model import scrub
from longhaul.activities.models.requests.turns import arguments_of, failed
from longhaul.agent.values.conversation.messages import IMAGES, Base64Source, DataBlock, ToolCallBlock, ToolResultBlock
from longhaul.agent.values.spec.known_names import EFFORTS
from longhaul.agent.values.spec.profiles import ModelProfile

_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
"""What Chat Completions takes, and its name of it."""
_HEARS = re.compile(r"(?:^|[/.:])(?:gpt-(?:4o-(?:mini-)?)?audio|gemini-)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Attachment:
    kind: Literal["image", "file", "file by address"]
    url: str
    """http(s), or the content itself as a data URL."""
    name: str


def is_reasoning_model(model: str) -> bool:
    """Whether OpenAI's model of this name reasons: it takes no temperature, and its reasoning has to be sent back."""
    return bool(re.match(r"(o\d|gpt-[5-9]|codex)", model)) and "-chat" not in model


def is_grok(model: str) -> bool:
    """Whether it is one of xAI's: it thinks within its limit of output, as OpenAI's reasoning models do, and takes a
    temperature beside it, as they do not."""
    return bool(re.search(r"(?:^|[/.:])grok-", model, re.IGNORECASE))


def is_claude(model: str) -> bool:
    """Whether it is one of Anthropic's, by a gateway's name or its own: what is not marked is not cached."""
    return bool(re.search(r"(?:^|[/.:])claude-", model, re.IGNORECASE))


def hears(model: str) -> bool:
    """Whether it is known to take sounds."""
    return bool(_HEARS.search(model))


def sound_of(block: DataBlock, model: str) -> dict[str, Any] | None:
    """The block as Chat Completions takes a sound; None for another kind, for an address, and for a model that hears
    nothing. Sources: platform.openai.com, "Audio and speech"; ai.google.dev, "OpenAI compatibility"."""
    source = block.source
    found = _SOUNDS.get(source.media_type)
    if found is None or not isinstance(source, Base64Source) or not hears(model):
        return None
    return {"type": "input_audio", "input_audio": {"data": source.data, "format": found}}


def attachment_of(block: DataBlock) -> Attachment | None:
    """The block as OpenAI's APIs take it; None for a type or an address that they do not know."""
    source = block.source
    if isinstance(source, Base64Source):
        url = f"data:{source.media_type};base64,{source.data}"
    elif source.url.startswith(("https://", "http://")):
        url = source.url
    else:
        return None
    if source.media_type in IMAGES:
        return Attachment("image", url, block.name or "image")
    if source.media_type != "application/pdf":
        return None
    return Attachment(
        "file" if isinstance(source, Base64Source) else "file by address", url, block.name or "document.pdf"
    )


def arguments_text(call: ToolCallBlock) -> str:
    """The arguments as JSON text of an object: compatible servers parse it, and fail on the model's own mistakes."""
    arguments = arguments_of(call)
    unchanged = "_unparsable" not in arguments and call.input.strip()
    return scrub(call.input) if unchanged else json.dumps(arguments)


def state_mark(result: ToolResultBlock) -> str:
    """`[error]` and the like in front of a result: OpenAI's APIs have no field for it. Empty for a success."""
    return f"[{result.state.value}]\n" if failed(result) else ""


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
