"""What OpenAI's two APIs share: who reasons, how results and attachments read where the API has no word for them."""

import json
import re
from dataclasses import dataclass

from activities.models.text import scrub
from activities.models.turns import arguments_of, failed
from agent.messages import Base64Source, DataBlock, ToolCallBlock, ToolResultBlock

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


@dataclass(frozen=True, slots=True)
class Attachment:
    kind: str
    """image or file."""
    url: str
    """http(s), or the content itself as a data URL."""
    name: str


def is_reasoning_model(model: str) -> bool:
    """Whether OpenAI's model of this name reasons: it takes no temperature, and its reasoning has to be sent back."""
    return bool(re.match(r"(o\d|gpt-[5-9]|codex)", model)) and "-chat" not in model


def attachment_of(block: DataBlock) -> Attachment | None:
    """The block as OpenAI's APIs take it; None for a type or an address that they do not know."""
    source = block.source
    if isinstance(source, Base64Source):
        url = f"data:{source.media_type};base64,{source.data}"
    elif source.url.startswith(("https://", "http://")):
        url = source.url
    else:
        return None
    if source.media_type in _IMAGES:
        return Attachment("image", url, block.name or "image")
    is_file = source.media_type == "application/pdf" and isinstance(source, Base64Source)
    return Attachment("file", url, block.name or "document.pdf") if is_file else None


def arguments_text(call: ToolCallBlock) -> str:
    """The arguments as JSON text of an object: compatible servers parse it, and fail on the model's own mistakes."""
    arguments = arguments_of(call)
    unchanged = "_unparsable" not in arguments and call.input.strip()
    return scrub(call.input) if unchanged else json.dumps(arguments)


def state_mark(result: ToolResultBlock) -> str:
    """`[error]` and the like in front of a result: OpenAI's APIs have no field for it. Empty for a success."""
    return f"[{result.state.value}]\n" if failed(result) else ""
