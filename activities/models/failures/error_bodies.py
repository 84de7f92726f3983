"""Reads a provider's answer to a call that failed: its body, its headers, and its words without keys.

Reads what a provider says of a failure, in whatever form it says it.

The forms: an object under `error` (OpenAI, Anthropic) or `Error` (AWS), the same in a list (Gemini), its fields at the
top (vLLM), a string (Ollama, TGI), `detail` with a list of fields (FastAPI), `base_resp` (MiniMax), another server's
whole answer as text in a message or in `metadata.raw` (OpenRouter, LiteLLM, Copilot's proxies), plain text, and a page
of HTML.

Reads from the headers of a provider's answer how long it asks us to wait.
"""

import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any

LONGEST_LINE_CHARACTERS = 400

_SECRETS = re.compile(
    r"\b(?:sk|pk|rk|ak|key|api|ant|xai|gsk|hf|ghp|gho|xox[abp])[-_][\w.*\-]{6,}"  # a key, also one partly starred out
    r"|\bAIza[\w\-]{20,}"
    r"|\beyJ[\w\-]+\.[\w\-.]+"  # a JSON web token
    r"|\b(?:bearer|basic)\s+\S+"
    r"|\b(?:authorization|x-api-key|api[-_ ]?key|cookie)\b['\"]?\s*[:=]\s*['\"]?(?:bearer\s+)?[^\s,'\"}]+"
    r"|//[^/\s:@]+:[^/\s@]+@"  # a password in an address
    r"|\b[A-Za-z0-9+_\-]{40,}={0,2}",
    re.IGNORECASE,
)


def for_a_person(text: str) -> str:
    """`text` on one line of at most 400 characters, with everything that looks like a secret hidden."""
    # Cut before the search: an answer can be megabytes long.
    line = " ".join(text[: LONGEST_LINE_CHARACTERS * 4].split())
    hidden = _SECRETS.sub("(hidden)", line)
    return hidden if len(hidden) <= LONGEST_LINE_CHARACTERS else hidden[: LONGEST_LINE_CHARACTERS - 1] + "…"


LONGEST_SECONDS = 3600.0
"""A longer wait is cut to this: a clock that is off, or a hostile server, must not park a session for days."""

_RESET = re.compile(r"(?:x-|anthropic-)?ratelimit(?:-[a-z-]+)?-reset(?:-[a-z-]+)?")
"""`x-ratelimit-reset-requests` (OpenAI, Azure, Groq), `anthropic-ratelimit-tokens-reset`, `x-ratelimit-reset`."""
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
"""`6m0s`, `7.66s`, `12ms`."""
_UNITS = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_FIRST_MOMENT = 1e8
"""A number from here on is no pause but a moment in seconds since 1970, and above the next in milliseconds."""
_FIRST_MILLISECOND = 1e11


def read_retry_after(headers: Mapping[str, str], now: datetime, *, limited: bool = False) -> float | None:
    """Seconds to wait, 0 to 3600; None without a header that can be read. `now` has a zone.

    `retry-after-ms` wins over `retry-after`, which holds seconds or an HTTP date (RFC 9110, section 10.2.3), and both
    over the moments at which limits are full again, which are longer than need be. `limited`: those count. Moments are
    the provider's, and so is its `date`, which takes the place of `now`: our clock may be hours off.
    """
    now += timedelta(seconds=_until(headers.get("date"), now) or 0.0)
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return within_limits(milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None:
        seconds = _until(value, now)
    if seconds is None and limited:
        seconds = _until_reset(headers, now)
    return None if seconds is None else within_limits(seconds)


def within_limits(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_SECONDS)


def _until_reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """The longest of the limits that are used up; of all, where none says that it is."""
    resets = {
        name: seconds
        for name, value in headers.items()
        if _RESET.fullmatch(name) and (seconds := _pause(value, now)) is not None
    }
    used_up = [resets[name] for name in resets if _number(headers.get(name.replace("reset", "remaining"))) == 0]
    return max(used_up or resets.values(), default=None)


def _pause(value: str, now: datetime) -> float | None:
    number = _number(value)
    if number is None:
        return _duration(value) or _until(value, now) or _until_iso(value, now)
    if number < _FIRST_MOMENT:
        return number
    return (number if number < _FIRST_MILLISECOND else number / 1000) - now.timestamp()


def _duration(value: object) -> float | None:
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) and value.strip() else None
    if found is None:
        return None
    return sum(float(part) * unit for part, unit in zip(found.groups(), _UNITS, strict=True) if part)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _until(value: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return _from(now, moment)


def _until_iso(value: str, now: datetime) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return _from(now, moment)


def _from(now: datetime, moment: datetime) -> float:
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()


LONGEST_BODY_CHARACTERS = 20_000
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
    status: int = 0
    """Of the answer; 0 where only its words were read."""


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
    text = text[:LONGEST_BODY_CHARACTERS]
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
