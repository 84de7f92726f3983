"""Requests to a provider as bytes, of which each message is written once: what a step sends grows with what is new.

An SDK would copy the whole conversation and write it down anew for each call: of a thousand messages that took three
quarters of a step's processor time.
"""

import json
from collections.abc import Mapping
from typing import Any, TypedDict

import httpx2

from longhaul.activities.models.requests.text import scrub_json

LONGEST_KEPT = 100_000
"""Bytes of a written item that are kept: a longer one is a picture or the like, which would be in memory twice."""
_OF_THE_SDK = frozenset({"extra_headers", "extra_body"})


class WireItem(dict[str, Any]):
    """A message in a provider's shape. Nothing may change in it: it may be written already."""

    __slots__ = ("text",)

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.text: bytes | None = None
        """As it is written, once it is; None for a long one."""

    def written(self) -> bytes:
        if self.text is not None:
            return self.text
        text = _written(self)
        if len(text) <= LONGEST_KEPT:
            self.text = text
        return text


class PostArguments(TypedDict, total=False):
    """Arguments of an SDK client's `post`."""

    content: bytes
    body: Any
    options: Any


def wire_item(given: dict[str, Any]) -> WireItem:
    """Without lone surrogates, which can't be sent. To write it down is quicker than to look at each string."""
    item = WireItem(given)
    try:
        item.written()
    except UnicodeEncodeError:
        return WireItem(scrub_json(given))
    return item


def sent(arguments: Mapping[str, Any], listed: str, timeout: httpx2.Timeout) -> PostArguments:
    """What an SDK's client posts for these arguments of its method, streamed. `listed`: the field of the messages."""
    written = _written({name: value for name, value in _body(arguments).items() if name != listed})
    # No call for what is written already: of each message of the context this is asked in each step.
    items = b",".join([(isinstance(item, WireItem) and item.text) or _item(item) for item in arguments[listed]])
    content = b'%b,"%b":[%b]}' % (written[:-1], listed.encode(), items)
    return {"content": content, "options": _options(arguments, timeout)}


def mapped(arguments: Mapping[str, Any], listed: str, timeout: httpx2.Timeout) -> PostArguments:
    """The same for a client that changes the body before it signs it: that copies and writes the whole of it."""
    return {"body": {**_body(arguments), listed: list(arguments[listed])}, "options": _options(arguments, timeout)}


def _body(arguments: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in arguments.items() if name not in _OF_THE_SDK}
    return {**fields, "stream": True, **arguments.get("extra_body", {})}


def _options(arguments: Mapping[str, Any], timeout: httpx2.Timeout) -> dict[str, Any]:
    return {"headers": arguments.get("extra_headers", {}), "timeout": timeout}


def _item(item: dict[str, Any]) -> bytes:
    return item.written() if isinstance(item, WireItem) else _written(item)


def _written(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
