"""A state store keeps sessions under (user, agent, session); its errors say what can go wrong with that.

The store is a mirror. A running session is the truth about itself and writes here when it has come to rest, so that
others can read it and a later run can go on from it.

Names the place of a session in a store: names that no two sessions share, whatever characters their ids are made
of.

The format of a record in a store, and the checks before it is believed again.

A body is one JSON object in two parts: all that is small on the first line, segments, state and what is carried on the
second. So a listing reads one line of a file of megabytes.

Reads what a stored record has beside the state: all that it needs to go on, or answers with when it is gone.

The rules that hold for all sessions of a user: kept in the state store, under the user, where no session can lie.

Who changed them is kept beside them.

The mark of a store: chosen by chance by the first worker that opens it, and kept in it beside the sessions. Equal
paths of two hosts are two stores, and one server has many addresses; the mark tells.
"""

import asyncio
import hashlib
import json
import random
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from longhaul.agent.incarnation.continued_state import Carried
from longhaul.agent.incarnation.imported_state import CURRENT, NewerRecord, NoRecord, known_version
from longhaul.agent.permission.rulebook import changed, check_room, check_rules, check_tools_of, id_of, stamped
from longhaul.agent.plain.errors import BadSetup, Damaged, LonghaulError, Unavailable
from longhaul.agent.plain.ids import workflow_id
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.permission import PermissionContext, PermissionRule, Scope


class SessionRecord(BaseModel):
    """One stored session. Fields of a later version are kept as they are when this one writes the record back."""

    model_config = ConfigDict(extra="allow")

    version: int = CURRENT
    session_id: str
    user_id: str | None = None
    """None: a session without a user."""
    agent_id: str
    incarnation: int = Field(default=0, ge=0, lt=2**53)
    """Number of the session's incarnation. A reopened session writes with a higher number."""
    seq: int = Field(default=0, ge=0, lt=2**53)
    """Number of the last entry in the state."""
    closed: bool = False
    deleted_at: str = ""
    """ISO 8601 with zone. Not empty: the session was deleted, and this is no session but the mark of that, which holds
    ids and times alone. What was there before it may not come back: whatever is written of it late is older."""
    deleting: bool = False
    """Of a mark: the rest of the session is being deleted, and a new one has to wait for that."""
    run_id: str = ""
    updated_at: str = ""
    """ISO 8601 time with zone; the store sets it when it writes."""
    segments: list[dict[str, object]] = Field(default_factory=list[dict[str, object]])
    """Where older entries are stored."""
    state: AgentState

    def position(self) -> tuple[int, int]:
        """A record with a later position replaces one with an earlier position, never the reverse."""
        return self.incarnation, self.seq


class SessionRow(OpenValue):
    """One line of a listing."""

    session_id: str
    user_id: str | None = None
    agent_id: str
    updated_at: str = ""
    closed: bool = False
    deleted_at: str = ""
    """Not empty: the session was deleted."""


class StoreError(LonghaulError, RuntimeError):
    """Something is wrong with a store. The sentence names the store, without passwords."""


class BadStoreSetting(BadSetup, ValueError):
    """The setting names no store. The sentence says what is allowed, without passwords."""


class StoreUnavailable(StoreError, Unavailable):
    """The store does not answer. Nothing is known to be wrong with its data; try again later."""


class DamagedRecord(StoreError, Damaged):
    """The stored data is no session of Longhaul's. Nothing was changed; trying again does not help."""

    def __init__(self, where: str, key: str, wrong: str) -> None:
        super().__init__(
            f"{where}: what is stored under {key!r} can't be used: {wrong}. Restore it from a backup, or delete the "
            "session there"
        )


class NewerStored(StoreError, Damaged):
    """A newer Longhaul has written the record; the sentence says what to do."""


class StoreBusy(StoreUnavailable):
    """Other writers wrote the same session repeatedly while this writer tried to."""


class CantReplace(StoreError, BadSetup):
    """Your own store does not compare and write in one step."""


class StateStore(Protocol):
    """The protocol of all state stores. Methods raise StoreUnavailable within seconds and never hang.

    Your own class may inherit it, and then has `async with`. Set `single_host = True` in the class if other hosts can't
    read what it writes.
    """

    single_host: bool = False

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        """The stored session, or None. Raises DamagedRecord rather than return what might be wrong."""
        ...

    async def upsert_session(self, record: SessionRecord) -> None:
        """Write the record, whatever is stored; people repair a store with it. Sessions use `save_checkpoint`."""
        ...

    async def update_session_state(
        self, user_id: str | None, agent_id: str, session_id: str, state: AgentState
    ) -> None:
        """Replace the state of a stored session, and change nothing else. Raises KeyError if there is no such
        session."""
        ...

    async def list_sessions(self, user_id: str | None, agent_id: str | None = None) -> list[SessionRow]:
        """One user's sessions, last written first; with `agent_id`, only those of that agent. States are not read."""
        ...

    async def delete_session(self, user_id: str | None, agent_id: str, session_id: str) -> bool:
        """Delete a session. Returns True if there was one."""
        ...

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        """Write the record unless a later one is stored, in one step for all writers. False: the record's (incarnation,
        seq) is older, and nothing was changed. The same position again returns True. Of two records with the same
        position, a closed one stays."""
        ...

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        """Write the record if the stored position is exactly `expected`, in one step for all writers. None: nothing is
        stored. False: another writer was quicker, and nothing was changed. Changes of users' rules use it. Without it,
        your own store keeps sessions, but takes no changes of rules."""
        raise CantReplace(f"{type(self).__name__} has no `replace_session`, so users' rules can't be changed in it")

    async def close(self) -> None:
        """Close connections. The store is not used afterwards."""

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


