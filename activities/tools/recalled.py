"""Answers `recall`: picks the messages that are wanted, and shows them. Pure."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    DataBlock,
    Msg,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    parts_of,
)

PAGE_CHARS = 8_000
"""About what a result may have before it is cut for the context: what is recalled must come as it was."""
MOST_MESSAGES = 50


@dataclass(frozen=True, slots=True)
class WantedMessages:
    """Which messages, from the newest back."""

    first: int
    last: int
    text: str
    limit: int
    offset: int
    """Characters of the newest one that are left out: how a long message is read on."""

    def takes(self, number: int, message: Msg) -> bool:
        return self.first <= number <= self.last and _matches(message, self.text)


def wanted(arguments: dict[str, Any]) -> WantedMessages:
    return WantedMessages(
        first=arguments.get("from_message", 0),
        last=arguments.get("to_message", 2**53),
        text=arguments.get("text", "").casefold(),
        limit=arguments.get("limit", MOST_MESSAGES),
        offset=arguments.get("offset", 0),
    )


class FoundMessages:
    """Messages that were found, the newest first, and no more of them than can be shown."""

    def __init__(self, want: WantedMessages) -> None:
        self.messages: list[tuple[int, Msg]] = []
        self._want = want
        self._room = PAGE_CHARS + want.offset

    @property
    def enough(self) -> bool:
        """Nothing that is older will be shown; the oldest of what there is tells where to go on."""
        return len(self.messages) > self._want.limit or self._room < 0

    def add(self, older: Iterable[tuple[int, Msg]]) -> None:
        """From the newest to the oldest, all older than what there is."""
        for number, message in older:
            if self.enough:
                return
            self.messages.append((number, message))
            self._room -= len(_body(message))


class Newest:
    """Of messages that come with the oldest first, the newest that are wanted: so many that nothing else is shown."""

    def __init__(self, want: WantedMessages) -> None:
        self._want = want
        self._kept: deque[tuple[int, Msg]] = deque(maxlen=want.limit + 1)

    def look_at(self, messages: Iterable[tuple[int, Msg]]) -> None:
        self._kept.extend(pair for pair in messages if self._want.takes(*pair))

    def newest_first(self) -> Iterator[tuple[int, Msg]]:
        return reversed(self._kept)


def shown(found: FoundMessages, want: WantedMessages, total: int) -> str:
    """The messages as text; each body is exactly what it was."""
    if not found.messages:
        return f"Nothing was found. This session has {total} messages, numbered from 0."
    parts = list(_parts_of(found.messages, want))
    told = sum(part.is_message for part in parts)
    return "\n".join((f"{told} of {total} messages, the newest first.", *(part.text for part in parts)))


def part_of_output(whole: str, text: str, offset: int) -> str:
    """A page of an output from that character on; with `text`, of its lines that contain it, in any case of letters."""
    if text:
        wanted_text = text.casefold()
        lines = [f"{at}: {line}" for at, line in enumerate(whole.splitlines(), 1) if wanted_text in line.casefold()]
        whole = "\n".join(lines)
    part = whole[offset : offset + PAGE_CHARS]
    if not part:
        return "Nothing was found." if not offset else f"There are {len(whole)} characters, none from {offset} on."
    left = len(whole) - offset - len(part)
    return f"{part}\n[… {left} more characters: ask again with offset={offset + len(part)}]" if left else part


class _Part(NamedTuple):
    text: str
    is_message: bool = False


def _parts_of(found: list[tuple[int, Msg]], want: WantedMessages) -> Iterator[_Part]:
    room = PAGE_CHARS
    for place, (number, message) in enumerate(found):
        text = _body(message)
        part = text[want.offset :] if place == 0 else text
        if place and (place >= want.limit or len(part) > room):
            more = "more" if want.text else f"{number - want.first + 1} more"
            yield _Part(f"[… {more}: ask again with to_message={number}]")
            return
        cut = part[: max(room, 0)]
        yield _Part(f"--- message {number} · {message.role} · {message.name}\n{cut}", is_message=True)
        if len(cut) < len(part):
            done = len(text) - len(part) + len(cut)
            left = len(part) - len(cut)
            yield _Part(f"[… {left} more characters: ask again with to_message={number}, offset={done}]")
            return
        room -= len(part)


def _matches(message: Msg, text: str) -> bool:
    return not text or text in _body(message).casefold()


def _body(message: Msg) -> str:
    return "\n".join(_block(block) for block in message.content)


def _block(block: ContentBlock) -> str:
    if isinstance(block, ToolCallBlock):
        return f"[call {block.id} of {block.name}]\n{block.input}"
    return _heading(block) + "\n".join(part if isinstance(part, str) else _named(part) for part in parts_of(block))


def _heading(block: ContentBlock) -> str:
    if isinstance(block, ThinkingBlock):
        return "[thinking]\n"
    if isinstance(block, ToolResultBlock):
        return f"[result of call {block.id} of {block.name}: {block.state.value}]\n"
    return ""


def _named(block: DataBlock) -> str:
    return f"[attachment {block.name or 'without a name'}]"
