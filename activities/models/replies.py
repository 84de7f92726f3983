"""The reply of a model: put together from its stream, counted, and made into what is recorded, also where it was cut
off.

Each call gets an id of its own; calls that the model may not make are left out. What a provider does not say of
tokens is estimated, and marked as such.
"""

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any, Literal

from pydantic_core import PydanticSerializationError

from longhaul.activities.models.model import Delta, ModelReply, ModelRequest, scrub, scrub_json
from longhaul.activities.models.requests.tool_definitions import wire_name
from longhaul.agent.values.conversation.messages import (
    EXTRAS_BYTES,
    REFUSALS,
    ContentBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
    extras_bytes,
    not_to_run,
)

log = logging.getLogger(__name__)

Block = TextBlock | ThinkingBlock | ToolCallBlock
Kind = Literal["text", "thinking", "tool_call", "other"]
"""`other`: what the provider runs itself, and blocks that are not known here. They are left out."""

MISSING = "its arguments did not arrive; make the call again, with an empty object if it needs none"
CONTRADICTED = "two versions of its arguments arrived, and they differ; make the call again"
STRAY = "arguments arrived that belong to no call of this message, so it is not known whose they are; call again"
NAMELESS = "it arrived without the name of a tool; make the call again"
RENAMED = "it arrived with the names of two tools; make the call again"

_MAY_REQUIRE = (
    *("required", "minProperties", "anyOf", "oneOf", "allOf", "not", "if", "$ref", "$dynamicRef"),
    *("dependentRequired", "dependentSchemas"),
)
"""Words of a schema by which an object may have to have something in it."""
_LOOKED_AT_CHARS = 100_000


