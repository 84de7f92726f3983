"""Makes of a tool's output one result that can be recorded and is short enough for the context. What is left out of it
is kept whole where the agent can read it.

A call that has run must be told of: nothing here raises, and cancellation waits until the result is made.

Tool output that is too long for the context: its beginning is kept, and a marker says that there was more. Of what
commands print, both ends are kept (`command_output`).

The marker is the seed's, word for word, and stands at the very end. Output is hostile and may contain the same words:
what stands anywhere but at the end is the output's own. An output that ends with them although nothing was left out
gets a line that says so, and is not changed otherwise: an agent may well read a file that quotes the marker.
"""

import asyncio
import json
import logging
import unicodedata
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pydantic_core import PydanticSerializationError

from longhaul.activities.attempt.call_attempts import timeout_in_hurry
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.context.attachments import attachment_tokens, looked_into
from longhaul.activities.context.command_output import SHORTENED, end_note, shorten
from longhaul.activities.context.context_cache import size_of
from longhaul.activities.context.tokens import INLINE_BYTES, TokenCounter
from longhaul.activities.contract import RunTool
from longhaul.activities.tool import ToolOutput
from longhaul.activities.tools.postprocessors import Postprocessors
from longhaul.agent.values.conversation.messages import DataBlock, Msg, TextBlock, ToolResultBlock, ToolResultState
from longhaul.agent.values.subagents import BASH, BASH_OUTPUT
from longhaul.stores.offload.offloaders import Offloaders

Output = str | tuple[TextBlock | DataBlock, ...]

DATA_TOKENS = 1_600
"""Of an attachment where the caller does not say."""

_OPENING = "<<<TRUNCATED>>>"
_OMITTED = "The remaining content has been omitted for limited context."
_CLOSING = "</system-reminder>"
NOT_OURS = "(The output ends here. Nothing was left out: the marker above is part of the output itself.)"

_LONGEST_CHARACTER = 32
"""Code points that may look like one character; more are a stack of accents that nobody reads."""
_JOINER = "\u200d"

_MARKER_LINE_BREAKS = 3
"""Ours has one; a forged one may be padded, and with more than this it no longer looks like the end."""

_ATTEMPTS = 40
"""Counts per cut; three are usual."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """What the model gets of an output. `replace(truncated, reference=…)` names a place that was found afterwards."""

    kept: Output
    """What was kept, at most the limit; the whole output when nothing was cut."""
    cut: bool
    reference: str | None = None
    """Where the whole output was written for the agent to read."""
    both_ends: bool = False
    """Whether the end was kept as well, as of commands."""

    @property
    def output(self) -> Output:
        """The kept part, and the marker as its own last line or block; the marker does not count for the limit."""
        if self.cut:
            return _with_line(self.kept, (end_note if self.both_ends else marker)(self.reference))
        return _with_line(self.kept, NOT_OURS) if _seems_cut(self.kept) else self.kept

    def applied_to(self, result: ToolResultBlock) -> ToolResultBlock:
        """`result` with this output; state, metadata and all else stay."""
        return result.model_copy(update={"output": self.output})


def marker(reference: str | None) -> str:
    """The seed's marker. In a reference, control characters and line breaks become U+FFFD: it stays one line."""
    if not reference:
        return f"{_OPENING}\n<system-reminder>{_OMITTED}{_CLOSING}"
    place = "".join(character if character.isprintable() else "\ufffd" for character in reference)
    return (
        f"{_OPENING}\n<system-reminder>{_OMITTED} You can refer to the file in '{place}' for the truncated content if "
        f"needed.{_CLOSING}"
    )


def truncate(
    output: Output,
    limit: int,
    count: Callable[[str], int],
    reference: str | None,
    count_data: Callable[[DataBlock], int] = lambda _: DATA_TOKENS,
) -> Truncated:
    """At most `limit` tokens of `output`: whole blocks, then as much as fits of the text at the boundary. An
    attachment at the boundary, and all that follows it, is left out.

    `count` gives the tokens of a text; it is not called when the bytes alone fit, and else with texts up to the whole
    output. So call this in a thread for a large one.
    """
    parts = (TextBlock(text=output),) if isinstance(output, str) else output
    if _surely_fits(parts, limit):
        return Truncated(output, cut=False, reference=reference)
    room = limit
    kept: list[TextBlock | DataBlock] = []
    for part in parts:
        tokens = count(part.text) if isinstance(part, TextBlock) else count_data(part)
        if tokens > room:
            if isinstance(part, TextBlock) and (text := _beginning(part.text, tokens, room, count)):
                kept.append(TextBlock(text=text))
            return Truncated(_like(output, kept), cut=True, reference=reference)
        kept.append(part)
        room -= tokens
    return Truncated(output, cut=False, reference=reference)


