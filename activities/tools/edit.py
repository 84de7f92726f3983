"""The tool `Edit`: one text replaced by another, with the file's own line endings."""

import re
from typing import Any

from longhaul.activities.tool import ToolError
from longhaul.activities.tools.file_change import FileChange, Plan, encoded
from longhaul.activities.tools.files import ABSENT, LOADED_CAP_BYTES, FileSnapshot

DESCRIPTION = """\
Replaces text in a file.

- `old_string` must be in the file exactly as given, indentation included (without the line numbers that Read shows), \
and exactly once; give enough lines around it to make it unique, or set `replace_all`.
- The file keeps its line endings: write plain newlines, also for files with CRLF.
- With an empty `old_string` a new file is created with `new_string` as its content."""

INPUT_SCHEMA: dict[str, Any] = {
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

    boxed_from = __name__
    name = "Edit"
    description = DESCRIPTION
    input_schema = INPUT_SCHEMA

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
        text, count = replaced(_text_of(name, before), old, new, every=arguments.get("replace_all", False))
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


def _text_of(name: str, before: FileSnapshot) -> str:
    if before.data is None:
        raise ToolError(f"{name!r} has {before.size_bytes} bytes; Edit takes at most {LOADED_CAP_BYTES}: use Bash")
    try:
        return before.data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{name!r} is not UTF-8 text (byte {error.start} is not), so it can't be edited") from None


def _hint(text: str, old: str) -> str:
    """Where the first line of `old` is, when at least that is there: mostly the indentation or a later line differs."""
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    if re.match(r"\d+\t", first):
        return "; leave out the line numbers that Read shows before each line"
    at = [number for number, line in enumerate(text.split("\n"), 1) if first and first in line]
    if not at:
        return "; read the file again, it may have changed"
    return f"; its first line {first[:80]!r} is in line {at[0]}, but the spaces around it or the lines after it differ"
