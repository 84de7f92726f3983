"""Sessions as JSON files, for one host: `<root>/<user>/<agent>/<session>.json`, replaced whole or not at all."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from longhaul.agent.fold.agent_state import AgentState
from longhaul.stores.state.atomic import locked, remove, replace
from longhaul.stores.state.record_format import head_of, newest_first, read, slot_of, spelt, stamped, with_state
from longhaul.stores.state.session_names import Slot, file_name
from longhaul.stores.state.store import (
    DamagedRecord,
    SessionRecord,
    SessionRow,
    StateStore,
    StoreUnavailable,
    no_such_session,
)

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
        await self._run(lambda: self._upsert(stamped(record)))

    async def update_session_state(
        self, user_id: str | None, agent_id: str, session_id: str, state: AgentState
    ) -> None:
        await self._run(lambda: self._update(Slot(user_id, agent_id, session_id), state))

    async def list_sessions(self, user_id: str | None, agent_id: str | None = None) -> list[SessionRow]:
        return await self._run(lambda: newest_first(list(self._rows(user_id, agent_id))))

    async def delete_session(self, user_id: str | None, agent_id: str, session_id: str) -> bool:
        return await self._run(lambda: self._delete(Slot(user_id, agent_id, session_id)))

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        return await self._run(lambda: self._save(stamped(record)))

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        return await self._run(lambda: self._replace(stamped(record), expected))

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
            replace(self._path(slot), spelt(record))

    def _update(self, slot: Slot, state: AgentState) -> None:
        with locked(self._lock(slot), LOCK_SECONDS):
            record = self._read(slot)
            if record is None:
                raise no_such_session(slot.user_id, slot.agent_id, slot.session_id)
            replace(self._path(slot), spelt(stamped(with_state(record, state))))

    def _save(self, record: SessionRecord) -> bool:
        slot = slot_of(record)
        path = self._path(slot)
        with locked(self._lock(slot), LOCK_SECONDS):
            stored = self._stored_position(path, slot)
            if stored is not None and (*record.position(), record.closed) < stored:
                return record.position() == stored[:2]
            replace(path, spelt(record))
            return True

    def _replace(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        slot = slot_of(record)
        path = self._path(slot)
        with locked(self._lock(slot), LOCK_SECONDS):
            stored = self._stored_position(path, slot)
            if (stored[:2] if stored else None) != expected:
                return False
            replace(path, spelt(record))
            return True

    def _stored_position(self, path: Path, slot: Slot) -> tuple[int, int, bool] | None:
        try:
            head = _head(path)
            return int(head.get("generation", 0)), int(head.get("seq", 0)), bool(head.get("closed", False))
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
                log.warning("%s: %s can't be read and is left out of the list", self._where, path)
                continue
            if self._path(Slot(row.user_id, row.agent_id, row.session_id)) == path:
                yield row
            else:
                log.warning("%s: %s lies where another session belongs; left out of the list", self._where, path)


def _head(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return head_of(file.readline().decode())
