"""Reads from a provider's refusal which content of the request it means, so that the next one can do without it.

Providers name it by a path into what was sent (`messages.3.content.1`, `input[3].content[0]`,
`messages.[4].content.[1]`), by its kind in words, or not at all. Sources stand with the rows of
tests/activities/models/failures/refusals.py.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Means = Literal["thinking", "images at all", "attachments", "these"]

_PATH = re.compile(r"\b(?:messages|input)(?:\.?\[\d+\]|\.\d+)(?:\.?\[\d+\]|\.\w+)*")
_STEP = re.compile(r"\d+|[A-Za-z_]\w*")
_THINKING = re.compile(
    r"thinking`? block|redacted_thinking|(?:invalid|corrupt\w*).{0,12}signature|encrypted.content"
    r"|without its required 'reasoning'|item 'rs_|reasoning.{0,40}(?:not found|invalid|without)"
    r"|reasoning(?:_content|_details)?\W.{0,60}(?:unsupported|not (?:supported|permitted|allowed)|unexpected|unknown)"
    r"|(?:unsupported|unexpected|unknown|unrecognized).{0,60}\Wreasoning(?:_content|_details)?\W",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"process image|valid image|invalid.{0,3}image|unsupported image|image (?:format|type|size)"
    r"|image_parse_error|valid pdf"
    r"|image.{0,40}(?:invalid|not valid|corrupt|decode|exceed|too (?:large|big|small)|dimension)|dimensions|pixels"
    r"|(?:decode|parse|fetch).{0,40}(?:image|file|pdf|document|url)|download(?:ing)?\b|base64|mime|media.?type"
    r"|(?:pdf|document|file|attachment|audio|video).{0,60}"
    r"(?:invalid|not valid|corrupt|password|encrypted|exceed|too (?:large|many)|unsupported|empty|could not|cannot)"
    r"|(?:not|n't) (?:currently )?support.{0,20}(?:document|pdf)"
    r"|(?:could not|cannot|can't|unable to|failed to) (?:process|read|open|load).{0,20}"
    r"(?:image|file|pdf|document|attachment)",
    re.IGNORECASE,
)
_NO_IMAGES = re.compile(
    r"(?:not|n't) (?:currently )?support.{0,30}(?:image|vision|multi-?modal)"
    r"|image.{0,30}(?:not supported|only supported by)|image_url.{0,40}(?:not|only) (?:supported|allowed)"
    r"|support image input|unknown variant `?image|at most 0 image|not a (?:vision|multi-?modal)|mmproj"
    r"|(?:vision|multi-?modal).{0,20}(?:disabled|unsupported|unavailable)|content must be a string",
    re.IGNORECASE,
)
_STATUSES = frozenset({400, 404, 413, 415, 422, 500, 501})
"""llama.cpp says with 500 that it has no eyes, OpenRouter with 404."""
_SERVER_ERRORS = 500
OF_CONTENT = ("image", "encrypted", "base64", "pdf")
"""Codes with such a part name a content. Others have words in common with one: `settings_document_limit_exceeded`."""
_DATA_URL = re.compile(r"data:[^,]{0,200},")


@dataclass(frozen=True, slots=True)
class RefusedContent:
    means: Means
    contents: frozenset[str] = frozenset()
    """Base64 data or addresses of the attachments, where it says which."""
    path: str = ""
    """As the provider names the place; empty if it does not."""


def read_refusal(status: int, words: str, sent: bytes = b"") -> RefusedContent | None:
    """What is refused, or None when it is not the content, or nothing that could be left out.

    `words`: the message, with the field that the error names. `sent`: the request's body as JSON.
    """
    if status not in _STATUSES or (status >= _SERVER_ERRORS and not _NO_IMAGES.search(words)):
        return None
    found = _PATH.search(words)
    path = found[0] if found else ""
    node = _led_to(path, sent) if path else None
    if _THINKING.search(words) or _is_thinking(node):
        return RefusedContent("thinking", path=path)
    if _NO_IMAGES.search(words):
        return RefusedContent("images at all", path=path)
    if named := frozenset(_attachments_in(node)):
        return RefusedContent("these", named, path)
    return RefusedContent("attachments", path=path) if _BAD.search(words) else None


def _led_to(path: str, sent: bytes) -> Any:
    """The innermost block on the path; steps that only name a kind (`tool_result`, `image`) lead nowhere and are passed
    over."""
    try:
        value: Any = json.loads(sent)
    except ValueError:
        return None
    innermost: Any = None
    for step in _STEP.findall(path):
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value and isinstance(value[step], dict | list):
            value = value[step]
        if isinstance(value, dict) and ("type" in value or "role" in value):
            innermost = value
    return innermost


def _is_thinking(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") in ("thinking", "redacted_thinking", "reasoning")


def _attachments_in(node: Any) -> Iterator[str]:
    """The data or the address of each, as the record knows it."""
    match node:
        case {"type": "base64", "data": str(data)}:
            yield data
        case {"type": "url", "url": str(url)} | {"type": "input_file", "file_url": str(url)}:
            yield url
        case (
            {"type": "input_image", "image_url": str(url)}
            | {"type": "image_url", "image_url": {"url": str(url)}}
            | {"file_data": str(url)}
        ):
            yield _DATA_URL.sub("", url, count=1) if url.startswith("data:") else url
        case dict():
            for value in node.values():
                yield from _attachments_in(value)
        case list():
            for value in node:
                yield from _attachments_in(value)
        case _:
            return
