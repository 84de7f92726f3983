"""Gives a reply its place in a trace: ids that follow from its own id, and the header by which work for it hears of
them.

The span of a reply is told when the reply has ended, and all that was done for it names it as its parent before. So its
ids are worked out, by whoever needs them, and a worker that dies takes none of them along.
"""

import hashlib
import re
from typing import NamedTuple

from longhaul.agent.plain.values import OpenValue, sparse

HEADER = "longhaul-trace"
"""Name of the header, on requests and on activities."""
LONGEST_HEADER_BYTES = 200_000
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class Begun(OpenValue):
    """A reply that is asked for. `at`: when it began, in milliseconds since 1970; 0: not yet."""

    at: int = sparse(0)
    parent: str = sparse("")
    """The caller's span, as W3C traceparent; empty when there is none."""


class TraceHeader(OpenValue):
    """Of an activity: the reply that it works for. Of a checkpoint and of a roll-over: all that are not told yet."""

    reply: str = sparse("")
    parent: str = sparse("")
    begun: dict[str, Begun] = sparse({})


class SpanPlace(NamedTuple):
    """A span's place, as hex."""

    trace: str
    span: str
    sampled: bool | None
    """None: nobody has decided yet."""


def is_traceparent(text: str) -> bool:
    return place_of(text) is not None


def place_of(traceparent: str) -> SpanPlace | None:
    """None for what is none, also for ids of nothing but zeros."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or not int(found[1], 16) or not int(found[2], 16):
        return None
    return SpanPlace(found[1], found[2], bool(int(found[3], 16) & 1))


def place_of_reply(reply_id: str, parent: str = "") -> SpanPlace:
    """Of the span `invoke_agent`: in its caller's trace, or in one of its own."""
    caller = place_of(parent)
    digest = hashlib.sha256(f"trace\0{reply_id}".encode("utf-8", "replace")).hexdigest()
    return SpanPlace(caller.trace if caller else digest[:32], digest[32:48], caller.sampled if caller else None)
