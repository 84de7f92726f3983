"""`LocalWorkspace`: offloaded content as files, in the seed's layout.

    {workdir}/sessions/{session_id}/context.jsonl           messages, one line of JSON each; from 4 MB on they go into
                                                            context(1).jsonl, and so on
    {workdir}/sessions/{session_id}/tool_result-{id}.txt    a whole output; `(1)` … when another one has the name
    {workdir}/data/{sha256}.{ext}                           attachments, each content once
    {workdir}/skills/                                       left to skills

Ids become names by `safe_name`. Nothing is ever half there: see `folders`.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.stores.names import readable_folders, safe_name
from longhaul.stores.offload.message_lines import Line, batch_of, key_of, lines_of, result_text
from longhaul.stores.offload.shared_folders import exists, holds, locked, opened_folder, own_file, publish

PART_BYTES = 4_000_000
"""Of a file of messages, as each compression writes the newest one anew: more go into the next file."""
MOST_CLASHES = 10_000
LOCK_SECONDS = 10.0


class LocalWorkspace:
    """An `Offloader` onto the local file system, or one that hosts share. References are absolute paths."""

    def __init__(
        self, workdir: str | os.PathLike[str], lock_seconds: float = LOCK_SECONDS, part_bytes: int = PART_BYTES
    ) -> None:
        """An attempt that waits longer than `lock_seconds` for another one gives up, with a TimeoutError."""
        # Links that are there now are the operator's; what becomes a link below this path later is refused.
        self.workdir = Path(os.path.realpath(workdir))
        self._lock_seconds = lock_seconds
        self._part_bytes = part_bytes

    async def initialize(self) -> None:
        """Make the folders. Raises OSError. Writing makes them too, so this is for whoever wants to know early."""
        await asyncio.to_thread(self._make_folders)

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        """Append the messages, each once: one of the same `batch` and content that stands there is not written again.
        Without `batch`, a call with exactly the same messages is taken for the same call. Raises OSError."""
        batch = batch_of(msgs, str(kwargs.get("batch") or ""))
        return await asyncio.to_thread(self._append, session_id, tuple(msgs), batch)

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        """Write the whole output as text; the same output again is the same file. Raises OSError."""
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
            new = b"".join(line.data for line in _without_twins(lines) if line.key not in found)
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
            for line in _whole_lines(file):
                whole_bytes += len(line)
                if key := key_of(line):
                    found.setdefault(key, part)
    return found, newest, whole_bytes


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    return takewhile(lambda line: line.endswith(b"\n"), file)


def _without_twins(lines: list[Line]) -> list[Line]:
    return list({line.key: line for line in lines}.values())
