"""Output of commands that is too long for the context: its start and its end are kept, and of what stands between them
the lines that look like errors. A test run names the failing test at its end, a compiler its error in the middle.

Each place where something was left out has a mark that counts it. The last line says that the output was shortened, and
names the file that has the whole of it.
"""

import re
from collections.abc import Callable

END_SHARE, START_SHARE = 0.45, 0.25
"""Of what may be kept; the rest is for lines that look like errors, and goes to the end where there are too few."""
ERROR_LINE_CHARS = 300
"""Of one line that looks like an error and stands in the middle."""
_ATTEMPTS = 12
"""Counts per output; three are usual. Each is with less text than the one before."""

SHORTENED = "[This output was shortened: lines that look like errors are kept from its middle."

_LOOKS_LIKE_ERROR = re.compile(
    r"""
    \b(?: FAILED | FAIL | FAILURES? | ERRORS? | FATAL | CRITICAL | PANIC | Traceback | WARN(?:ING)? )\b
    | \b\w*(?: Error | Exception | Panic )\b                # AssertionError, java.lang.IllegalStateException
    | \b(?: errors? | fatal | panic | failed | failures? | aborted | assert(?:ion)? | warning )\b (?: \[ | : | \s )
    | \b(?: panicked | segmentation\ fault | core\ dumped | undefined\ reference | cannot\ find | not\ found )\b
    | \b exit(?:ed)?\ (?: code | status | with )
    | ^\s*(?: E\ \s | not\ ok\b | --- | [✗✕✖✘❌●] )      # pytest, TAP, Go, test runners of JavaScript
    """,
    re.VERBOSE,
)
_NO_ERROR = re.compile(r"\b(?:0|no)\s+(?:errors?|failed|failures?|warnings?)\b", re.IGNORECASE)
_PASSED = re.compile(r"(?:\b(?:PASSED|PASS|passed|ok|OK)|✓|✔)\s*(?:\[\s*\d+%\]|\(.*\))?\s*$|^\s*(?:ok\b|✓|✔|--- PASS)")


def looks_like_error(line: str) -> bool:
    """Whether whoever reads a long output looks for this line: an error, a failure, a warning."""
    return not _PASSED.search(line) and bool(_LOOKS_LIKE_ERROR.search(_NO_ERROR.sub("", line)))


def shorten(text: str, limit: int, count: Callable[[str], int]) -> str:
    """At most `limit` tokens of `text`, marks included: its start, its end, and errors from between.

    `count` gives the tokens of a text; it is called with texts up to the whole. So call this in a thread for a large
    one.
    """
    room = len(text) * limit // max(count(text), 1)
    for _ in range(_ATTEMPTS):
        start, end = _start(text, int(room * START_SHARE)), _end(text, int(room * END_SHARE))
        spare = room - start - (len(text) - end) - len(_middle(text[start:end], room - start - (len(text) - end)))
        if spare > 0:
            end = max(_end(text, len(text) - end + spare), start)
        middle = _middle(text[start:end], room - start - (len(text) - end))
        before = "" if not start or text[start - 1] == "\n" else "\n"
        kept = f"{text[:start]}{before}{middle}{text[end:]}"
        found = count(kept)
        if found <= limit:
            return kept
        room = min(room * limit // found, room * 19 // 20)
    return ""


def end_note(reference: str | None) -> str:
    """The last line. In a reference, control characters and line breaks become U+FFFD: it stays one line."""
    if not reference:
        return f"{SHORTENED} The rest was not kept; print less of it to see more]"
    place = "".join(character if character.isprintable() else "\ufffd" for character in reference)
    return f"{SHORTENED} The whole of it is in the file '{place}']"


def _start(text: str, room: int) -> int:
    """Where the start that is kept ends: behind a whole line, unless that would be less than half of the room."""
    line = text.rfind("\n", 0, room) + 1
    return line if line * 2 > room else room


def _end(text: str, room: int) -> int:
    at = len(text) - room
    line = text.find("\n", at) + 1
    return line if line > 0 and (len(text) - line) * 2 > room else at


def _middle(text: str, room: int) -> str:
    """The lines of `text` that look like errors, at most as many characters of them as there is room for: the first
    ones and the last ones. Between them stand the marks."""
    lines = text.splitlines(keepends=True)
    wanted = [number for number, line in enumerate(lines) if looks_like_error(line)]
    kept = set[int]()
    for order, share in ((wanted, room // 2), (wanted[::-1], room)):
        for number in order:
            # Each may bring a mark of its own.
            room_for = min(len(lines[number]), ERROR_LINE_CHARS) + _MARK_CHARS
            if number in kept:
                continue
            if share - room_for < sum(min(len(lines[one]), ERROR_LINE_CHARS) + _MARK_CHARS for one in kept):
                break
            kept.add(number)
    pieces, gap = list[str](), list[str]()
    for number, line in enumerate(lines):
        if number not in kept:
            gap.append(line)
            continue
        pieces += [_mark(gap), _short_line(line)]
        gap = []
    return "".join([*pieces, _mark(gap)])


_MARK_CHARS = 50


def _mark(gap: list[str]) -> str:
    left_out = "".join(gap)
    if len(left_out) <= _MARK_CHARS:
        return left_out
    lines = "" if len(gap) == 1 else f"{len(gap)} lines, "
    return f"[… {lines}{len(left_out)} characters left out …]\n"


def _short_line(line: str) -> str:
    if len(line) <= ERROR_LINE_CHARS:
        return line
    return f"{line[:ERROR_LINE_CHARS]}… [{len(line) - ERROR_LINE_CHARS} characters of this line left out]\n"
