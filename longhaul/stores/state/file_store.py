"""Sessions as JSON files of one host, `<root>/<user>/<agent>/<session>.json`, and in memory for tests.

A file is replaced whole: after a kill or a power cut there is the old one or the new one. These functions block.
"""

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.stores.state.store import (
    DamagedRecord,
    SessionRecord,
    SessionRow,
    Slot,
    StateStore,
    StoreUnavailable,
    encode_record,
    file_name,
    head_of,
    newest_first,
    no_such_session,
    read,
    row_of,
    slot_of,
    stamp_record,
    with_state,
)

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Alone among all processes and threads that lock this path. Raises StoreUnavailable after `seconds`."""
    descriptor = opened(path, os.O_RDWR)
    try:
        _take(descriptor, path, time.monotonic() + seconds)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, deadline: float) -> None:
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"another process has the lock {path}; is one of them stopped?") from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        else:
            return


def replace(path: Path, text: str) -> None:
    """Put `text` at `path`. Only under the lock of that path: the temporary file has a fixed name, so
    that one which a kill left behind is overwritten by the next writer."""
    temporary, data = path.with_suffix(".tmp"), text.encode()
    write_whole(opened(temporary, os.O_WRONLY | os.O_TRUNC), data)
    temporary.replace(path)
    sync_folder(path.parent)


def opened(path: Path, how: int) -> int:
    """A file for nobody but this user, made with its folders where it is not there; never by a link."""
    how |= os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, how, 0o600)
    except FileNotFoundError:
        make_folders(path.parent)
        return os.open(path, how, 0o600)


def write_whole(descriptor: int, data: bytes, *, fsync: bool = True) -> None:
    """Write all of it, and close. In few system calls: each lets other threads have the interpreter, and waits for it
    again."""
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        if fsync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> bool:
    """True when there was a file."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    sync_folder(path.parent)
    return True


