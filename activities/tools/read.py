"""The tool `Read`: lines of a text file with their numbers, an image as it is, or what else a file is."""

import base64
import os
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from activities.tools.files import opened
from activities.tools.paths import path_fact, resolve_file
from activities.tools.threads import in_thread
from activities.tools.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from agent.messages import Base64Source, DataBlock, TextBlock
from agent.permission.facts import CallFacts
from agent.tools import Effect

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
- Images (PNG, JPEG, GIF, WebP) are shown as images. PDF and other binary files are only described."""

_LINE_CAP_BYTES = LINE_CAP * 4

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
    },
    "required": ["file_path"],
    "additionalProperties": False,
}


class Read(Tool):
    """Text by lines; images whole."""

    name = "Read"
    description = DESCRIPTION
    effect = Effect.READ
    concurrency_safe = True
    read_only = True
    timeout_seconds = 60.0
    input_schema = INPUT_SCHEMA

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        return await in_thread(lambda _: _facts(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        return await in_thread(lambda stop: _read(call, stop))


def _facts(arguments: dict[str, Any], place: Place) -> CallFacts:
    try:
        path = resolve_file(arguments["file_path"], place)
    except ToolError as error:
        return CallFacts(cwd=str(place.cwd), arguments_error=str(error))
    return CallFacts(cwd=str(place.cwd), read_only=True, paths=(path_fact(path, "read", place.root),))


def _read(call: ToolCall, stop: threading.Event) -> ToolOutput:
    path = resolve_file(call.arguments["file_path"], call.place)
    if [fact.path for fact in call.facts.paths] != [str(path)]:
        fresh = _facts(call.arguments, call.place)
        raise NeedsDecision(fresh, f"{call.arguments['file_path']!r} now leads to {str(path)!r}")
    try:
        with opened(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
            return _shown(path, file, call.arguments, stop)
    except FileNotFoundError:
        raise ToolError(f"{str(path)!r} does not exist") from None


def _shown(path: Path, file: BinaryIO, arguments: dict[str, Any], stop: threading.Event) -> ToolOutput:
    start, size = file.read(8192), os.fstat(file.fileno()).st_size
    file.seek(0)
    image = _image_type(start)
    if image and size <= IMAGE_CAP_BYTES:
        data = base64.b64encode(file.read(IMAGE_CAP_BYTES)).decode()
        block = DataBlock(source=Base64Source(data=data, media_type=image), name=path.name)
        return ToolOutput((TextBlock(text=f"{path.name!r}: {image}, {size} bytes"), block))
    binary = _binary_kind(start, image)
    if binary:
        return ToolOutput(f"{str(path)!r} is {binary} of {size} bytes; its content is not shown", failed=True)
    return ToolOutput(_numbered(path, file, arguments.get("offset", 1), arguments.get("limit", LINES_CAP), stop))


def _image_type(start: bytes) -> str:
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


def _numbered(path: Path, file: BinaryIO, offset: int, limit: int, stop: threading.Event) -> str:
    lines = _lines(file, stop)
    skipped = sum(1 for _ in islice(lines, offset - 1))
    shown, size, replaced = [], 0, False
    for number, line in enumerate(islice(lines, limit), offset):
        text = line.decode(errors="replace")
        replaced = replaced or "�" in text
        shown.append(f"{number:>6}\t{_cut(text.removeprefix(chr(0xFEFF)) if number == 1 else text)}")
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


def _lines(file: BinaryIO, stop: threading.Event) -> Iterator[bytes]:
    """The lines without their endings; of one that is too long, a few bytes more than are shown."""
    give_up = time.monotonic() + SEARCH_SECONDS
    while line := file.readline(_LINE_CAP_BYTES + 8):
        piece = line
        while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
            _look_up(stop, give_up)
        _look_up(stop, give_up)
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _look_up(stop: threading.Event, give_up: float) -> None:
    if stop.is_set() or time.monotonic() > give_up:
        raise ToolError(f"the lines were not found within {SEARCH_SECONDS:.0f} s; use Grep, or sed in Bash")


def _cut(text: str) -> str:
    shown = text.replace("\0", "�")
    return shown if len(shown) <= LINE_CAP else f"{shown[:LINE_CAP]}… [line cut]"
