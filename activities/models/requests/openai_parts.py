"""Code that OpenAI's two APIs share: who reasons, how results and attachments read where the API has no word for
them."""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from longhaul.activities.models.requests.text import scrub
from longhaul.activities.models.requests.turns import arguments_of, failed
from longhaul.agent.values.conversation.messages import IMAGES, Base64Source, DataBlock, ToolCallBlock, ToolResultBlock

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