def truncate_command(output: str, limit: int, count: Callable[[str], int]) -> Truncated:
    """As `truncate`, for what a command printed: both of its ends are kept, and errors from between."""
    if _surely_fits((TextBlock(text=output),), limit) or count(output) <= limit:
        return Truncated(output, cut=False)
    return Truncated(shorten(output, limit, count), cut=True, both_ends=True)


def _surely_fits(parts: tuple[TextBlock | DataBlock, ...], limit: int) -> bool:
    """A token is at least one byte."""
    room = limit
    for part in parts:
        room -= len(part.text.encode("utf-8", "surrogatepass")) if isinstance(part, TextBlock) else limit + 1
    return room >= 0


def _like(output: Output, kept: list[TextBlock | DataBlock]) -> Output:
    if isinstance(output, str):
        return "".join(part.text for part in kept if isinstance(part, TextBlock))
    return tuple(kept)


def _beginning(text: str, tokens: int, room: int, count: Callable[[str], int]) -> str:
    """The start of `text`, which has `tokens`, that counts at most `room`, and rarely below 98 % of it."""
    fits, too_long = 0, len(text)
    guess = len(text) * room // tokens
    for attempt in range(_ATTEMPTS if room > 0 else 0):
        # Each second guess halves what is left: text that is dense here and sparse there leads the others astray.
        if not fits < guess < too_long or attempt % 2:
            guess = (fits + too_long) // 2
        guess = _boundary(text, guess)
        if guess <= fits:
            break
        found = count(text[:guess])
        if found > room:
            too_long = guess
        else:
            fits = guess
            if found * 50 >= room * 49:
                break
        guess = guess * room // max(found, 1)
    return text[:fits]


def _boundary(text: str, at: int) -> int:
    """The last place up to `at` where what looks like one character is not torn."""
    for place in range(at, max(at - _LONGEST_CHARACTER, 0), -1):
        if not _belong_together(text[place - 1], text[place : place + 1]):
            return place
    return at if at > _LONGEST_CHARACTER else 0


def _belong_together(before: str, after: str) -> bool:
    if not after:
        return False
    return (
        unicodedata.category(after).startswith("M")
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or (before == "\r" and after == "\n")
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
    )


def _seems_cut(output: Output) -> bool:
    """Whether the last lines of text are, or look like, a marker: then the model must be told that they are not."""
    texts: list[str] = []
    for part in reversed((TextBlock(text=output),) if isinstance(output, str) else output):
        if isinstance(part, DataBlock):
            break
        texts.insert(0, part.text)
    end = "\n".join(texts).rstrip()
    start = max(end.rfind(_OPENING), end.rfind(SHORTENED))
    return start >= 0 and end.count("\n", start) <= _MARKER_LINE_BREAKS


def _with_line(output: Output, line: str) -> Output:
    if isinstance(output, str):
        return f"{output}{'' if not output or output.endswith(chr(10)) else chr(10)}{line}"
    return (*output, TextBlock(text=line))


log = logging.getLogger(__name__)
Result = TypeVar("Result")

TEXT_LIMIT_CHARS = 300_000
"""Whatever the agent's own limit: a longer answer could be refused by the server."""
DATA_LIMIT_CHARS = 1_200_000
"""Of base64, all attachments together: the server's limit is 2 MiB for the whole answer."""
ANSWER_LIMIT_BYTES = 1_500_000

COMMANDS = (BASH, BASH_OUTPUT)
"""Tools of which both ends are kept. All others keep the seed's form, with its marker."""

METADATA_LEVELS = 60
"""JSON is read back to a depth of about 200, the record's own levels included: one value beyond it would fail the
session's task for ever."""