@dataclass(slots=True, eq=False)
class Draft:
    """One block while it streams."""

    kind: Kind
    number: int
    index: object = None
    """The provider's."""
    ids: set[str] = field(default_factory=set)
    """The provider's; of a call its id too."""
    pieces: list[str] = field(default_factory=list)
    call_id: str = ""
    names: list[str] = field(default_factory=list)
    final_name: str = ""
    whole: list[str] = field(default_factory=list)
    """Arguments as the provider tells them beside the stream, whole: none of them may differ."""
    was_empty: bool = False
    """Its arguments were sent, as nothing or as an object without anything in it."""
    is_closed: bool = False
    extras: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, Any] = field(default_factory=dict)
    """Of a call by Chat Completions: fields that the API does not know."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def has_whole_arguments(self) -> bool:
        """Whether a JSON object has come. Not asked of long ones, for whose sake each piece would cost their length."""
        if self.whole or not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return bool(self.whole)
        return sum(map(len, self.pieces)) <= _LOOKED_AT_CHARS and _is_whole(self.text)


class Assembly:
    """The blocks of one reply, in the order in which they started."""

    def __init__(self, on_delta: Callable[[Delta], None], request: ModelRequest) -> None:
        self._on_delta = on_delta
        # By the name of each tool that may be called: whether it may be called with nothing.
        offered = {tool.name: tool.input_schema for tool in request.tools}
        if request.answer is not None:
            offered[wire_name(request.answer.name)] = request.answer.schema
        self._needs_none = {
            name: not any(schema.get(word) for word in _MAY_REQUIRE) for name, schema in offered.items()
        }
        self.drafts: list[Draft] = []
        self._stray: dict[object, list[str]] = {}

    @property
    def calls(self) -> list[Draft]:
        return [draft for draft in self.drafts if draft.kind == "tool_call"]

    def start(self, kind: Kind, index: object, *ids: str) -> Draft:
        """The block that starts here: a new one, unless one of this kind with such an id has started."""
        draft = self._with_id(kind, ids)
        if draft is None:
            draft = Draft(kind, len(self.drafts), index)
            self.drafts.append(draft)
        draft.index = index
        draft.ids.update(filter(None, ids))
        return draft

    def find(self, kind: Kind, index: object, item_id: str = "") -> Draft | None:
        """The block of this kind that a delta belongs to. One with an id that is not known belongs to none."""
        if item_id:
            named = [draft for draft in reversed(self.drafts) if draft.kind == kind and item_id in draft.ids]
            if named:  # some servers give one id to all
                return next((draft for draft in named if draft.index == index), named[0])
        last = self.last(index, kind)
        return None if last is not None and item_id and last.ids else last

    def last(self, index: object, kind: Kind | None = None) -> Draft | None:
        at_index = (draft for draft in reversed(self.drafts) if draft.index == index)
        return next((draft for draft in at_index if kind in (None, draft.kind)), None)

    def _with_id(self, kind: Kind, ids: Sequence[str]) -> Draft | None:
        known = (draft for draft in reversed(self.drafts) if draft.kind == kind)
        return next((draft for draft in known if any(each and each in draft.ids for each in ids)), None)

    def adopt(self, draft: Draft) -> Draft:
        """Go on with a block of another assembly."""
        self.drafts.append(draft)
        return draft

    def adopt_stray(self, other: "Assembly") -> None:
        self._stray = other._stray  # noqa: SLF001  one of its own kind

    def say(self, kind: Literal["text", "thinking"], index: object, text: str) -> Draft:
        """Text or thinking for the last block of that index, or for a new one: nothing runs by it."""
        draft = self.last(index, kind) or self.start(kind, index)
        self.add(draft, text)
        return draft

    def add(self, draft: Draft, piece: str) -> None:
        if piece:
            draft.pieces.append(piece)
            self._tell(draft, piece)

    def _tell(self, draft: Draft, piece: str) -> None:
        if draft.kind != "other":
            name = self.name_of(draft) if draft.kind == "tool_call" else ""
            self._on_delta(Delta(draft.kind, draft.number, scrub(piece), scrub(draft.call_id), scrub(name)))

    def add_arguments(self, draft: Draft | None, value: object, index: object = None) -> None:
        """Arguments in the stream: a piece of JSON text, or an object. `draft`: None where nothing started that they
        could belong to; `index` then keeps those of one block together."""
        piece = _text(value)
        if draft is None:
            if piece.strip():
                self._stray.setdefault(index, []).append(piece)
            return
        if value is not None and piece.strip() in ("", "{}"):
            draft.was_empty = True
        if value == {}:
            return
        if piece.lstrip().startswith("{") and draft.pieces and draft.has_whole_arguments():
            # Some servers send an empty object first, or the whole once more.
            if draft.text.strip() == "{}":
                draft.pieces.clear()
            elif _is_whole(piece):
                draft.whole.append(piece)
                return
        self.add(draft, piece)

    def tell_whole(self, draft: Draft, value: object, *, first: bool = False) -> None:
        """All arguments of a call, by an event that has them whole. `first`: by the one that starts it, in which an
        empty object says nothing of what follows."""
        text = _text(value)
        if value is not None and text.strip() in ("", "{}"):
            draft.was_empty = True
        if not text.strip() or (first and text.strip() == "{}"):
            return
        if not draft.pieces and not draft.whole:
            self._tell(draft, text)
        draft.whole.append(text)

    def call_delta(self, index: object, call_id: str, name: str, arguments: object) -> Draft | None:
        """The call that a piece of Chat Completions belongs to, with the piece added; None where it belongs to none."""
        draft = self._call_at(index, call_id, name, arguments)
        if draft is not None:
            draft.call_id = draft.call_id or call_id
            if call_id:
                draft.ids.add(call_id)
            if name:
                draft.names.append(name)
        self.add_arguments(draft, arguments, index)
        return draft

    def _call_at(self, index: object, call_id: str, name: str, arguments: object) -> Draft | None:
        last = self.last(index, "tool_call") if index is not None else next(reversed(self.calls), None)
        again = bool(name) and (
            isinstance(arguments, dict) or (isinstance(arguments, str) and arguments.lstrip().startswith("{"))
        )
        if call_id:
            known = self._with_id("tool_call", (call_id,))
            if known is not None:
                # One id for all calls: another index, and all of another call.
                another = again and index != known.index and known.has_whole_arguments()
                return self.start("tool_call", index) if another else known
            if last is not None and not last.call_id and not (again and last.has_whole_arguments()):
                return last  # an id that comes late
            return self.start("tool_call", index)
        if last is None:
            return self.start("tool_call", index) if name else None
        if index is None and name:
            goes_on = bool(last.pieces) and not last.has_whole_arguments() and name in last.names
            return last if goes_on else self.start("tool_call", index)
        if name and last.has_whole_arguments():
            is_other = name not in (*last.names, self.name_of(last))
            if is_other or (again and not _same(_text(arguments), last.text)):
                return self.start("tool_call", index)
        return last

    def keep(self, draft: Draft, **extras: Any) -> None:
        """Provider extras of a block; a string that arrives in pieces is joined by the caller."""
        draft.extras.update(extras)

    def close_all(self) -> None:
        """The provider has said that the reply is whole, and its API does not say so of single blocks."""
        for draft in self.drafts:
            draft.is_closed = True

    def name_of(self, draft: Draft) -> str:
        """Servers send a name once, again with each piece, or in pieces: it is what makes the name of a tool that is
        offered."""
        names = draft.names
        if not names:
            return draft.final_name
        whole = [names[0], "".join(names), names[-1]]
        repeated = all(name == names[0] for name in names)
        grown = all(later.startswith(sooner) for sooner, later in pairwise(names))
        fitting = [whole[0]] if repeated else []
        fitting += [whole[1], *([whole[2]] if grown else [])]
        found = next((name for name in fitting if name in self._needs_none), None)
        return fitting[0] if found is None else found

    def blocks(self, taken_ids: Collection[str], new_id: Callable[[int], str]) -> tuple[Block, ...]:
        """The finished blocks: blank text dropped, and each call with an id of its own.

        A call without an id, or with one of `taken_ids` or of an earlier call, gets `new_id(i)`, `i` counting
        the calls from 0: results are matched and effects are keyed by id, so one id must never mean two calls.
        """
        finished: list[Block] = []
        taken = set(taken_ids)
        arguments = {draft.number: text for draft, text in self._given()}
        for draft in self.drafts:
            text, extras = scrub(draft.text), _bounded(scrub_json(draft.extras))
            if draft.kind == "text":
                finished += [TextBlock(text=text, extras=extras)] if text.strip() else []
            elif draft.kind == "thinking":
                finished += [ThinkingBlock(thinking=text, **extras)] if text or extras else []
            elif draft.number in arguments:
                made = sum(isinstance(block, ToolCallBlock) for block in finished)
                call_id = _free_id(scrub(draft.call_id), new_id(made), taken)
                taken.add(call_id)
                name, given = scrub(self.name_of(draft)), scrub(arguments[draft.number])
                finished.append(ToolCallBlock(id=call_id, name=name, input=given, extras=extras))
        return tuple(finished)

    def _given(self) -> Iterator[tuple[Draft, str]]:
        """Each call that is told to the session, with its arguments, or why it can't run."""
        named = [draft for draft in self.calls if self.name_of(draft)]
        versions = {draft.number: _versions(draft) for draft in self.calls}
        stray = ["".join(pieces) for pieces in self._stray.values()]
        stray = [text for text in stray if not any(_same(text, each) for told in versions.values() for each in told)]
        nameless = [draft for draft in self.calls if draft not in named]
        if named:
            stray += [text for draft in nameless for text in versions[draft.number]]
        elif stray and not nameless:
            nameless = [self.start("tool_call", None)]
            versions[nameless[0].number] = stray
        for draft in named or nameless:
            told = versions[draft.number]
            if draft not in named:
                why = NAMELESS
            elif stray:
                why = STRAY
            elif draft.final_name and draft.final_name != self.name_of(draft):
                why = RENAMED
            elif len(told) > 1:
                why = CONTRADICTED
            else:
                why = "" if told or self._may_be_empty(draft) else MISSING
            yield draft, not_to_run(why, " | ".join([*told, *(stray if named else [])])) if why else (told or ["{}"])[0]

    def _may_be_empty(self, draft: Draft) -> bool:
        return draft.was_empty and draft.is_closed and self._needs_none.get(self.name_of(draft), False)


