"""Chooses the parameters of one request by what its model takes (`model_rules`): the effort, whether a temperature,
`top_p` and stop words are sent, and the limit of output; and has what OpenAI's two APIs share of results and
attachments.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from longhaul.activities.models.model import ModelRequest, scrub
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.activities.models.requests.turns import arguments_of, failed
from longhaul.agent.values.conversation.messages import IMAGES, Base64Source, DataBlock, ToolCallBlock, ToolResultBlock
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.known_names import EFFORTS
from longhaul.agent.values.spec.profiles import ModelProfile

_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
"""What Chat Completions takes, and its name of it."""


@dataclass(frozen=True, slots=True)
class Attachment:
    kind: Literal["image", "file", "file by address"]
    url: str
    """http(s), or the content itself as a data URL."""
    name: str


def is_reasoning_model(model: str) -> bool:
    """Whether OpenAI's model of this name reasons: its reasoning has to be sent back, and its server is silent
    meanwhile."""
    rules = rules_of(model)
    return rules.maker == "openai" and rules.thinks in ("asked", "default", "always")


def is_grok(model: str) -> bool:
    """Whether it is one of xAI's: it thinks within its limit of output, as OpenAI's reasoning models do, and takes a
    temperature beside it, as they do not."""
    return rules_of(model).maker == "x-ai"


def is_claude(model: str) -> bool:
    """Whether it is one of Anthropic's, by a gateway's name or its own: what is not marked is not cached."""
    return rules_of(model).maker == "anthropic"


def hears(model: str) -> bool:
    """Whether it is known to take sounds."""
    return rules_of(model).hears


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


def levels_of(model: str) -> tuple[str, ...] | None:
    """The efforts that it is known to have, ascending; None where that is not known."""
    return rules_of(model).efforts


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


def thinks_now(model: str, effort: str | None) -> bool:
    """Whether it thinks when this effort is sent, or none is."""
    rules = rules_of(model)
    return rules.thinks_unasked if effort is None else effort != NONE


def refuses_sampling(model: str, *, thinks: bool) -> bool:
    """Whether a request with a temperature or `top_p` is refused. `thinks`: in this request."""
    samples = rules_of(model).samples
    return samples == "no" or (samples == "idle" and thinks)


def limit_of_output(request: ModelRequest, *, thinks: bool, notes: list[str], beside: int = 0) -> int:
    """The limit to send, no higher than the model's own. `beside`: tokens of thoughts that count against it too."""
    most = rules_of(request.model).output
    if most is not None and request.config.max_output_tokens > most:
        notes.append(f"The limit of output is {most:,} tokens: this model writes no more.")
    wanted = request.config.max_output_tokens + beside if beside else output_limit(request.config, thinks=thinks)
    return wanted if most is None else min(wanted, most)


THINKING_TOKENS = 25_000
"""What OpenAI advises to keep free for reasoning. It is a limit: what is not used costs nothing."""
MOST_TOKENS = 40_000
"""A limit is not raised beyond this: models refuse one that is above what they can say, 64,000 for the smallest that
think."""


def output_limit(config: ModelConfig, *, thinks: bool) -> int:
    """`thinks`: the provider counts thoughts against the limit. Of a small window never more than a quarter is kept
    for them."""
    limit = config.max_output_tokens
    if not thinks:
        return limit
    room = max(config.thinking_budget_tokens or 0, THINKING_TOKENS)
    return max(limit, min(limit + min(room, (config.context_length or 4 * room) // 4), MOST_TOKENS))


_NAMES = {"temperature": "temperature", "top_p": "field top_p", "stop": "list of stop words"}
_LEAST_WHILE_THINKING = 0.95


def refused_by_claude(payload: Mapping[str, Any], request: ModelRequest, *, sampling: bool) -> set[str]:
    """Of a profile, for this request: `top_p` is refused where sampling is, next to a temperature, and next to
    thinking where it is low. `sampling`: whether this version of the API takes it at all."""
    top_p = None if request.profile is None else request.profile.top_p
    thinks = payload.get("thinking", {}).get("type") in ("adaptive", "enabled")
    beside = is_claude(request.model) and "temperature" in payload.get("extra_body", {})
    low = thinks and top_p is not None and top_p < _LEAST_WHILE_THINKING
    return {"top_p"} if not sampling or refuses_sampling(request.model, thinks=False) or beside or low else set()


def noted(profile: ModelProfile | None, refused: Collection[str], notes: list[str]) -> set[str]:
    """Those that the profile says; `notes` say that they were left out."""
    said = {name for name in refused if profile is not None and getattr(profile, name) not in (None, ())}
    notes += [f"The {_NAMES[name]} was left out: this model takes none with these settings." for name in sorted(said)]
    return said
