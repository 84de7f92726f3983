"""Any state store with its sessions encrypted: ids, position and times stay as they are, all else is an envelope."""

import base64
from collections.abc import Callable
from typing import Any

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.stores.keys.keyring import Keyring, KeysUnavailable, NoKey, disclosed, enclosed
from longhaul.stores.state.store import (
    NO_AGENT,
    DamagedRecord,
    SessionRecord,
    SessionRow,
    StateStore,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    encode_record,
    no_such_session,
    read,
    slot_of,
    with_state,
)

FIELD = "encrypted"
TRIES = 20
WHERE = "the state store"


class UnreadableRecord(DamagedRecord):
    """A session that was encrypted, and can't be decrypted any more; the sentence says why."""

    def __init__(self, name: str, why: str) -> None:
        StoreError.__init__(self, f"{WHERE}: what is stored under {name!r} can't be read: {why}")


class EncryptedStore(StateStore):
    """Of a process that works for sessions. What belongs to a user, as rules do, is written as it is."""

    def __init__(self, inside: StateStore, keys: Keyring | None, whose: Callable[[], str]) -> None:
        """`whose`: the owner of the key of the session that is worked for. Without keys sessions are written as they
        are, and what was encrypted is refused."""
        self._inside, self._keys, self._whose = inside, keys, whose
        self.single_host = bool(getattr(inside, "single_host", False))

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        record = await self._inside.get_session(user_id, agent_id, session_id)
        if record is not None and record.deleted_at and self._keys is not None:
            self._keys.look_again(self._whose())
        return None if record is None else await decrypted_record(self._keys, self._whose, record)

    async def upsert_session(self, record: SessionRecord) -> None:
        await self._inside.upsert_session(await self._encrypted(record))

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        return await self._inside.save_checkpoint(await self._encrypted(record))

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        return await self._inside.replace_session(await self._encrypted(record), expected)

    async def update_session_state(
        self, user_id: str | None, agent_id: str, session_id: str, state: AgentState
    ) -> None:
        for _ in range(TRIES):
            record = await self.get_session(user_id, agent_id, session_id)
            if record is None:
                raise no_such_session(user_id, agent_id, session_id)
            if await self.replace_session(with_state(record, state), record.position()):
                return
        raise StoreBusy(f"{WHERE}: {session_id!r} was written by others {TRIES} times meanwhile")

    async def list_sessions(self, user_id: str | None, agent_id: str | None = None) -> list[SessionRow]:
        return await self._inside.list_sessions(user_id, agent_id)

    async def delete_session(self, user_id: str | None, agent_id: str, session_id: str) -> bool:
        return await self._inside.delete_session(user_id, agent_id, session_id)

    async def close(self) -> None:
        await self._inside.close()

    async def _encrypted(self, record: SessionRecord) -> SessionRecord:
        if self._keys is None or record.agent_id == NO_AGENT:
            return record
        try:
            envelope = await enclosed(self._keys, self._whose(), encode_record(record).encode())
        except KeysUnavailable as error:
            raise StoreUnavailable(str(error)) from error
        except NoKey as error:
            raise UnreadableRecord(slot_of(record).name, str(error)) from error
        nothing = AgentState(session_id=record.session_id, user_id=record.user_id, agent=record.agent_id)
        told: dict[str, Any] = {name: getattr(record, name) for name in ("incarnation", "seq", "closed", "run_id")}
        told |= {"session_id": record.session_id, "user_id": record.user_id, "agent_id": record.agent_id}
        told[FIELD] = base64.b64encode(envelope).decode("ascii")
        return SessionRecord(**told, state=nothing)


async def decrypted_record(keys: Keyring | None, whose: Callable[[], str], record: SessionRecord) -> SessionRecord:
    """The record that was encrypted; any other as it is. Raises UnreadableRecord, StoreUnavailable, and what `read`
    raises."""
    told = (record.model_extra or {}).get(FIELD)
    if told is None:
        return record
    slot = slot_of(record)
    try:
        body = await disclosed(keys, whose(), base64.b64decode(str(told)))
    except KeysUnavailable as error:
        raise StoreUnavailable(str(error)) from error
    except (NoKey, ValueError) as error:
        raise UnreadableRecord(slot.name, str(error)) from error
    return read(body, slot, WHERE).model_copy(update={"updated_at": record.updated_at})