def text_of(value: object) -> str:
    """A string of a provider's event; empty for anything else."""
    return value if isinstance(value, str) else ""


def id_of(value: object) -> str:
    """An id, which some servers send as a number."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def dict_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _versions(draft: Draft) -> list[str]:
    """The arguments that were told, those that are the same once. What was streamed may be the beginning of them."""
    told = [draft.text] if draft.text.strip() else []
    for whole in draft.whole:
        if told == [draft.text] and not is_json(told[0]) and whole.startswith(told[0]):
            told = [whole]
        elif not any(_same(whole, each) for each in told):
            told.append(whole)
    return told


def _same(one: str, other: str) -> bool:
    """Whether two texts are the same JSON: 1 is not true, and no 1.0 either."""
    if one == other:
        return True
    try:
        return bool(_canonical(one) == _canonical(other))
    except (ValueError, RecursionError):
        return False


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_whole(text: str) -> bool:
    return text.lstrip().startswith("{") and text.rstrip().endswith("}") and is_json(text)


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _bounded(extras: dict[str, Any]) -> dict[str, Any]:
    """Without the largest, until the rest may be recorded: a reply without its signatures is better than none. Who they
    are from comes on top."""
    while extras and extras_bytes(extras) > EXTRAS_BYTES // 2:
        largest = max(extras, key=lambda name: extras_bytes({name: extras[name]}))
        log.warning("%s of a block has more than %d bytes and is not stored", largest, EXTRAS_BYTES // 2)
        extras = {name: value for name, value in extras.items() if name != largest}
    return extras


def _free_id(wanted: str, instead: str, taken: Collection[str]) -> str:
    call_id = wanted if wanted and wanted not in taken else instead
    while call_id in taken:
        call_id += "_"
    return call_id


class HalfSaid:
    """Hears the pieces of one attempt, and passes them on."""

    def __init__(self, hears: Callable[[Delta], None]) -> None:
        self._hears = hears
        self._blocks: dict[int, list[Delta]] = {}

    def hear(self, delta: Delta) -> None:
        self._blocks.setdefault(delta.index, []).append(delta)
        self._hears(delta)

    def blocks(self) -> tuple[TextBlock | ThinkingBlock, ...]:
        """Text and thinking as far as they came, in order. The thinking has no signature, so no provider is sent it."""
        made: list[TextBlock | ThinkingBlock] = []
        for pieces in self._blocks.values():
            text = "".join(piece.text for piece in pieces)
            if pieces[0].kind == "text" and text.strip():
                made.append(TextBlock(text=text))
            elif pieces[0].kind == "thinking" and text:
                made.append(ThinkingBlock(thinking=text))
        return tuple(made)

    def calls(self) -> tuple[str, ...]:
        """The tools of calls whose arguments had started: half a call is none."""
        started = (pieces for pieces in self._blocks.values() if pieces[0].kind == "tool_call")
        return tuple(next((piece.tool_name for piece in pieces if piece.tool_name), "?") for pieces in started)


def recorded_content(reply: ModelReply, call_number: int, *, closing: bool) -> tuple[ContentBlock, ...]:
    """`closing`: it may only say where things stand. Calls beside a refusal are not run either."""
    if reply.stop in REFUSALS:
        content = _without_calls(reply)
    elif closing:
        nothing = TextBlock(text="(The model said nothing when the limit of iterations was reached.)")
        content = _without_calls(reply) or (nothing,)
    else:
        content = tuple(_with_ids(reply, call_number))
    return tuple(map(_sound, content))


def _sound(block: ContentBlock) -> ContentBlock:
    """Without lone surrogates: what can't be recorded would be asked, and paid, for again without end. Providers'
    answers have none; a middleware may give any."""
    try:
        block.model_dump_json()
    except PydanticSerializationError:
        return type(block).model_validate(scrub_json(block.model_dump()))
    return block


def _without_calls(reply: ModelReply) -> tuple[ContentBlock, ...]:
    """What a model says that may not call: a call that it makes all the same is not run."""
    return tuple(block for block in reply.content if not isinstance(block, ToolCallBlock))


def _with_ids(reply: ModelReply, call_number: int) -> list[ContentBlock]:
    """The blocks, each call with an id that no other call of this reply has: findings are kept by id, and permission
    must not judge one call by another's. Ids that earlier replies have used are the record's to see
    (`agent.decisions.call_rulings`)."""
    used = set[str]()
    fresh = count(1)
    content: list[ContentBlock] = []
    for block in reply.content:
        if isinstance(block, ToolCallBlock):
            call_id = block.id
            while not call_id or call_id in used:
                call_id = f"{block.id or 'call'}-{call_number}-{next(fresh)}"
            used.add(call_id)
            content.append(block.model_copy(update={"id": call_id}))
        else:
            content.append(block)
    return content


_MOST = 10**9
_CACHE_READS = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("cached_tokens",),
    ("num_cached_tokens",),
    ("cache_read_input_tokens",),
)
_CACHE_WRITES = (
    ("prompt_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("prompt_tokens_details", "cache_creation_input_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("cache_creation_input_tokens",),
)
_REASONING = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
)


def openai_usage(usage: object) -> Usage:
    """Of OpenAI's two APIs and of who speaks like them. What is not there, or no count, is 0."""
    read = _first(usage, ("prompt_tokens",), ("input_tokens",))
    wrote = _first(usage, ("completion_tokens",), ("output_tokens",))
    total, reasoning = _first(usage, ("total_tokens",)), _first(usage, *_REASONING)
    hidden = max(total - read - wrote, 0) if read else 0
    if hidden and reasoning in (0, hidden):
        wrote, reasoning = wrote + hidden, hidden
    return Usage(
        input_tokens=read,
        output_tokens=wrote,
        cache_input_tokens=min(_first(usage, *_CACHE_READS), read),
        cache_creation_input_tokens=min(_first(usage, *_CACHE_WRITES), read),
        reasoning_tokens=min(reasoning, wrote),
    )


