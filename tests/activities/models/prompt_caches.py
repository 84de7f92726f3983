"""What a provider's prompt cache would have served of the requests that came, by the published rules.

Anthropic: tools, system and messages in this order; read and written at marks alone, and read at one of the 20 blocks
before a mark; a changed choice of tools or way to think loses the messages (platform.claude.com, "Prompt caching").
OpenAI and those who speak like it: the longest beginning that any request had, in steps of 128 tokens from 1,024 on
(platform.openai.com, "Prompt caching"). Both looked up on 2026-11-24. A token counts as four bytes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from typing import Any

from tests.activities.models.loops import is_mark

LEAST_TOKENS, STEP_TOKENS, LOOK_BACK = 1_024, 128, 20
MARKED_SECONDS, KEPT_SECONDS = 300, 1_800
"""Anthropic forgets a prefix that nobody read for so long; OpenAI keeps it for up to so long."""
REMEMBERED = 20
"""Requests, for the tests' own time: an older beginning is part of a newer one."""
READ, WRITTEN = 0.1, 1.25
"""Prices, of that of a token that no cache has to do with."""


@dataclass(frozen=True)
class Served:
    """Tokens of one request."""

    read: int
    written: int
    plain: int

    @property
    def cost(self) -> float:
        return self.read * READ + self.written * WRITTEN + self.plain

    def __add__(self, other: "Served") -> "Served":
        return Served(self.read + other.read, self.written + other.written, self.plain + other.plain)


NOTHING = Served(0, 0, 0)


def served(bodies: Sequence[dict[str, Any]], at: Sequence[float] = ()) -> list[Served]:
    """Of each request, in their order. `at`: the second at which each came; all at once if not given."""
    marked = any('"cache_control"' in json.dumps(body) for body in bodies)
    times = at or [0.0] * len(bodies)
    return _by_marks(bodies, times) if marked else _by_beginning(bodies, times)


def _by_marks(bodies: Sequence[dict[str, Any]], at: Sequence[float]) -> list[Served]:
    used: dict[str, float] = {}
    told: list[Served] = []
    for body, now in zip(bodies, at, strict=True):
        kept = {digest for digest, last in used.items() if now - last <= MARKED_SECONDS}
        digests, sizes, marks, digest, size = list[str](), list[int](), list[int](), "", 0
        for block in _blocks(body):
            text = json.dumps({name: value for name, value in block.items() if name != "cache_control"})
            digest, size = sha256((digest + text).encode()).hexdigest(), size + len(text) // 4
            marks += [len(digests)] if "cache_control" in block else []
            digests.append(digest)
            sizes.append(size)
        near = {at for mark in marks for at in range(max(mark - LOOK_BACK, 0), mark + 1)}
        read = max((sizes[at] for at in near if digests[at] in kept), default=0)
        end = sizes[marks[-1]] if marks and sizes[marks[-1]] >= LEAST_TOKENS else 0
        read_from = next((digests[at] for at in near if sizes[at] == read and digests[at] in kept), "")
        fresh = {digests[mark] for mark in marks if sizes[mark] >= LEAST_TOKENS}
        used |= dict.fromkeys(fresh | ({read_from} if read_from else set()), now)
        written = max(end - read, 0)
        told.append(Served(read, written, size - read - written))
    return told


def _by_beginning(bodies: Sequence[dict[str, Any]], at: Sequence[float]) -> list[Served]:
    seen: list[tuple[str, float]] = []
    told: list[Served] = []
    for body, now in zip(bodies, at, strict=True):
        text = "".join(map(json.dumps, _blocks(body)))
        near = (other for other, last in seen[-REMEMBERED:] if now - last <= KEPT_SECONDS)
        common = max((common_bytes(text, other) // 4 for other in near), default=0)
        read = common // STEP_TOKENS * STEP_TOKENS if common >= LEAST_TOKENS else 0
        seen.append((text, now))
        told.append(Served(read, 0, len(text) // 4 - read))
    return told


def common_bytes(one: str, other: str) -> int:
    """How much of the beginning of both is the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def items_of(body: dict[str, Any]) -> list[str]:
    """Each block that a model reads, without marks."""
    return [
        json.dumps({name: value for name, value in block.items() if name != "cache_control"})
        for block in _blocks(body)
        if not is_mark(block)
    ]


def stays(bodies: Sequence[dict[str, Any]]) -> float:
    """Of the bytes that a request repeats from the one before, the share that is part of their common beginning."""
    again, at_the_beginning, before = 0, 0, list[str]()
    for body in bodies:
        items = items_of(body)
        known = set(before)
        again += sum(len(item) for item in items if item in known)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(items, before, strict=False))
        at_the_beginning += sum(len(item) for item, _ in same)
        before = items
    return at_the_beginning / again if again else 1.0


def _blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    """In the order in which a model reads them."""
    blocks: list[dict[str, Any]] = list(body.get("tools", []))
    system = body.get("system", body.get("instructions", []))
    blocks += [{"system": system}] if isinstance(system, str) else system
    if "cache_control" in json.dumps(body) or "tool_choice" in body:
        blocks.append({"choice": body.get("tool_choice"), "thinking": body.get("thinking")})
    for message in body.get("messages", body.get("input", [])):
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or [{}]
        blocks += [{**{name: value for name, value in message.items() if name != "content"}, **part} for part in parts]
    return blocks