ANONYMOUS = "~"
_ODD = re.compile(r"[^a-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Slot:
    """The ids that name one stored session."""

    user_id: str | None
    agent_id: str
    session_id: str

    @property
    def name(self) -> str:
        """At most 255 plain ASCII characters; the workflow's id, so that a key leads to its session."""
        return workflow_id(self.agent_id, self.user_id, self.session_id)

    @property
    def digest(self) -> str:
        """64 hexadecimal characters, for stores that fold upper and lower case or cut long keys."""
        return hashlib.sha256(self.name.encode("ascii")).hexdigest()

    @property
    def owner(self) -> str:
        return owner(self.user_id)


def owner(user_id: str | None) -> str:
    """64 hexadecimal characters for a user, `~` for the anonymous one."""
    return ANONYMOUS if user_id is None else digest_of(user_id)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_name(text: str | None) -> str:
    """A name for files and folders on any file system: how it starts for people, its digest for the difference.

    Lower case only, at most 73 characters, never `.`-led; `~` for None, which no text comes to.
    """
    if text is None:
        return ANONYMOUS
    slug = _ODD.sub("_", text[:40].lower())
    return f"{slug[:40]}-{digest_of(text)[:32]}"


_LARGE = {"segments", "state", "carried"}


def stamp_record(record: SessionRecord) -> SessionRecord:
    """The record as it is written now."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return record.model_copy(update={"updated_at": now, "version": CURRENT})


def slot_of(record: SessionRecord) -> Slot:
    return Slot(record.user_id, record.agent_id, record.session_id)


def encode_record(record: SessionRecord) -> str:
    """The body. Any text survives, half surrogate pairs too."""
    try:
        head = record.model_dump_json(exclude=_LARGE)
        tail = record.model_dump_json(include=_LARGE)
    except PydanticSerializationError:
        # Such text has no UTF-8, so it is written in ASCII escapes.
        head = json.dumps(record.model_dump(exclude=_LARGE))
        tail = json.dumps(record.model_dump(include=_LARGE))
    return f"{head[:-1]},\n{tail[1:]}\n"


def head_of(first_line: str) -> dict[str, Any]:
    """What the first line of a body says. Raises ValueError."""
    head = json.loads(first_line.rstrip().removesuffix(",") + "}")
    if not isinstance(head, dict):
        raise ValueError("it is no JSON object")
    return head


def read(body: str | bytes, slot: Slot, where: str) -> SessionRecord:
    """The record that a body holds, if its version is known here. Raises DamagedRecord, or NewerStored."""
    try:
        record = SessionRecord.model_validate(known_version(json.loads(body)))
    except NewerRecord as error:
        raise NewerStored(f"{where}: {slot.name!r}: {error}") from error
    except ValidationError as error:
        raise DamagedRecord(where, slot.name, _first_line(error)) from error
    except NoRecord as error:
        raise DamagedRecord(where, slot.name, str(error)) from error
    except (ValueError, RecursionError) as error:
        # Without the text around the place: a state holds what nobody may read in a log.
        raise DamagedRecord(where, slot.name, f"it is no JSON ({_short(error)})") from error
    if slot_of(record) != slot:
        raise DamagedRecord(where, slot.name, f"it is the session {slot_of(record).name!r}")
    return record


def with_state(record: SessionRecord, state: AgentState) -> SessionRecord:
    """Raises KeyError for the mark of a deletion."""
    if record.deleted_at:
        raise no_such_session(record.user_id, record.agent_id, record.session_id)
    return record.model_copy(update={"state": state})


def row_of(record: SessionRecord) -> SessionRow:
    return SessionRow.model_validate(record.model_dump(include=set(SessionRow.model_fields)))


def newest_first(rows: list[SessionRow]) -> list[SessionRow]:
    return sorted(rows, key=lambda row: row.updated_at, reverse=True)


def _short(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return type(error).__name__


def carried_of(record: SessionRecord) -> Carried | None:
    """What a later incarnation needs, with the record's own state; None when there is only that state, or not even
    that.

    Raises DamagedRecord.
    """
    told = extra(record, "carried")
    if told is None:
        return None
    try:
        state = record.state.model_dump(mode="json")
        keeping = {**told["session"]["keeping"], "segments": record.segments}
        session = {**told["session"], "state": state, "keeping": keeping}
        return Carried.model_validate({**told, "session": session})
    except (ValidationError, LookupError, TypeError) as error:
        raise DamagedRecord("the state store", record.session_id, f"carried: {_first_line(error)}") from error


def extra(record: SessionRecord, name: str) -> Any:
    """A field that only its writer knows; None when there is none."""
    return (record.model_extra or {}).get(name)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return type(error).__name__


NO_AGENT = ""
"""An agent's name has at least one character: what is kept under none is no session's."""
RULES = "rules"
KEPT_CHANGES = 200
SURELY_OVER_MS = 7 * 24 * 3_600_000
"""A rule makes room for others so long after its end: whoever changes rules may have a clock that is days ahead, and
must not take a rule away that still holds."""
TRIES = 50
"""Of many who change the rules of one user at the same instant, each try lets one through."""
PAUSE_SECONDS = 0.005


class RuleChange(OpenValue):
    """One change to a user's rules."""

    at: str
    by: str = sparse("")
    why: str = sparse("")
    added: tuple[PermissionRule, ...] = sparse(())
    revoked: tuple[PermissionRule, ...] = sparse(())


_CHANGES = TypeAdapter(list[RuleChange])


class UserRules:
    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def of(self, user_id: str) -> tuple[PermissionRule, ...]:
        """Raises StoreError."""
        record = await self._store.get_session(user_id, NO_AGENT, RULES)
        return _rules_of(record, user_id)

    async def changes_of(self, user_id: str) -> list[RuleChange]:
        """The newest KEPT_CHANGES, oldest first. Raises StoreError."""
        return _changes_of(await self._store.get_session(user_id, NO_AGENT, RULES))

    async def change(
        self, user_id: str, add: tuple[PermissionRule, ...], revoke: tuple[str, ...], *, by: str, why: str
    ) -> Sequence[str]:
        """Ids of the added ones. Raises BadRule, which changed nothing, and StoreError."""
        check_rules(add)
        check_tools_of(add)
        for attempt in range(TRIES):
            before = await self._store.get_session(user_id, NO_AGENT, RULES)
            present = _rules_of(before, user_id)
            at_ms = int(datetime.now(UTC).timestamp() * 1000)
            new = stamped(add, Scope.USER, author=by, reason=why, at_ms=at_ms)
            check_room((), new, at_ms)
            after = changed(present, new, revoke, at_ms - SURELY_OVER_MS)
            gone = tuple(rule for rule in present if id_of(rule) in revoke)
            note = RuleChange(at=iso(at_ms), by=by, why=why, added=new, revoked=gone)
            changes = [*_changes_of(before), note][-KEPT_CHANGES:]
            state = AgentState(session_id=RULES, user_id=user_id, permission_context=PermissionContext(rules=after))
            record = SessionRecord.model_validate(
                {
                    "session_id": RULES,
                    "user_id": user_id,
                    "agent_id": NO_AGENT,
                    "seq": before.seq + 1 if before else 1,
                    "state": state,
                    "rule_changes": [change.model_dump(mode="json") for change in changes],
                }
            )
            if await self._store.replace_session(record, before.position() if before else None):
                return tuple(id_of(rule) for rule in new)
            await asyncio.sleep(random.uniform(0, PAUSE_SECONDS * (attempt + 1)))  # noqa: S311  no secret
        raise StoreBusy(f"others changed the rules of user {user_id!r} again and again; try again")


def _rules_of(record: SessionRecord | None, user_id: str) -> tuple[PermissionRule, ...]:
    if record is None:
        return ()
    if record.user_id != user_id:
        raise DamagedRecord("the state store", RULES, f"it is not of user {user_id!r}")
    return record.state.permission_context.rules


def _changes_of(record: SessionRecord | None) -> list[RuleChange]:
    extra = (record.model_extra or {}) if record else {}
    return _CHANGES.validate_python(extra.get("rule_changes", []))


NOBODY = ""
"""As a user; what is kept under no agent's name is no session's."""
MARK = "mark"
MARK_CHARS = 4
"""Of sixteen million marks: it stands in the identity of a worker, and so in many events of each history."""


def new_mark() -> str:
    """Of letters, digits, `-` and `_`."""
    return secrets.token_urlsafe(MARK_CHARS * 3 // 4)


async def mark_of(store: StateStore) -> str:
    """Empty where no worker has left one. Raises StoreError."""
    record = await store.get_session(NOBODY, NO_AGENT, MARK)
    return str((record.model_extra or {}).get(MARK, "")) if record else ""


async def marked(store: StateStore) -> str:
    """The same, left there when there is none. Raises StoreError."""
    mark = await mark_of(store)
    if mark:
        return mark
    record = SessionRecord.model_validate(
        {
            "session_id": MARK,
            "user_id": NOBODY,
            "agent_id": NO_AGENT,
            "state": AgentState(session_id=MARK, user_id=NOBODY),
            MARK: new_mark(),
        }
    )
    try:
        await store.replace_session(record, None)  # the first of several workers wins
    except CantReplace:
        await store.upsert_session(record)
    return await mark_of(store)
