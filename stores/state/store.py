"""A state store keeps sessions under (user, agent, session); its errors say what can go wrong with that.

The store is a mirror. A running session is the truth about itself and writes here when it has come to rest, so that
others can read it and a later run can go on from it.
"""

from types import TracebackType
from typing import Protocol, Self

from pydantic import BaseModel, ConfigDict, Field

from longhaul.agent.fold.agent_state import AgentState
from longhaul.agent.life.migrations import CURRENT
from longhaul.agent.plain.errors import BadSetup, Damaged, LonghaulError, Unavailable
from longhaul.agent.plain.values import OpenValue


class SessionRecord(BaseModel):
    """One stored session. Fields of a later version are kept as they are when this one writes the record back."""

    model_config = ConfigDict(extra="allow")

    version: int = CURRENT
    session_id: str
    user_id: str | None = None
    """None: anonymous, which is another than a user of any name."""
    agent_id: str
    generation: int = Field(default=0, ge=0, lt=2**53)
    """Lives of the session; a reopened session writes with a higher one."""
    seq: int = Field(default=0, ge=0, lt=2**53)
    """Number of the last entry that the state contains."""
    closed: bool = False
    deleted_at: str = ""
    """ISO 8601 with zone. Not empty: the session was deleted, and this is no session but the mark of that, which holds
    ids and times alone. What was there before it may not come back: whatever is written of it late is older."""
    deleting: bool = False
    """Of a mark: the rest of the session is being deleted, and a new one has to wait for that."""
    run_id: str = ""
    updated_at: str = ""
    """ISO 8601 with zone, set by the store when it writes."""
    segments: list[dict[str, object]] = Field(default_factory=list[dict[str, object]])
    """Where older entries are kept."""
    state: AgentState

    def position(self) -> tuple[int, int]:
        """Later positions replace earlier ones, never the other way round."""
        return self.generation, self.seq


class SessionRow(OpenValue):
    """One line of a listing."""

    session_id: str
    user_id: str | None = None
    agent_id: str
    updated_at: str = ""
    closed: bool = False
    deleted_at: str = ""
    """Not empty: there is no such session any more."""


class StoreError(LonghaulError, RuntimeError):
    """Something is wrong with a store; the sentence names it, without passwords."""


class BadStoreSetting(BadSetup, ValueError):
    """A setting that names no store; the sentence says what may stand there, without passwords."""


class StoreUnavailable(StoreError, Unavailable):
    """The store does not answer. Nothing is known to be wrong with what it holds: try again later."""


class DamagedRecord(StoreError, Damaged):
    """What lies there is no session of ours. Nothing was changed; trying again does not help."""

    def __init__(self, where: str, key: str, wrong: str) -> None:
        super().__init__(
            f"{where}: what is stored under {key!r} can't be used: {wrong}. Restore it from a backup, or delete the "
            "session there"
        )


class NewerStored(StoreError, Damaged):
    """A newer Longhaul has written the record; the sentence says what to do."""


class StoreBusy(StoreUnavailable):
    """Others wrote the same session again and again while this one tried to."""


class CantReplace(StoreError, BadSetup):
    """A store of somebody's own that does not compare and write in one step."""


class StateStore(Protocol):
    """The protocol of all stores. Methods raise StoreUnavailable within seconds and never hang.

    A class of one's own may inherit it and then has `async with`. Set `single_host = True` there when other hosts
    can't read what it writes.
    """

    single_host: bool = False

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        """The session, or None when there is none. Raises DamagedRecord rather than return what might be wrong."""
        ...

    async def upsert_session(self, record: SessionRecord) -> None:
        """Write it whatever was there before; how a person repairs a store. Sessions use `save_checkpoint`."""
        ...

    async def update_session_state(
        self, user_id: str | None, agent_id: str, session_id: str, state: AgentState
    ) -> None:
        """Put another state into a stored session and change nothing else. Raises KeyError when there is none."""
        ...

    async def list_sessions(self, user_id: str | None, agent_id: str | None = None) -> list[SessionRow]:
        """One user's sessions, last written first; with `agent_id`, only those of that agent. Reads no states."""
        ...

    async def delete_session(self, user_id: str | None, agent_id: str, session_id: str) -> bool:
        """True when there was one."""
        ...

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        """Write unless something later is stored, in one step for all writers.

        False: (generation, seq) is older than what is stored, and nothing was changed. The same position again is
        True; of two records of one position a closed one stays.
        """
        ...

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        """Write if what is stored has exactly the position `expected`, None meaning that nothing is; one step for all
        writers. False: somebody else was quicker, and nothing was changed.

        Users' rules are changed by it; a store of one's own that can't do it keeps sessions, but takes no such change.
        """
        raise CantReplace(f"{type(self).__name__} has no `replace_session`, so users' rules can't be changed in it")

    async def close(self) -> None:
        """Let go of connections; the store is not used afterwards."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def no_such_session(user_id: str | None, agent_id: str, session_id: str) -> KeyError:
    """What `update_session_state` raises."""
    user = "the anonymous user" if user_id is None else f"user {user_id!r}"
    return KeyError(f"{user} has no stored session {session_id!r} of agent {agent_id!r}; create it by upsert_session")