QUICK_CHARS = 50_000
"""So much text is counted on the event loop, and more in a thread."""
OFFLOAD_SECONDS = 15.0
REFERENCE_LIMIT_CHARS = 4_000


class Returning:
    def __init__(
        self,
        offloaders: Offloaders,
        counter: TokenCounter,
        secrets: WorkerSecrets,
        behind: Postprocessors | None = None,
    ) -> None:
        self.behind = behind or Postprocessors()
        self._secrets = secrets
        self._offloaders = offloaders
        self._counter = counter

    async def result(
        self, name: str, ask: RunTool, output: ToolOutput, state: ToolResultState | None = None
    ) -> ToolResultBlock:
        """The result as the session records it. Above `ask.result_limit` tokens the whole output is kept by the agent's
        offloader first; where that fails, the result is cut all the same."""
        if ask.postprocess and state is None:
            async with beating():
                output = await _undisturbed(self.behind.applied(ask.postprocess, name, output))
        try:
            block = ToolResultBlock(
                id=ask.call_id,
                name=name,
                output=_told_of_edit(ask, _recordable_text(output.output)),
                state=state or (ToolResultState.ERROR if output.failed else ToolResultState.SUCCESS),
                metadata=output.metadata,
            )
        except (TypeError, ValueError, AttributeError) as error:
            # The call has run. An error from here would start a `once` call a second time.
            log.exception("tool %s returned something other than a ToolOutput", name)
            text = (
                f"[{name} ended, but what it returned can't be used ({type(error).__name__}). What it did stays done.]"
            )
            block = ToolResultBlock(id=ask.call_id, name=name, output=text, state=state or ToolResultState.ERROR)
        # Before anything is cut: half of a secret would not be known again.
        if not self._secrets.masker or _characters(block.output) <= QUICK_CHARS:
            whole = self._secrets.out_of_result(block)
        else:
            async with beating():
                whole = await _undisturbed(asyncio.to_thread(self._secrets.out_of_result, block))
        bounded, too_large = _bounded(whole.output)
        shown = _sound(bounded)
        if not too_large and _characters(shown) <= QUICK_CHARS:
            made = _entire(self._truncated(ask, name, shown), whole)
            if made is not None:
                return made
        async with beating():
            return await _undisturbed(self._make_result(ask, whole, shown, too_large=too_large))

    async def message(self, ask: RunTool, result: ToolResultBlock) -> tuple[Msg, int]:
        """What the result becomes in the context, and its tokens."""
        message = Msg(name=ask.agent, role="assistant", content=(result,))
        if size_of(message) <= INLINE_BYTES:
            return message, self._counter.count_message(message, ask.model)
        return message, await _undisturbed(self._counter.count_aside(message, ask.model))

    async def _make_result(
        self, ask: RunTool, whole: ToolResultBlock, shown: Output, *, too_large: bool
    ) -> ToolResultBlock:
        truncated = await asyncio.to_thread(self._truncated, ask, whole.name, shown)
        made = None if too_large else _entire(truncated, whole)
        if made is not None:
            return made
        reference = await self._kept(ask, whole)
        return _recordable(replace(truncated, cut=True, reference=reference).applied_to(whole)) or _left_out(
            whole, reference
        )

    def _truncated(self, ask: RunTool, name: str, shown: Output) -> Truncated:
        count = partial(self._counter.count_text, model=ask.model)
        if name in COMMANDS and isinstance(shown, str):
            return truncate_command(shown, ask.result_limit, count)
        return truncate(shown, ask.result_limit, count, None, partial(attachment_tokens, model=ask.model))

    async def _kept(self, ask: RunTool, whole: ToolResultBlock) -> str | None:
        """Where the whole output is; None when it was not kept."""
        try:
            async with timeout_in_hurry(OFFLOAD_SECONDS):
                offloader = await self._offloaders.get(ask.offloader, ask.agent, ask.place.user_id)
                if offloader is None:
                    return None
                reference: object = await offloader.offload_tool_result(ask.place.session_id, whole)
        except BaseException as error:  # noqa: BLE001
            # An offloader is somebody else's code, and its store somebody else's machine: the call ran all the same.
            log.warning(
                "the whole result of %s was not kept by the offloader %r, only its beginning (%s: %s)",
                whole.name, ask.offloader, type(error).__name__, error,
            )  # fmt: skip
            return None
        if not isinstance(reference, str) or not 0 < len(reference) <= REFERENCE_LIMIT_CHARS:
            log.warning("the offloader %r returned no reference that can be shown", ask.offloader)
            return None
        return reference


