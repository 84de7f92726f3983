"""Spells messages and results where they are kept: one line of JSON each, attachments by reference.

A line is the message as `Msg` reads it, with one more field at its end: `offloaded_as`, the key by which a repeated
attempt knows it again.

`LocalWorkspace`: offloaded content as files, in the seed's layout.

    {workdir}/sessions/{session_id}/context.jsonl           messages, one line of JSON each; from 4 MB on they go into
                                                            context(1).jsonl, and so on
    {workdir}/sessions/{session_id}/tool_result-{id}.txt    a whole output; `(1)` … when another one has the name
    {workdir}/data/{sha256}.{ext}                           attachments, each content once
    {workdir}/skills/                                       left to skills

Ids become names by `safe_name`. Nothing is ever half there: see `folders`.

The end of what a session has offloaded. Attachments stay, for they belong to all sessions of their owner; and what an
offloader of the operator's own has kept, it alone can find.
"""

import asyncio
import base64
import binascii
import hashlib
import json
import mimetypes
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.conversation.messages import (
    Base64Source,
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ToolResultBlock,
    URLSource,
    message_digest,
)
from longhaul.stores.names import owner_name, readable_folders, safe_name, workdir_of
from longhaul.stores.offload.shared_folders import exists, holds, locked, opened_folder, own_file, publish

KeepData = Callable[[str, bytes], str]
"""Keeps bytes under a name of the form `{sha256}.{ext}`, and says where."""

_KEY = re.compile(rb',"offloaded_as":"([A-Za-z0-9_-]{43})"}\n\Z')
_KEY_BYTES = len(b',"offloaded_as":""}\n') + 43
_TYPES = mimetypes.MimeTypes()
"""Without the machine's own tables: two workers must find the same ending."""
_BREAKS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}
"""Line breaks for some readers, and plain characters in JSON."""


@dataclass(frozen=True, slots=True)
class Line:
    key: str
    """43 characters: of the batch, what the model saw of the message, and how many such came before it in the batch."""
    data: bytes
    """JSON in UTF-8, with its line break."""


def batch_of(msgs: Sequence[Msg], batch: str) -> str:
    """`batch`, or a name computed from exactly these messages, by which a repeated call is recognized."""
    return batch or digest_of([message_digest(message) for message in msgs])


def lines_of(msgs: Sequence[Msg], batch: str, keep: KeepData) -> list[Line]:
    """A line for each message. `keep` is called with each attachment."""
    seen: Counter[str] = Counter()
    lines = []
    for message in msgs:
        digest = message_digest(message)
        key = digest_of([batch, digest, seen[digest]])
        seen[digest] += 1
        plain = message.model_copy(update={"content": tuple(_light(block, keep) for block in message.content)})
        text = json.dumps(plain.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":")).translate(_BREAKS)
        # A lone surrogate becomes the escape that JSON has for it.
        lines.append(Line(key, f'{text[:-1]},"offloaded_as":"{key}"}}\n'.encode("utf-8", "backslashreplace")))
    return lines


def key_of(line: bytes) -> str | None:
    """The key of a complete line. None: the line is cut off, or not Longhaul's."""
    found = _KEY.search(line[-_KEY_BYTES:])
    return found[1].decode("ascii") if found else None


def result_text(result: ToolResultBlock, keep: KeepData) -> str:
    """The whole output as text. For an attachment, a line says where it is."""
    if isinstance(result.output, str):
        return result.output
    return "\n".join(
        part.text if isinstance(part, TextBlock) else _described(_without_data(part, keep)) for part in result.output
    )


def _light(block: ContentBlock, keep: KeepData) -> ContentBlock:
    match block:
        case DataBlock():
            return _without_data(block, keep)
        case HintBlock() if not isinstance(block.hint, str):
            return block.model_copy(update={"hint": _parts(block.hint, keep)})
        case ToolResultBlock() if not isinstance(block.output, str):
            return block.model_copy(update={"output": _parts(block.output, keep)})
        case _:
            return block


def _parts(parts: tuple[TextBlock | DataBlock, ...], keep: KeepData) -> tuple[TextBlock | DataBlock, ...]:
    return tuple(_without_data(part, keep) if isinstance(part, DataBlock) else part for part in parts)


def _without_data(block: DataBlock, keep: KeepData) -> DataBlock:
    """With an address in place of the bytes: a plain path where it is a file, so that Read takes it as it stands."""
    if not isinstance(block.source, Base64Source):
        return block
    try:
        data = base64.b64decode(block.source.data, validate=True)
    except (binascii.Error, ValueError):
        data = block.source.data.encode("utf-8", "surrogatepass")  # no base64: kept as it came
    media_type = block.source.media_type
    plain = media_type.partition(";")[0].strip().lower()
    known = (_TYPES.guess_extension(plain) or "").removeprefix(".") or plain.rpartition("/")[2]
    ending = known if re.fullmatch("[a-z0-9]{1,8}", known) else "bin"
    where = keep(f"{hashlib.sha256(data).hexdigest()}.{ending}", data)
    return block.model_copy(update={"source": URLSource(url=where, media_type=media_type)})


