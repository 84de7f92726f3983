"""Makes the diff that a person sees of a change to a file before it happens; nothing is hidden silently."""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from longhaul.activities.attempt.secrets import CUT, CUT_END
from longhaul.activities.tools.files import ABSENT, FileSnapshot
from longhaul.agent.plain.text import visible

NOTICE_CAP = 4_000
LINE_CAP = 400
CONTEXT_LINES = 3
COMPARED_CAP = 2_000_000
"""Product of the line counts up to which difflib is asked: its worst case is quadratic."""


def change_notice(path: Path, before: FileSnapshot, after: bytes) -> str:
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
    return _fitted([*head, *_shown(_unified(_lines(old), _lines(new)))])


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
        yield _shifted(line, start) if line.startswith("@@") else line


def _equal_at_start(old: list[str], new: list[str], most: int | None = None) -> int:
    count = 0
    for left, right in zip(old[:most], new[:most], strict=False):
        if left != right:
            break
        count += 1
    return count


def _shifted(header: str, offset: int) -> str:
    return re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + offset}", header)


def _shown(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        body = visible_line(line.removesuffix("\n"))
        yield body if len(body) <= LINE_CAP else f"{body[:LINE_CAP]}{CUT}{len(body) - LINE_CAP}{CUT_END}"
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _fitted(lines: list[str]) -> str:
    """All lines if they fit, else the first and the last ones around a line that counts the others."""
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


def _fitting(lines: list[str], room: int) -> int:
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return count
    return len(lines)
