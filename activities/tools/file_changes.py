"""The tools `Write` and `Edit`: the whole content of one file, or one text replaced by another with the file's own
line endings; and the diff that a person sees before it happens, in which nothing is hidden silently.

A change that was decided on is made once, or not at all. `examine` records the digest of the file as seen and of
the bytes that would be written; `run` acts only on exactly that. A retried attempt finds its own bytes and reports
success.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longhaul.activities.attempt.secrets import CUT, CUT_END
from longhaul.activities.process.threads import in_thread
from longhaul.activities.shell.paths import further_names, path_use, resolve_file
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.files import (
    ABSENT,
    LOADED_CAP_BYTES,
    Changed,
    FileSnapshot,
    digest_of,
    replace,
    snapshot,
)
from longhaul.activities.tools.lookalikes import differing_characters, lookalike
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.text import visible
from longhaul.agent.values.conversation.tools import Effect

NOTICE_CAP = 4_000
LINE_CAP = 400
CONTEXT_LINES = 3
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMPARED_CAP = 2_000_000
"""Product of the line counts up to which difflib is asked: its worst case is quadratic."""


def change_notification(path: Path, before: FileSnapshot, after: bytes) -> str:
    """A unified diff of at most NOTICE_CAP characters; what is left out is counted, and control characters,
    bidirectional marks and other invisible ones are shown as escapes."""
    head = [
        f"--- {visible_line(str(path))}" if before.digest != ABSENT else "--- (no such file)",
        f"+++ {visible_line(str(path))}",
    ]
    old = "" if before.digest == ABSENT else _text(before.data)
    new = _text(after)
    if old is None or new is None:
        return "\n".join([*head, f"{before.size_bytes} bytes are replaced by {len(after)} bytes; not shown as text"])
    # All lines are shown if they fit, else the first and the last ones around a line that counts the others.
    lines = [*head, *_visible_lines(_unified(_lines(old), _lines(new)))]
    whole = "\n".join(lines)
    if len(whole) <= NOTICE_CAP:
        return whole
    room = NOTICE_CAP - 80
    first = _fitting(lines, room * 2 // 3)
    last = _fitting(lines[:first:-1], room // 3)
    left_out = len(lines) - first - last
    return "\n".join(
        [*lines[:first], f"… {left_out} lines of this change are not shown here …", *lines[len(lines) - last :]]
    )


def visible_line(text: str) -> str:
    """`text` with everything that a terminal would obey or hide written as an escape, newlines too; tabs stay."""
    return visible(text).replace("\n", "\\n")


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    """Only a newline ends a line here: `str.splitlines` would also split at form feeds and their like."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _unified(old: list[str], new: list[str]) -> Iterator[str]:
    """The hunks. Equal heads and tails are cut off first, so that one changed line in a large file costs nothing."""
    same = _equal_at_start(old, new)
    rest = min(len(old), len(new)) - same
    same_end = _equal_at_start(old[::-1], new[::-1], rest)
    start = max(0, same - CONTEXT_LINES)
    old_end, new_end = len(old) - same_end, len(new) - same_end
    if (old_end - same) * (new_end - same) > COMPARED_CAP:
        yield f"@@ -{same + 1},{old_end - same} +{same + 1},{new_end - same} @@\n"
        yield from ("-" + line for line in old[same:old_end])
        yield from ("+" + line for line in new[same:new_end])
        return
    window = old[start : old_end + CONTEXT_LINES], new[start : new_end + CONTEXT_LINES]
    for line in list(difflib.unified_diff(*window, n=CONTEXT_LINES))[2:]:
        yield (
            re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + start}", line)
            if line.startswith("@@")
            else line
        )


def _equal_at_start(old: list[str], new: list[str], most: int | None = None) -> int:
    count = 0
    for left, right in zip(old[:most], new[:most], strict=False):
        if left != right:
            break
        count += 1
    return count


