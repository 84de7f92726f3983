"""A store of live streams has one stream of lines per session, appended to by workers and read by many.

A stream may be lost at any time without losing a word of what was said. Keys are `namespace/workflow id`, made from
names that anybody may choose: each store escapes them.

An item of a session's live stream is a piece of what is being made, or a mark between pieces. None of it is needed:
the record holds the whole, and a reader who misses a piece is told so.

One item is one line of JSON. Lines come from a store that others may write to, so reading one never raises.
"""

import json
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, Protocol, cast, get_args

from longhaul.agent.plain.errors import BadSetup, Unavailable


class StreamsUnavailable(Unavailable):
    """The store can't be written or read just now, or not from here; the sentence says why."""


class BadStreamsSetting(BadSetup, ValueError):
    """The setting, or what a session says of its stream, names no store."""


class StreamReader(Protocol):
    """One reader's place in one stream; it begins with the oldest line that is kept."""

    async def read(self, seconds: float, *, gently: bool = False) -> list[bytes]:
        """The next lines without their newlines, some or many; none when nothing came in so many seconds.

        `gently`: where looking costs, they may come some 25 ms late. Raises StreamsUnavailable; the same reader may be
        asked again later.
        """
        ...

    async def close(self) -> None: ...


class Streams(Protocol):
    @property
    def address(self) -> str:
        """Where it is, as a URL without any password: what sessions tell their clients."""
        ...

    async def append(self, key: str, lines: bytes) -> None:
        """Add whole lines, each with its newline. Raises StreamsUnavailable; they may have been added then."""
        ...

    def reader(self, key: str) -> StreamReader: ...

    async def check(self) -> None:
        """Raise StreamsUnavailable when it can't be reached from here, or is another one than its address says."""
        ...

    async def delete(self, key: str) -> bool:
        """Whether there was anything. Raises StreamsUnavailable."""
        ...

    async def close(self) -> None: ...


def key_of(namespace: str, workflow_id: str) -> str:
    """The key of a session's stream."""
    return f"{namespace}/{workflow_id}"


Kind = Literal["begin", "text", "thinking", "tool_call", "output", "lost", "end", "wake"]
Piece = Literal["text", "thinking", "tool_call", "output"]

PIECES: frozenset[str] = frozenset(get_args(Piece))
_KINDS = frozenset(get_args(Kind))

SETTLED = "settled"
"""Name of a `wake` after which the reply may have ended, or wait for somebody. With a text that is the id of a reply
which begins, the one before has ended."""

LONGEST_LINE = 200_000
"""Bytes; what we write is shorter, so a longer line is nobody's who keeps to this form."""
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class Item:
    """One line. `begin` and `end` stand around the pieces of one attempt at a call; `lost` says that pieces before it
    were not written; `wake` says that the session has done something, and its name perhaps SETTLED."""

    kind: Kind
    call: str = ""
    """`model:N`, N model calls having been answered before it, or `tool:ID` with the tool call's id."""
    turn: int = 0
    """When the session asked for it, in microseconds since 1970 by the server's clock. A call that is asked for again
    has a later one."""
    attempt: int = 1
    index: int = 0
    """Counts the items of one attempt from 0 without gaps; `begin` is the first."""
    block: int = 0
    """Which block of the model's message."""
    text: str = ""
    """Of a piece; of `end`, the digest of all pieces; of `wake`, perhaps the id of a reply."""
    tool_call_id: str = ""
    """As the provider says, in pieces of kind `tool_call`; the record may give the call another one."""
    name: str = ""
    """Of the tool, or of the model."""


_SHORT = {
    "kind": "k",
    "call": "c",
    "turn": "t",
    "attempt": "a",
    "index": "i",
    "block": "b",
    "text": "d",
    "tool_call_id": "id",
    "name": "n",
}
_NUMBERS = ("turn", "attempt", "index", "block")
_TEXTS = ("call", "text", "tool_call_id", "name")


_ALL_OF = attrgetter(*_SHORT)
_JSON = json.JSONEncoder(separators=(",", ":"))


def encode(item: Item) -> bytes:
    """One line with its newline. Lone surrogates survive as escapes."""
    told = {short: value for short, value in zip(_SHORT.values(), _ALL_OF(item), strict=True) if value not in ("", 0)}
    return _JSON.encode(told).encode("ascii") + b"\n"


def decode(line: bytes) -> Item | None:
    """The item of a line; None for one that is nothing of ours, or of a kind that a later release has added."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not isinstance(kind := told.get("k"), str) or kind not in _KINDS:
        return None
    numbers = {name: told.get(_SHORT[name], 0) for name in _NUMBERS}
    texts = {name: told.get(_SHORT[name], "") for name in _TEXTS}
    if not all(type(number) is int and 0 <= number < _LARGEST for number in numbers.values()):
        return None
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    return Item(cast(Kind, kind), **cast(dict[str, Any], numbers | texts))


def model_call(number: int) -> str:
    """The name of a model call: `number` of them were answered before it."""
    return f"model:{number}"


def tool_call(call_id: str) -> str:
    return f"tool:{call_id}"