def usage_of_chunk(chunk: object) -> Usage | None:
    """Of a piece of a streamed answer; None where it tells nothing. Kimi tells it in the choice, Groq in a field of its
    own."""
    choices = _field(chunk, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for told in (_field(chunk, "usage"), _field(_field(chunk, "x_groq"), "usage"), _field(choice, "usage")):
        if told is not None and (usage := openai_usage(told)) != Usage():
            return usage
    return None


_ONE_HOUR = "ephemeral_1h_input_tokens"


def anthropic_usage(counts: Mapping[str, int]) -> Usage:
    """Anthropic counts cached tokens apart, we count them in. `counts`: by Anthropic's names, and `thinking_tokens`."""
    read, created = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
    wrote = counts.get("output_tokens", 0)
    return Usage(
        input_tokens=counts.get("input_tokens", 0) + read + created,
        output_tokens=wrote,
        cache_input_tokens=read,
        cache_creation_input_tokens=created,
        cache_creation_1h_input_tokens=min(counts.get(_ONE_HOUR, 0), created),
        reasoning_tokens=min(counts.get("thinking_tokens", 0), wrote),
    )


def anthropic_counts(usage: object) -> dict[str, int]:
    """Those that one event of Anthropic's names: a later event leaves out what has not changed."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    told = {name: _count(_field(usage, name)) for name in names if _field(usage, name) is not None}
    if (hour := _field(_field(usage, "cache_creation"), _ONE_HOUR)) is not None:
        told[_ONE_HOUR] = _count(hour)
    thinking = _field(_field(usage, "output_tokens_details"), "thinking_tokens")
    return told if thinking is None else {**told, "thinking_tokens": _count(thinking)}


def estimated_where_silent(usage: Usage | None, input_estimate: int, output_estimate: int) -> Usage:
    """What was reported, and the worker's own counts for what was not."""
    told = usage or Usage()
    missing: dict[str, Any] = {}
    if not told.input_tokens and input_estimate:
        missing["input_tokens"] = input_estimate
    if not told.output_tokens and output_estimate:
        missing["output_tokens"] = output_estimate
    return told.model_copy(update={**missing, "estimated": True}) if missing else told


def _first(usage: object, *paths: tuple[str, ...]) -> int:
    """The first that is told and not 0."""
    for path in paths:
        value = usage
        for name in path:
            value = _field(value, name)
        if count := _count(value):
            return count
    return 0


def _field(value: object, name: str) -> Any:
    """Of an SDK's object, which keeps what it does not know as plain JSON."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _count(value: object) -> int:
    """A server may say anything: what is no count of tokens is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= _MOST else 0
