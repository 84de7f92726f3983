"""Reads what a provider says of a failure, in whatever form it says it.

The forms: an object under `error` (OpenAI, Anthropic) or `Error` (AWS), the same in a list (Gemini), its fields at the
top (vLLM), a string (Ollama, TGI), `detail` with a list of fields (FastAPI), `base_resp` (MiniMax), another server's
whole answer as text in a message or in `metadata.raw` (OpenRouter, LiteLLM, Copilot's proxies), plain text, and a page
of HTML.
"""

import html
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

LONGEST_CHARACTERS = 20_000
"""What a server says can be megabytes long, and is searched by expressions."""
_DEEPEST = 8
_MOST_NODES = 60

_CODES = ("error_code", "code", "Code", "type", "status", "reason", "status_code", "__type", "quotaId")
_MESSAGES = ("message", "Message", "msg", "status_msg", "title")
_INNER = ("error", "Error", "errors", "detail", "details", "innererror", "inner_error", "metadata", "raw", "base_resp")
_INNER_LISTS = ("violations",)
_PAGE = re.compile(r"\s*(?:<!doctype html|<html|<head|<body)", re.IGNORECASE)
_UNSEEN = re.compile(r"<(script|style|svg)\b.*?</\1\s*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_SECONDS = re.compile(r"(\d{1,7}(?:\.\d{1,12})?)s")


@dataclass(frozen=True, slots=True)
class ServerWords:
    codes: tuple[str, ...] = ()
    """All that name the failure, of all servers on the way, the outermost first."""
    message: str = ""
    param: str = ""
    """The field that it names."""
    retry_after_seconds: float | None = None


def said_in(body: object, text: str) -> ServerWords:
    """`body`: the answer's body, parsed where it is JSON. `text`: what to take for the message where there is none."""
    nodes = list(islice(_nodes(body if body is not None else text, _DEEPEST), _MOST_NODES))
    messages: list[str] = []
    for node in nodes:
        if (message := _message_of(node)) and not any(message in earlier for earlier in messages):
            messages.append(message)
    waits = (_seconds_of(node.get("retryDelay")) for node in nodes)
    return ServerWords(
        codes=tuple(dict.fromkeys(code for node in nodes for code in _codes_of(node))),
        message="; ".join(messages),
        param=next((param for node in nodes if isinstance(param := node.get("param"), str) and param), ""),
        retry_after_seconds=next((wait for wait in waits if wait is not None), None),
    )


def _nodes(value: object, left: int) -> Iterator[dict[str, Any]]:
    """The objects that say something, the outermost first."""
    if left == 0:
        return
    match value:
        case str() if value.strip():
            words, inner = _parted(value)
            yield {"message": words}
            yield from _nodes(inner, left - 1)
        case list():
            for item in value[:_MOST_NODES]:
                yield from _nodes(item, left - 1)
        case dict():
            words, inner = _parted(_message_of(value))
            yield {**value, "message": words, "loc": None}
            yield from _nodes(inner, left - 1)
            for name in _INNER:
                yield from _nodes(value.get(name), left - 1)
            for name in _INNER_LISTS:
                yield from _nodes([item for item in _list(value.get(name)) if isinstance(item, dict)], left - 1)
        case _:
            return


def _message_of(node: dict[str, Any]) -> str:
    found = next((text for name in _MESSAGES if isinstance(text := node.get(name), str) and text.strip()), "")
    path = ".".join(str(step) for step in _list(node.get("loc")))
    return f"{path}: {found}" if path and found else found


def _codes_of(node: dict[str, Any]) -> Iterator[str]:
    for name in _CODES:
        value = node.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and value:
            yield str(value)[:200]


def _parted(text: str) -> tuple[str, object]:
    """The words, and the other server's answer that follows them in JSON, or None."""
    text = text[:LONGEST_CHARACTERS]
    if _PAGE.match(text):
        return " ".join(html.unescape(_TAG.sub(" ", _UNSEEN.sub(" ", text))).split()), None
    for start in (place for place in (text.find("["), text.find("{")) if place >= 0):
        try:
            inner, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(inner, dict) or (isinstance(inner, list) and any(isinstance(item, dict) for item in inner)):
            return f"{text[:start]} {text[end:]}".strip(" \n-:'\""), inner
    return text.strip(), None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _seconds_of(value: object) -> float | None:
    found = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    seconds = float(found[1]) if found else math.nan
    return None if math.isnan(seconds) else seconds