def make_folders(folder: Path) -> None:
    """Folders down to `folder`, each new one written into the one above it before anything lies in it."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


Answer = TypeVar("Answer")

LOCKS = ".locks"
LOCK_SECONDS = 10.0

log = logging.getLogger(__name__)


class FileStore(StateStore):
    """Processes of one host may share a root: writers of one session take turns by a file lock."""

    single_host = True

    def __init__(self, root: Path) -> None:
        self._root = root
        self._where = f"the file store in {root}"

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        return await self._run(lambda: self._read(Slot(user_id, agent_id, session_id)))

    async def upsert_session(self, record: SessionRecord) -> None:
        await self._run(lambda: self._upsert(stamp_record(record)))

    async def update_session_state(
        self, user_id: str | None, agent_id: str, session_id: str, state: AgentState
    ) -> None:
        await self._run(lambda: self._update(Slot(user_id, agent_id, session_id), state))

    async def list_sessions(self, user_id: str | None, agent_id: str | None = None) -> list[SessionRow]:
        return await self._run(lambda: newest_first(list(self._rows(user_id, agent_id))))

    async def delete_session(self, user_id: str | None, agent_id: str, session_id: str) -> bool:
        return await self._run(lambda: self._delete(Slot(user_id, agent_id, session_id)))

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        return await self._run(lambda: self._save(stamp_record(record)))

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        return await self._run(lambda: self._replace(stamp_record(record), expected))

    async def close(self) -> None:
        """Nothing is held open between calls."""

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise StoreUnavailable(f"{self._where}: {error.strerror or error}") from error

    def _path(self, slot: Slot) -> Path:
        return self._root / file_name(slot.user_id) / file_name(slot.agent_id) / f"{file_name(slot.session_id)}.json"

    def _lock(self, slot: Slot) -> Path:
        # A fixed number of lock files, never deleted: a lock on a file that somebody unlinks guards nothing.
        return self._root / LOCKS / slot.digest[:2]

    def _read(self, slot: Slot) -> SessionRecord | None:
        try:
            return read(self._path(slot).read_bytes(), slot, self._where)
        except FileNotFoundError:
            return None

    def _upsert(self, record: SessionRecord) -> None:
        slot = slot_of(record)
        with locked(self._lock(slot), LOCK_SECONDS):
            replace(self._path(slot), encode_record(record))

    def _update(self, slot: Slot, state: AgentState) -> None:
        with locked(self._lock(slot), LOCK_SECONDS):
            record = self._read(slot)
            if record is None:
                raise no_such_session(slot.user_id, slot.agent_id, slot.session_id)
            replace(self._path(slot), encode_record(stamp_record(with_state(record, state))))

    def _save(self, record: SessionRecord) -> bool:
        slot = slot_of(record)
        path = self._path(slot)
        with locked(self._lock(slot), LOCK_SECONDS):
            stored = self._stored_position(path, slot)
            if stored is not None and (*record.position(), record.closed) < stored:
                return record.position() == stored[:2]
            replace(path, encode_record(record))
            return True

    def _replace(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        slot = slot_of(record)
        path = self._path(slot)
        with locked(self._lock(slot), LOCK_SECONDS):
            stored = self._stored_position(path, slot)
            if (stored[:2] if stored else None) != expected:
                return False
            replace(path, encode_record(record))
            return True

    def _stored_position(self, path: Path, slot: Slot) -> tuple[int, int, bool] | None:
        try:
            head = _head(path)
            return int(head.get("incarnation", 0)), int(head.get("seq", 0)), bool(head.get("closed", False))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise DamagedRecord(self._where, slot.name, f"its first line can't be read ({error})") from error

    def _delete(self, slot: Slot) -> bool:
        with locked(self._lock(slot), LOCK_SECONDS):
            return remove(self._path(slot))

    def _rows(self, user_id: str | None, agent_id: str | None) -> Iterator[SessionRow]:
        agents = "*" if agent_id is None else file_name(agent_id)
        for path in (self._root / file_name(user_id)).glob(f"{agents}/*.json"):
            try:
                row = SessionRow.model_validate(_head(path))
            except FileNotFoundError:
                continue  # deleted meanwhile
            except ValueError:
                log.warning("%s: %s cannot be read and is left out of the list", self._where, path)
                continue
            if self._path(Slot(row.user_id, row.agent_id, row.session_id)) == path:
                yield row
            else:
                log.warning("%s: %s is in the place of another session; left out of the list", self._where, path)


def _head(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return head_of(file.readline().decode())


WHERE = "the memory store"


class MemoryStore(StateStore):
    """Holds spelt bodies, never the objects themselves: what is read can be changed without changing the store."""

    single_host = True

    def __init__(self) -> None:
        self._bodies: dict[Slot, tuple[SessionRow, tuple[int, int], str]] = {}

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        slot = Slot(user_id, agent_id, session_id)
        kept = self._bodies.get(slot)
        return read(kept[2], slot, WHERE) if kept else None

    async def upsert_session(self, record: SessionRecord) -> None:
        record = stamp_record(record)
        self._bodies[slot_of(record)] = (row_of(record), record.position(), encode_record(record))

    async def update_session_state(
        self, user_id: str | None, agent_id: str, session_id: str, state: AgentState
    ) -> None:
        record = await self.get_session(user_id, agent_id, session_id)
        if record is None:
            raise no_such_session(user_id, agent_id, session_id)
        await self.upsert_session(with_state(record, state))

    async def list_sessions(self, user_id: str | None, agent_id: str | None = None) -> list[SessionRow]:
        mine = [row for slot, (row, _, _) in self._bodies.items() if slot.user_id == user_id]
        return newest_first([row for row in mine if agent_id in (None, row.agent_id)])

    async def delete_session(self, user_id: str | None, agent_id: str, session_id: str) -> bool:
        return self._bodies.pop(Slot(user_id, agent_id, session_id), None) is not None

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        kept = self._bodies.get(slot_of(record))
        if kept and (*record.position(), record.closed) < (*kept[1], kept[0].closed):
            return record.position() == kept[1]
        await self.upsert_session(record)
        return True

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        kept = self._bodies.get(slot_of(record))
        if (kept[1] if kept else None) != expected:
            return False
        await self.upsert_session(record)
        return True

    async def close(self) -> None:
        """The sessions stay, for whoever has the same object."""
