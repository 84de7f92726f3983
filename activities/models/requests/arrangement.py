"""Arranges the recorded messages of a request as turns, and keeps those of the conversations that were sent last: of
one that has grown since then only what is new is looked at."""

from collections import OrderedDict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from operator import is_
from typing import TypeGuard, assert_never

from longhaul.activities.models.requests.turns import AssistantTurn, OutsideWords, Turn, UserTurn, parts_of
from longhaul.agent.values.conversation.messages import (
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)

MOST_KEPT = 64
"""Conversations of a worker that are kept as turns."""
LARGEST_KEPT = 16_000_000
"""Characters of them all, which are in memory once more as they are sent."""


def arrange(messages: Sequence[Msg]) -> list[Turn]:
    """Fold `messages` into turns. Only an assistant turn with calls may be followed by another assistant turn.

    Of a conversation that has grown since its last request only what is new is looked at.
    """
    return [turn for turn in _ARRANGEMENTS.of(messages).turns if _says_something(turn)]


def call_ids(messages: Sequence[Msg]) -> AbstractSet[str]:
    """Of all calls in them."""
    return _ARRANGEMENTS.of(messages).call_ids


class _Arrangement:
    """The turns so far, and the assistant turn that the message at hand has written to."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.call_ids = set[str]()
        self._taken: list[Msg] = []
        self.size = 0
        """Characters of what was taken, about."""
        self._writing: AssistantTurn | None = None

    def begins(self, messages: Sequence[Msg]) -> bool:
        """Whether it is of the first of these very messages."""
        return len(self._taken) <= len(messages) and all(map(is_, self._taken, messages))

    def take_up(self, messages: Sequence[Msg]) -> None:
        """The rest of these, of which it has the first."""
        for message in messages[len(self._taken) :]:
            self._take(message)
            self._taken.append(message)
            self.size += _size(message)

    def _take(self, message: Msg) -> None:
        self._writing = None
        speaker = message.name if message.role == "user" and message.name.lower() != "user" else ""
        for block in message.content:
            match block:
                case ToolResultBlock():
                    self._answer(block)
                case ToolCallBlock():
                    self.call_ids.add(block.id)
                    self._assistant(block).blocks.append(block)
                case ThinkingBlock():
                    self._assistant(block).blocks.append(block)
                case HintBlock():
                    self._user().said += [OutsideWords("", part) for part in parts_of(block.hint)]
                case TextBlock() if not block.text.strip():
                    continue
                case TextBlock() if message.role == "assistant":
                    self._assistant(block).blocks.append(block)
                case TextBlock() | DataBlock():
                    self._user().said.append(OutsideWords(speaker, block))
                case _ as never:
                    assert_never(never)

    def _user(self) -> UserTurn:
        last = self.turns[-1] if self.turns else None
        if isinstance(last, UserTurn):
            return last
        self.turns.append(turn := UserTurn())
        return turn

    def _assistant(self, block: TextBlock | ThinkingBlock | ToolCallBlock) -> AssistantTurn:
        """The turn to add `block` to. A message after one with calls opens another: the results come in between."""
        last = self.turns[-1] if self.turns else None
        if isinstance(last, AssistantTurn) and not last.results and (last is self._writing or not last.calls()):
            repeated = isinstance(block, ToolCallBlock) and any(call.id == block.id for call in last.calls())
            if not repeated:
                self._writing = last
                return last
        self.turns.append(turn := AssistantTurn())
        self._writing = turn
        return turn

    def _answer(self, result: ToolResultBlock) -> None:
        """Put `result` to its call, however far back: a hint in between must not part them on the wire."""
        turn = next((turn for turn in reversed(self.turns) if _has_call(turn, result.id)), None)
        if turn is not None and result.id not in turn.results:
            turn.results[result.id] = result
            return
        label = f"(Result of an earlier call of {result.name!r}, which is no longer shown.)"
        self._user().said += [OutsideWords("", part) for part in (TextBlock(text=label), *parts_of(result.output))]


class Arrangements:
    """Those of the conversations that were sent last; without them each step would begin with the first message."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _Arrangement] = OrderedDict()

    def of(self, messages: Sequence[Msg]) -> _Arrangement:
        """By the first message, which it holds, so that the place in memory is nobody else's."""
        key = id(messages[0]) if messages else 0
        arrangement = self._kept.pop(key, None)
        if arrangement is None or not arrangement.begins(messages):
            arrangement = _Arrangement()
        arrangement.take_up(messages)
        self._kept[key] = arrangement
        while len(self._kept) > MOST_KEPT or (self._kept and self.size > LARGEST_KEPT):
            self._kept.popitem(last=False)
        return arrangement

    @property
    def size(self) -> int:
        """Characters, about."""
        return sum(arrangement.size for arrangement in self._kept.values())


_ARRANGEMENTS = Arrangements()


def _size(message: Msg) -> int:
    """Characters, with those of attachments and of what providers want back."""
    if message.is_plain:
        return message.text_length
    return len(repr(message))  # as JSON it cannot be written where a text holds half a character


def _has_call(turn: Turn, call_id: str) -> TypeGuard[AssistantTurn]:
    if isinstance(turn, UserTurn):
        return False
    return any(isinstance(block, ToolCallBlock) and block.id == call_id for block in turn.blocks)


def _says_something(turn: Turn) -> bool:
    """Thinking alone is no turn: providers refuse it without what it led to."""
    if isinstance(turn, UserTurn):
        return bool(turn.said)
    for block in turn.blocks:  # noqa: SIM110  no generator: it is asked of all turns of each request
        if not isinstance(block, ThinkingBlock):
            return True
    return False
