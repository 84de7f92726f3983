"""The recorded messages as turns: what every provider needs before it gives them its own shape.

The record has one message per model call and per tool result, and hints, late results and fallbacks in between.
Here neighbours of one side are joined, each result stands with the call that it answers, each call has exactly one
result, and nothing is left that a provider refuses for its form (empty text, arguments that are no JSON object).

Arranges the recorded messages of a request as turns, and keeps those of the conversations that were sent last: of
one that has grown since then only what is new is looked at.
"""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import is_
from typing import Any, TypeGuard, TypeVar, assert_never

from longhaul.activities.models.model import AnswerSchema
from longhaul.activities.models.requests.tool_definitions import sent_schema, wire_name
from longhaul.agent.values.conversation.messages import (
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.tool_index import CALL_TOOL, as_said

Part = TextBlock | DataBlock

Item = TypeVar("Item")

_MOST_LEVELS = 60
"""Of a call's arguments."""


@dataclass(frozen=True, slots=True)
class OutsideWords:
    """One part of what reaches the model from outside."""

    speaker: str
    """Empty for the plain user and for hints."""
    part: Part


@dataclass(slots=True)
class UserTurn:
    said: list[OutsideWords] = field(default_factory=list)
    brings: list[str] = field(default_factory=list)
    """Names of tools that the model has from here on."""
    shown: "ShownTurn | None" = None

    def length(self) -> tuple[int, ...]:
        """Changes whenever something is added."""
        return (len(self.said),)


@dataclass(slots=True)
class AssistantTurn:
    blocks: list[TextBlock | ThinkingBlock | ToolCallBlock] = field(default_factory=list)
    results: dict[str, ToolResultBlock] = field(default_factory=dict)
    """By call id."""
    shown: "ShownTurn | None" = None

    def length(self) -> tuple[int, ...]:
        """Changes whenever something is added."""
        return (len(self.blocks), len(self.results))

    def calls(self) -> list[ToolCallBlock]:
        return [block for block in self.blocks if isinstance(block, ToolCallBlock)]

    def answers(self) -> list[ToolResultBlock]:
        """One result per call, in the order of the calls."""
        return [self.results.get(call.id) or _unanswered(call) for call in self.calls()]


Turn = UserTurn | AssistantTurn


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn as one provider was sent it the last time."""

    form: tuple[str, ...]
    length: tuple[int, ...]
    items: Sequence[Any]
    notes: tuple[str, ...]


def turn_as_sent(
    turn: Turn, form: tuple[str, ...], show: Callable[[Turn, list[str]], Sequence[Item]], notes: list[str]
) -> Sequence[Item]:
    """What `show` makes of a turn, made once as long as nothing is added to it. `form`: all that it depends on beside
    the turn. The items are another request's too: none may be changed."""
    if turn.shown is None or (turn.shown.form, turn.shown.length) != (form, turn.length()):
        said: list[str] = []
        turn.shown = ShownTurn(form, turn.length(), show(turn, said), tuple(said))
    notes += turn.shown.notes
    return turn.shown.items


def tools_brought(turns: Sequence[Turn], late: Sequence[ToolDescriptor]) -> dict[int, list[ToolDescriptor]]:
    """The late tools by the place of the last turn that brings each."""
    known = {tool.name: tool for tool in late}
    last = {
        wire_name(name): place for place, turn in enumerate(turns) if isinstance(turn, UserTurn) for name in turn.brings
    }
    brought: dict[int, list[ToolDescriptor]] = {}
    for name, place in last.items():
        if name in known:
            brought.setdefault(place, []).append(known[name])
    return brought


def parts_of(content: str | Iterable[Part]) -> list[Part]:
    """The parts of a hint or a result, without blank text."""
    parts: list[Part] = [TextBlock(text=content)] if isinstance(content, str) else list(content)
    return [part for part in parts if not isinstance(part, TextBlock) or part.text.strip()]


def failed(result: ToolResultBlock) -> bool:
    """Whether the model has to be told that the call did not do what it should."""
    return result.state not in (ToolResultState.SUCCESS, ToolResultState.RUNNING)


def with_names(said: Sequence[OutsideWords]) -> list[Part]:
    """The parts in order, with `name: ` before what a named speaker says: for APIs that know no speakers."""
    parts: list[Part] = []
    last = ""
    for item in said:
        if item.speaker and isinstance(item.part, TextBlock):
            parts.append(TextBlock(text=f"{item.speaker}: {item.part.text}"))
        else:
            if item.speaker and item.speaker != last:
                parts.append(TextBlock(text=f"{item.speaker}:"))
            parts.append(item.part)
        last = item.speaker
    return parts


def arguments_of(call: ToolCallBlock) -> dict[str, Any]:
    """The call's arguments as an object. What can't be parsed is sent as `{"_unparsable": "..."}`.

    The model's broken arguments stay in the record; raising here would make every later call of the session fail.
    """
    if not call.input.strip():
        return {}
    try:
        arguments = json.loads(call.input, parse_constant=_refuse)
        json.dumps(arguments, allow_nan=False)  # 1e999 is no constant, and becomes one
    except (ValueError, RecursionError):
        return {"_unparsable": call.input}
    fits = call.input.count("{") + call.input.count("[") < _MOST_LEVELS or depth_fits(arguments)
    return arguments if isinstance(arguments, dict) and fits else {"_unparsable": call.input}


def left_out(block: DataBlock, notes: list[str]) -> str:
    """Note that an attachment was left out; what the model reads in its place."""
    notes.append(f"An attachment of type {block.source.media_type!r} was left out.")
    name = f" {block.name!r}" if block.name else ""
    return f"(The attachment{name} of type {block.source.media_type!r} can't be shown to this model.)"


def wire_id(call_id: str, longest: int = 64) -> str:
    """A call id that each provider takes: another provider's odd or long id becomes a digest of itself."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", call_id) and len(call_id) <= longest:
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:24]


def wire_schema(tool: ToolDescriptor) -> dict[str, Any]:
    """The tool's schema with what each provider insists on."""
    return sent_schema(tool.input_schema)


def answer_schema(answer: AnswerSchema) -> dict[str, Any]:
    """The schema of a forced answer, with the same."""
    return sent_schema(answer.schema)


def _unanswered(call: ToolCallBlock) -> ToolResultBlock:
    text = "No result of this call was recorded; whether it ran is unknown."
    return ToolResultBlock(id=call.id, name=call.name, output=text, state=ToolResultState.UNKNOWN)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def depth_fits(value: object, left: int = _MOST_LEVELS) -> bool:
    """Whether JSON is nested less deeply than `left`: SDKs walk it recursively, and more could exhaust the stack."""
    if left == 0:
        return False
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(depth_fits(child, left - 1) for child in children)


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
                    self._assistant(block).blocks.append(as_said(block))
                case ThinkingBlock():
                    self._assistant(block).blocks.append(block)
                case HintBlock():
                    self._user().brings += block.tools
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
            indirect = any(call.id == result.id and call.indirect for call in turn.calls())
            turn.results[result.id] = result.model_copy(update={"name": CALL_TOOL}) if indirect else result
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
