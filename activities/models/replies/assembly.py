"""Puts a streamed reply together and passes its pieces on as they come."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from longhaul.activities.models.model import Delta
from longhaul.activities.models.requests.text import scrub, scrub_json
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock, ToolCallBlock
from longhaul.agent.values.conversation.provider_extras import EXTRAS_BYTES, extras_bytes

log = logging.getLogger(__name__)

Block = TextBlock | ThinkingBlock | ToolCallBlock
Kind = Literal["text", "thinking", "tool_call"]


@dataclass(slots=True)
class _Draft:
    kind: Kind
    index: int
    pieces: list[str] = field(default_factory=list)
    call_id: str = ""
    tool_name: str = ""
    extras: dict[str, Any] = field(default_factory=dict)


class Assembly:
    """The blocks of one reply, in the order in which they were opened.

    `key` is the provider's own mark of a block (its index, an item's id). A piece for a key that is not open opens it.
    """

    def __init__(self, on_delta: Callable[[Delta], None]) -> None:
        self._on_delta = on_delta
        self._drafts: dict[object, _Draft] = {}

    def open(self, key: object, kind: Kind, *, call_id: str = "", tool_name: str = "") -> None:
        """Open a block, or learn more of an open one: compatible servers send a call's name late or twice."""
        draft = self._drafts.setdefault(key, _Draft(kind, len(self._drafts)))
        draft.call_id = draft.call_id or call_id
        draft.tool_name = draft.tool_name or tool_name

    def add(self, key: object, kind: Kind, piece: str) -> None:
        self.open(key, kind)
        if not piece:
            return
        draft = self._drafts[key]
        draft.pieces.append(piece)
        self._on_delta(Delta(draft.kind, draft.index, scrub(piece), scrub(draft.call_id), scrub(draft.tool_name)))

    def keep(self, key: object, **extras: Any) -> None:
        """Provider extras of a block; a string that arrives in pieces is joined by the caller."""
        self._drafts[key].extras.update(extras)

    def text_of(self, key: object) -> str:
        """What came so far; empty when `key` is not open."""
        return "".join(self._drafts[key].pieces) if key in self._drafts else ""

    def blocks(self, taken_ids: Collection[str], new_id: Callable[[int], str]) -> tuple[Block, ...]:
        """The finished blocks: blank text dropped, and each call with an id of its own.

        A call without an id, or with one of `taken_ids` or of an earlier call, gets `new_id(i)`, `i` counting
        the calls from 0: results are matched and effects are keyed by id, so one id must never mean two calls.
        """
        finished: list[Block] = []
        taken = set(taken_ids)
        for draft in self._drafts.values():
            text, extras = scrub("".join(draft.pieces)), _bounded(scrub_json(draft.extras))
            if draft.kind == "text":
                finished += [TextBlock(text=text, extras=extras)] if text.strip() else []
            elif draft.kind == "thinking":
                finished += [ThinkingBlock(thinking=text, **extras)] if text or extras else []
            else:
                made = sum(isinstance(block, ToolCallBlock) for block in finished)
                call_id = _free_id(scrub(draft.call_id), new_id(made), taken)
                taken.add(call_id)
                called = {"id": call_id, "name": scrub(draft.tool_name), "input": text or "{}"}
                finished.append(ToolCallBlock(**called, extras=extras))
        return tuple(finished)


def _bounded(extras: dict[str, Any]) -> dict[str, Any]:
    """Without the largest, until the rest may be recorded: a reply without its signatures is better than none. Who they
    are from comes on top."""
    while extras and extras_bytes(extras) > EXTRAS_BYTES // 2:
        largest = max(extras, key=lambda name: extras_bytes({name: extras[name]}))
        log.warning("%s of a block has more than %d bytes and is not kept", largest, EXTRAS_BYTES // 2)
        extras = {name: value for name, value in extras.items() if name != largest}
    return extras


def _free_id(wanted: str, instead: str, taken: Collection[str]) -> str:
    call_id = wanted if wanted and wanted not in taken else instead
    while call_id in taken:
        call_id += "_"
    return call_id