async def _undisturbed(work: Coroutine[Any, Any, Result]) -> Result:
    """What `work` returns, although this task is cancelled: a `once` call that has run would otherwise count as one
    that may be started again."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,))
    return task.result()


def _entire(truncated: Truncated, whole: ToolResultBlock) -> ToolResultBlock | None:
    """The result with nothing left out of it, when it may be recorded as it is."""
    return None if truncated.cut else _recordable(truncated.applied_to(whole))


def _told_of_edit(ask: RunTool, output: Output) -> Output:
    """The model must know that what ran is not what it wrote."""
    if ask.edited_by is None:
        return output
    note = f"[{ask.edited_by} changed the arguments before this ran: {ask.arguments}]"
    return f"{note}\n{output}" if isinstance(output, str) else (TextBlock(text=note), *output)


def _recordable_text(output: Output) -> Output:
    """Without lone surrogates, which JSON could not be written with."""
    if isinstance(output, str):
        return output.encode("utf-8", "replace").decode("utf-8")
    return tuple(
        TextBlock(text=block.text.encode("utf-8", "replace").decode("utf-8")) if isinstance(block, TextBlock) else block
        for block in output
    )


def _sound(output: Output) -> Output:
    """With words for attachments that no provider would take: recorded, one would be refused with every request."""
    if isinstance(output, str):
        return output
    return tuple(looked_into(block) if isinstance(block, DataBlock) else block for block in output)


def _characters(output: Output) -> int:
    parts = (TextBlock(text=output),) if isinstance(output, str) else output
    return sum(len(part.text) for part in parts if isinstance(part, TextBlock))


def _bounded(output: Output) -> tuple[Output, bool]:
    """As much of the output as could be recorded at all, and whether anything is missing."""
    if isinstance(output, str):
        return output[:TEXT_LIMIT_CHARS], len(output) > TEXT_LIMIT_CHARS
    kept: list[TextBlock | DataBlock] = []
    text_room, data_room, missing = TEXT_LIMIT_CHARS, DATA_LIMIT_CHARS, False
    for block in output:
        if isinstance(block, TextBlock):
            kept.append(TextBlock(text=block.text[:text_room]))
            missing = missing or len(block.text) > text_room
            text_room = max(text_room - len(block.text), 0)
        elif block.source.type == "base64" and len(block.source.data) > data_room:
            size = len(block.source.data) * 3 // 4000
            kept.append(TextBlock(text=f"[{block.source.media_type} of {size} kB left out]"))
            missing = True
        else:
            kept.append(block)
            data_room -= len(block.source.data) if block.source.type == "base64" else 0
    return tuple(kept), missing


def _recordable(result: ToolResultBlock) -> ToolResultBlock | None:
    """The result, without metadata that is not plain JSON; None when it is still too large or no JSON: an answer that
    the server never gets counts as never given, and a call that ran would be lost or started again."""
    if _can_be_written(result):
        return result
    bare = result.model_copy(update={"metadata": {}})
    return bare if result.metadata and _can_be_written(bare) else None


def _can_be_written(result: ToolResultBlock) -> bool:
    try:
        written = result.model_dump_json()
    except (PydanticSerializationError, ValueError):
        return False
    if len(written.encode()) > ANSWER_LIMIT_BYTES:
        return False
    return not result.metadata or _is_flat(json.loads(written)["metadata"], METADATA_LEVELS)


def _left_out(whole: ToolResultBlock, reference: str | None) -> ToolResultBlock:
    place = f"; the whole of it is in {reference!r}" if reference else ""
    text = f"[{whole.name} ended, but its result is too large, or can't be written as JSON, and was left out{place}]"
    return whole.model_copy(update={"metadata": {}, "output": text})


def _is_flat(value: object, levels: int) -> bool:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_flat(child, levels - 1) for child in children)
