"""The tool `Read`: lines of a text file with their numbers, an image as it is, or what else a file is."""

import base64
import codecs
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from longhaul.activities.process.threads import in_thread
from longhaul.activities.shell.paths import is_as_decided, reading_use, resolve_file
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.files import opened
from longhaul.activities.tools.lookalikes import lookalike
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock
from longhaul.agent.values.conversation.tools import Effect

LINES_CAP = 2_000
LINE_CAP = 2_000
CHARACTER_CAP = 100_000
IMAGE_CAP_BYTES = 3_500_000 // 4 * 3
"""What base64 turns into 3.5 MB."""
SEARCH_SECONDS = 20.0
"""So long a huge file is searched for the first line asked for."""

DESCRIPTION = f"""\
Reads a file.

- `file_path` is absolute, or relative to the working directory.
- Text comes with line numbers: at most {LINES_CAP} lines, from line `offset` on; each is cut at {LINE_CAP} characters.
- `column` shows a long line further on: {LINE_CAP} characters from that one on.
- Images (PNG, JPEG, GIF, WebP) are shown as images. PDF and other binary files are only described."""

_LINE_CAP_BYTES = LINE_CAP * 4
_PIECE_BYTES = 1 << 20

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The file to read."},
        "offset": {"type": "integer", "minimum": 1, "description": "The first line to read; 1 if not given."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": LINES_CAP,
            "description": f"How many lines; {LINES_CAP} if not given.",
        },
        "column": {"type": "integer", "minimum": 1, "description": "The first character of each line; 1 if not given."},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}


class Read(Tool):
    """Text by lines; images whole."""

    sandboxed_from = __name__
    name = "Read"
    description = DESCRIPTION
    effect = Effect.READ
    concurrency_safe = True
    read_only = True
    quick = True
    timeout_seconds = 60.0
    input_schema = INPUT_SCHEMA

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        return await in_thread(lambda _: _analysis(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        return await in_thread(lambda stop: _read(call, stop))


@dataclass(frozen=True, slots=True)
class Window:
    """What of a text is shown; all three count from 1."""

    offset: int
    limit: int
    column: int


def _analysis(arguments: dict[str, Any], place: Place) -> CallAnalysis:
    try:
        path = resolve_file(arguments["file_path"], place)
        fact = reading_use(arguments["file_path"], path, place)
    except ToolError as error:
        return CallAnalysis(cwd=str(place.cwd), arguments_error=str(error))
    return CallAnalysis(cwd=str(place.cwd), read_only=True, paths=(fact,))


def _read(call: ToolCall, stop: threading.Event) -> ToolOutput:
    path = resolve_file(call.arguments["file_path"], call.place)
    if not is_as_decided(call.analysis, call.arguments["file_path"], path, call.place):
        fresh = _analysis(call.arguments, call.place)
        raise NeedsDecision(fresh, f"{call.arguments['file_path']!r} now leads to {str(path)!r}")
    try:
        with opened(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
            start, size = file.read(8192), os.fstat(file.fileno()).st_size
            file.seek(0)
            image = image_type(start)
            if image and size <= IMAGE_CAP_BYTES:
                return image_shown(path.name, image, file.read(IMAGE_CAP_BYTES), size)
            binary = _binary_kind(start, image)
            if binary:
                return ToolOutput(f"{str(path)!r} is {binary} of {size} bytes; its content is not shown", failed=True)
            window = Window(
                call.arguments.get("offset", 1), call.arguments.get("limit", LINES_CAP), call.arguments.get("column", 1)
            )
            return ToolOutput(_numbered(path, file, window, stop))
    except FileNotFoundError:
        raise ToolError(f"{str(path)!r} does not exist{lookalike(path)}") from None


def image_shown(name: str, media_type: str, data: bytes, size: int) -> ToolOutput:
    """With a line that says what it is."""
    source = Base64Source(data=base64.b64encode(data).decode(), media_type=media_type)
    what = TextBlock(text=f"{name!r}: {media_type}, {size} bytes")
    return ToolOutput((what, DataBlock(source=source, name=name)))


def image_type(start: bytes) -> str:
    """By the first bytes of a file; empty for what is no image that models take."""
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return ""


def _binary_kind(start: bytes, image: str) -> str:
    """What a file that is not text is, for a sentence; empty for text."""
    if image:
        return f"an image ({image}) above the limit of {IMAGE_CAP_BYTES} bytes: make it smaller with Bash; it is one"
    if start.startswith(b"%PDF-"):
        return "a PDF document, which this tool can't read yet (try pdftotext in Bash); it is one"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "a text file in UTF-16 (convert it with iconv in Bash); it is one"
    return f"a binary file (it begins with {start[:8].hex(' ')})" if b"\0" in start else ""


def _numbered(path: Path, file: BinaryIO, window: Window, stop: threading.Event) -> str:
    offset, limit, column = window.offset, window.limit, window.column
    lines = _lines(file, column, stop)
    skipped = sum(1 for _ in islice(lines, offset - 1))
    shown, size, replaced = [], 0, False
    for number, text in enumerate(islice(lines, limit), offset):
        replaced = replaced or "�" in text
        shown.append(f"{number:>6}\t{_cut(text, column)}")
        size += len(shown[-1]) + 1
        if size > CHARACTER_CAP:
            shown.pop()
            break
    if not shown:
        if skipped < offset - 1:
            raise ToolError(f"offset {offset} is past the end: {str(path)!r} has {skipped} lines")
        return "(the file is empty)" if offset == 1 else f"(the file has {skipped} lines: none from line {offset} on)"
    remarks = []
    if size > CHARACTER_CAP or next(lines, None) is not None:
        remarks.append(f"[more lines follow; go on with offset={offset + len(shown)}]")
    if replaced:
        remarks.append("[what is not UTF-8 is shown as �]")
    return "\n".join([*shown, *remarks])


def _lines(file: BinaryIO, column: int, stop: threading.Event) -> Iterator[str]:
    """The lines from that character on, without their endings; a little more of each than is shown."""
    give_up = time.monotonic() + SEARCH_SECONDS
    mark = codecs.BOM_UTF8  # no character of the first line
    while start := file.readline(_LINE_CAP_BYTES + 8 if column == 1 else _PIECE_BYTES):
        _look_up(stop, give_up)
        start, mark = start.removeprefix(mark), b""
        if column == 1 and start.endswith(b"\n"):
            text = start.decode(errors="replace")
        else:
            text = _part_of_line(start, file, column, lambda: _look_up(stop, give_up))
        yield text.removesuffix("\n").removesuffix("\r")


def _part_of_line(piece: bytes, file: BinaryIO, column: int, look_up: Callable[[], None]) -> str:
    """Of the line that begins with `piece`; the file is read to the line's end."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text, left_out = "", column - 1
    while piece:
        if len(text) <= LINE_CAP:
            decoded = decoder.decode(piece)
            text += decoded[left_out:]
            left_out = max(left_out - len(decoded), 0)
        piece = b"" if piece.endswith(b"\n") else file.readline(_PIECE_BYTES)
        look_up()
    return text if len(text) > LINE_CAP else text + decoder.decode(b"", final=True)


def _look_up(stop: threading.Event, give_up: float) -> None:
    if stop.is_set() or time.monotonic() > give_up:
        raise ToolError(f"the lines were not found within {SEARCH_SECONDS:.0f} s; use Grep, or sed in Bash")


def _cut(text: str, column: int) -> str:
    shown = text.replace("\0", "�")
    return shown if len(shown) <= LINE_CAP else f"{shown[:LINE_CAP]}… [line cut; go on with column={column + LINE_CAP}]"