def _described(block: DataBlock) -> str:
    named = f" {block.name!r}" if block.name else ""
    return f"[{block.source.media_type}{named}: {block.source.url if isinstance(block.source, URLSource) else ''}]"


PART_BYTES = 4_000_000
"""Of a file of messages, as each compression writes the newest one again: more go into the next file."""
MOST_CLASHES = 10_000
LOCK_SECONDS = 10.0


class LocalWorkspace:
    """An `Offloader` that writes to the local file system, or to one that hosts share. References are absolute
    paths."""

    def __init__(
        self, workdir: str | os.PathLike[str], lock_seconds: float = LOCK_SECONDS, part_bytes: int = PART_BYTES
    ) -> None:
        """An attempt that waits longer than `lock_seconds` for another attempt raises TimeoutError."""
        # Links that are there now are the operator's; what becomes a link below this path later is refused.
        self.workdir = Path(os.path.realpath(workdir))
        self._lock_seconds = lock_seconds
        self._part_bytes = part_bytes

    async def initialize(self) -> None:
        """Create the folders. Raises OSError. Writing creates them too, so call this only to fail early."""
        await asyncio.to_thread(self._make_folders)

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        """Append the messages, each once: a message with the same `batch` and content is not written again. Without
        `batch`, a call with exactly the same messages counts as the same call. Raises OSError."""
        batch = batch_of(msgs, str(kwargs.get("batch") or ""))
        return await asyncio.to_thread(self._append, session_id, tuple(msgs), batch)

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        """Write the whole output as text. The same output again gives the same file. Raises OSError."""
        del kwargs
        return await asyncio.to_thread(self._put_result, session_id, tool_result)

    def _make_folders(self) -> None:
        for name in ("sessions", "data", "skills"):
            with opened_folder(self.workdir / name):
                pass

    def _append(self, session_id: str, msgs: tuple[Msg, ...], batch: str) -> str:
        session, _ = readable_folders(self.workdir, session_id)
        lines = lines_of(msgs, batch, self._keep_data)
        with opened_folder(session) as folder, locked(folder, self._lock_seconds):
            found, newest, size = _written(folder)
            known = [found[line.key] for line in lines if line.key in found]
            new = b"".join(
                line.data for line in list({line.key: line for line in lines}.values()) if line.key not in found
            )
            if not new:
                return str(session / context_name(known[0] if known else newest))
            part = newest + 1 if size and size + len(new) > self._part_bytes else newest
            with own_file(folder, context_name(part)) as before:
                publish(folder, context_name(part), before, size if part == newest else 0, new)
            return str(session / context_name(part))

    def _put_result(self, session_id: str, result: ToolResultBlock) -> str:
        session, _ = readable_folders(self.workdir, session_id)
        data = result_text(result, self._keep_data).encode("utf-8", "replace")
        with opened_folder(session) as folder, locked(folder, self._lock_seconds):
            for number in range(MOST_CLASHES):
                name = f"tool_result-{safe_name(result.id)}{f'({number})' if number else ''}.txt"
                if not exists(folder, name):
                    publish(folder, name, None, 0, data)
                    return str(session / name)
                if holds(folder, name, data):
                    return str(session / name)
        raise FileExistsError(f"{MOST_CLASHES} results are named {safe_name(result.id)!r} in {str(session)!r}")

    def _keep_data(self, name: str, data: bytes) -> str:
        with opened_folder(self.workdir / "data") as folder:
            if not holds(folder, name, data):
                with locked(folder, self._lock_seconds):
                    publish(folder, name, None, 0, data)
        return str(self.workdir / "data" / name)


def context_name(part: int) -> str:
    return f"context({part}).jsonl" if part else "context.jsonl"


def _written(folder: int) -> tuple[dict[str, int], int, int]:
    """The keys of all whole lines with their parts, the newest part, and how many bytes its whole lines have: what
    comes after them is torn."""
    found: dict[str, int] = {}
    newest = whole_bytes = 0
    for part in range(MOST_CLASHES):
        with own_file(folder, context_name(part)) as file:
            if file is None:
                break
            newest, whole_bytes = part, 0
            for line in takewhile(lambda line: line.endswith(b"\n"), file):
                whole_bytes += len(line)
                if key := key_of(line):
                    found.setdefault(key, part)
    return found, newest, whole_bytes


async def forget_files(data_dir: Path, agent: str, user_id: str | None, session_id: str) -> int:
    """Delete the session's folder, and return how many files that were. Raises OSError."""
    return await asyncio.to_thread(_removed, data_dir, owner_name(agent, user_id), session_id)


def _removed(data_dir: Path, owner: str, session_id: str) -> int:
    folder = readable_folders(workdir_of(data_dir.resolve(), owner), session_id)[0]
    # A link on the way leads to files of somebody else.
    if not folder.is_dir() or folder.resolve() != folder:
        return 0
    count = sum(1 for path in folder.iterdir() if not path.name.startswith("."))
    shutil.rmtree(folder)
    return count
