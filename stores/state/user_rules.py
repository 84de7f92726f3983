"""The rules that hold for all sessions of a user: kept in the state store, under the user, where no session can lie.

Who changed them is kept beside them.
"""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import TypeAdapter

from longhaul.agent.fold.agent_state import AgentState
from longhaul.agent.permission.rulebook import changed, check_room, check_rules, check_tools_of, id_of, stamped
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.permission import PermissionContext, PermissionRule, Scope
from longhaul.stores.state.store import DamagedRecord, SessionRecord, StateStore, StoreBusy

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
            if await self._saved(user_id, before, after, note):
                return tuple(id_of(rule) for rule in new)
            await asyncio.sleep(random.uniform(0, PAUSE_SECONDS * (attempt + 1)))  # noqa: S311  no secret
        raise StoreBusy(f"others changed the rules of user {user_id!r} again and again; try again")

    async def _saved(
        self, user_id: str, before: SessionRecord | None, after: tuple[PermissionRule, ...], note: RuleChange
    ) -> bool:
        """False when somebody else was quicker; then nothing was written."""
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
        return await self._store.replace_session(record, before.position() if before else None)


def _rules_of(record: SessionRecord | None, user_id: str) -> tuple[PermissionRule, ...]:
    if record is None:
        return ()
    if record.user_id != user_id:
        raise DamagedRecord("the state store", RULES, f"it is not of user {user_id!r}")
    return record.state.permission_context.rules


def _changes_of(record: SessionRecord | None) -> list[RuleChange]:
    extra = (record.model_extra or {}) if record else {}
    return _CHANGES.validate_python(extra.get("rule_changes", []))