def _visible_lines(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        body = visible_line(line.removesuffix("\n"))
        yield body if len(body) <= LINE_CAP else f"{body[:LINE_CAP]}{CUT}{len(body) - LINE_CAP}{CUT_END}"
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _fitting(lines: list[str], room: int) -> int:
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return count
    return len(lines)


@dataclass(frozen=True, slots=True)
class Plan:
    """The bytes that a call would write, and what it says when it has."""

    data: bytes
    done: str


class FileChange(Tool):
    """A tool that replaces the content of one file, named by the argument `file_path`."""

    effect = Effect.IDEMPOTENT
    timeout_seconds = 60.0

    def plan(self, arguments: dict[str, Any], before: FileSnapshot) -> Plan:
        """What to write over `before`. Changes nothing; raises ToolError when it can't be done."""
        raise NotImplementedError(f"{type(self).__name__}.plan")

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        return await in_thread(lambda _: self._analysis(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        return await in_thread(lambda _: self._change(call), writes=True)

    def _analysis(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        cwd = str(place.cwd)
        try:
            path = resolve_file(arguments["file_path"], place)
            named = further_names(arguments["file_path"], path, place)
        except ToolError as error:
            return CallAnalysis(cwd=cwd, arguments_error=str(error))
        fact = path_use(path, "write", place.root, named)
        try:
            before = snapshot(path)
            plan = self._planned(arguments, path, before)
        except ToolError as error:
            # Without `after` the run can only fail with this sentence, or ask for a new decision: it changes nothing.
            return CallAnalysis(cwd=cwd, paths=(fact,), read_only=True, notice=f"This would fail: {error}"[:4000])
        notice = change_notification(path, before, plan.data)
        if before.digest == ABSENT and (named_alike := lookalike(path)):
            notice = f"A new file{visible_line(named_alike)}\n{notice}"
        return CallAnalysis(cwd=cwd, paths=(fact,), before=before.digest, after=digest_of(plan.data), notice=notice)

    def _change(self, call: ToolCall) -> ToolOutput:
        path = resolve_file(call.arguments["file_path"], call.place)
        named = further_names(call.arguments["file_path"], path, call.place)
        if [(fact.path, fact.named) for fact in call.analysis.paths] != [(str(path), named)]:
            raise self._needs_decision(call, f"{call.arguments['file_path']!r} now leads to {str(path)!r}")
        before = snapshot(path)
        if call.analysis.after and before.digest == call.analysis.after:
            return ToolOutput(f"{str(path)!r} has this content already: the change is made")
        if call.analysis.before and before.digest != call.analysis.before:
            raise self._needs_decision(call, f"{str(path)!r} has changed since the call was decided on")
        plan = self._planned(call.arguments, path, before)
        if digest_of(plan.data) != call.analysis.after:
            raise self._needs_decision(call, f"the change to {str(path)!r} is not the one that was decided on")
        try:
            replace(path, plan.data, expected=before.digest)
        except Changed:
            raise self._needs_decision(call, f"{str(path)!r} was changed while the call was at it") from None
        diff = change_notification(path, before, plan.data)
        if before.names < 2:
            remark = ""
        else:
            remark = f"\n{path.name!r} had {before.names} names (hard links); the others keep the old content"
        return ToolOutput(plan.done + remark, metadata={"diff": diff})

    def _planned(self, arguments: dict[str, Any], path: Path, before: FileSnapshot) -> Plan:
        """As `plan`, which says for a file that is not there what looks like it."""
        named_alike = lookalike(path) if before.digest == ABSENT else ""
        try:
            plan = self.plan(arguments, before)
        except ToolError as error:
            raise ToolError(f"{error}{named_alike}") from None
        return Plan(plan.data, f"{plan.done}{named_alike}")

    def _needs_decision(self, call: ToolCall, reason: str) -> NeedsDecision:
        return NeedsDecision(self._analysis(call.arguments, call.place), reason)


def encoded(text: str, name: str) -> bytes:
    """`text` as UTF-8. Raises ToolError, naming the argument, for half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{name}: the character at position {error.start} is half of a surrogate pair and can't be written as UTF-8"
        ) from None


EDIT_DESCRIPTION = """\
Replaces text in a file.

- `old_string` must be in the file exactly as given, indentation included (without the line numbers that Read shows), \
and exactly once; give enough lines around it to make it unique, or set `replace_all`.
- The file keeps its line endings: write plain newlines, also for files with CRLF.
- With an empty `old_string` a new file is created with `new_string` as its content."""

EDIT_INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The file to change; absolute, or relative."},
        "old_string": {"type": "string", "description": "The text to replace."},
        "new_string": {"type": "string", "description": "What comes in its place."},
        "replace_all": {"type": "boolean", "description": "Replace every occurrence; false if not given."},
    },
    "required": ["file_path", "old_string", "new_string"],
    "additionalProperties": False,
}


class Edit(FileChange):
    """Replaces `old_string` by `new_string` in a UTF-8 file."""

    sandboxed_from = __name__
    name = "Edit"
    description = EDIT_DESCRIPTION
    input_schema = EDIT_INPUT_SCHEMA

    def plan(self, arguments: dict[str, Any], before: FileSnapshot) -> Plan:
        name, old, new = arguments["file_path"], arguments["old_string"], arguments["new_string"]
        encoded(old, "old_string")
        data = encoded(new, "new_string")
        if old == new:
            raise ToolError("old_string and new_string are the same; there is nothing to change")
        if before.digest == ABSENT:
            if old:
                raise ToolError(f"{name!r} does not exist, so it can't be edited")
            return Plan(data, f"Created {name!r} ({len(data)} bytes)")
        if not old:
            raise ToolError(f"old_string is empty, but {name!r} exists; give the text to replace, or use Write")
        if before.data is None:
            raise ToolError(f"{name!r} has {before.size_bytes} bytes; Edit takes at most {LOADED_CAP_BYTES}: use Bash")
        try:
            whole = before.data.decode()
        except UnicodeDecodeError as error:
            raise ToolError(f"{name!r} is not UTF-8 text (byte {error.start} is not), so it can't be edited") from None
        text, count = replaced(whole, old, new, every=arguments.get("replace_all", False))
        return Plan(text.encode(), f"Replaced {count} occurrence{'s' if count > 1 else ''} in {name!r}")


def replaced(text: str, old: str, new: str, *, every: bool) -> tuple[str, int]:
    """`text` with `old` replaced, and how often. A newline in `old` also matches CRLF in `text`, and what is written
    has the line endings of what it replaces; an `old` that names CR itself is taken literally, and so is `new`.
    Raises ToolError unless `old` is there once (or `every` is set and it is there at all)."""
    literal = "\r" in old or "\r\n" not in text
    pattern = re.compile(re.escape(old) if literal else r"\r?\n".join(map(re.escape, old.split("\n"))))
    found = list(pattern.finditer(text))
    if not found:
        raise ToolError(f"old_string was not found in the file{_hint(text, old)}")
    if not every:
        second = pattern.search(text, found[0].start() + 1)
        if second is not None:
            lines = ", ".join(str(text.count("\n", 0, match.start()) + 1) for match in [found[0], second, *found[2:10]])
            raise ToolError(
                f"old_string is there {max(2, len(found))} times (from lines {lines}); give more of the text around "
                "the one to change, or set replace_all"
            )
    pieces, end = [], 0
    for match in found:
        pieces += [text[end : match.start()], new if literal else _with_endings_of(text, match, new)]
        end = match.end()
    return "".join([*pieces, text[end:]]), len(found)


def _with_endings_of(text: str, match: re.Match[str], new: str) -> str:
    """`new` with the line endings of the lines that it replaces, line by line; further lines end as the last of them,
    or as the line that the match is in."""
    endings = re.findall(r"\r?\n", match[0]) or [_ending_at(text, match)]
    lines = re.split(r"\r?\n", new)
    joined = [line + endings[min(index, len(endings) - 1)] for index, line in enumerate(lines[:-1])]
    return "".join(joined) + lines[-1]


def _ending_at(text: str, match: re.Match[str]) -> str:
    newline = text.find("\n", match.end())
    if newline < 0:
        newline = text.rfind("\n", 0, match.start())
    return "\r\n" if newline > 0 and text[newline - 1] == "\r" else "\n"


def _hint(text: str, old: str) -> str:
    """Where the first line of `old` is, when at least that is there: mostly the indentation or a later line differs."""
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    if re.match(r"\d+\t", first):
        return "; leave out the line numbers that Read shows before each line"
    if told := differing_characters(text, old):
        return f", but text that looks like it: {told}. Give old_string with the characters of the file"
    at = [number for number, line in enumerate(text.split("\n"), 1) if first and first in line]
    if not at:
        return "; read the file again, it may have changed"
    return f"; its first line {first[:80]!r} is in line {at[0]}, but the spaces around it or the lines after it differ"


WRITE_DESCRIPTION = """\
Writes a text file: creates it, with the folders that are missing, or replaces its whole content.

- `file_path` is absolute, or relative to the working directory.
- The content is written exactly as given, in UTF-8.
- To change a part of a file, prefer Edit."""

WRITE_INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The file to write."},
        "content": {"type": "string", "description": "Its whole new content."},
    },
    "required": ["file_path", "content"],
    "additionalProperties": False,
}


class Write(FileChange):
    """Replaces a file by `content`, in one step."""

    sandboxed_from = __name__
    name = "Write"
    description = WRITE_DESCRIPTION
    input_schema = WRITE_INPUT_SCHEMA

    def plan(self, arguments: dict[str, Any], before: FileSnapshot) -> Plan:
        data = encoded(arguments["content"], "content")
        verb = "Created" if before.digest == ABSENT else "Replaced the content of"
        return Plan(data, f"{verb} {arguments['file_path']!r} ({len(data)} bytes){_lost_in(before.data or b'', data)}")


def _lost_in(before: bytes, after: bytes) -> str:
    """What Read does not show of a file, so that who writes it can't know that it goes."""
    had = (
        ("lines that end in CRLF", b"\r\n" in before and b"\n" in after and b"\r\n" not in after),
        ("a byte order mark", before.startswith(_BYTE_ORDER_MARK) and not after.startswith(_BYTE_ORDER_MARK)),
    )
    lost = " and ".join(what for what, is_lost in had if is_lost)
    return f"; before it had {lost}, which Edit keeps and this content does not have" if lost else ""
