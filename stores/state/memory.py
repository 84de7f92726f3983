"""Sessions in this process's memory, for tests and trials: they end with it."""

from longhaul.agent.fold.agent_state import AgentState
from longhaul.stores.state.record_format import newest_first, read, row_of, slot_of, spelt, stamped, with_state
from longhaul.stores.state.session_names import Slot
from longhaul.stores.state.store import SessionRecord, SessionRow, StateStore, no_such_session

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
        record = stamped(record)
        self._bodies[slot_of(record)] = (row_of(record), record.position(), spelt(record))

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
