"""The rules of one session, or of one user, from outside: listed, added, revoked."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from temporalio.client import Client

from longhaul.agent.permission.rulebook import BadRule, named
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter.client.reading.queries import Asking
from longhaul.starter.client.updates import Sending
from longhaul.starter.client.wire import Refused, plain
from longhaul.starter.connection.connect import Unreachable
from longhaul.starter.connection.storage_places import why_another_store, why_no_rule_holds
from longhaul.starter.settings import Settings
from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.store import BadStoreSetting, RuleChange, StateStore, StoreError, UserRules
from longhaul.workflows.contract import PendingCall

__all__ = ["RuleChange", "RulesOfUser", "SessionRules"]


class SessionRules:
    """The rules of one session. Get it as `session.rules`."""

    def __init__(self, asking: Asking, sending: Sending) -> None:
        self._asking = asking
        self._sending = sending

    async def listed(self) -> list[PermissionRule]:
        """All rules that count in the session, each with its id: its agent's, its user's and its own."""
        return await self._asking.query("rules", list[PermissionRule])

    async def would_pass(self, call_id: PendingCall | str) -> list[WouldPass]:
        """For each rule that was suggested with a call: the session's recent calls of that tool that the rule would
        have allowed. Empty for a call that does not wait for a person."""
        named = call_id if isinstance(call_id, str) else call_id.call_id
        return await self._asking.query("would_pass", list[WouldPass], named)

    async def change(
        self, add: Sequence[PermissionRule] = (), revoke: Sequence[str] = (), *, by: str = "", why: str = ""
    ) -> Sequence[str]:
        """Add rules, and revoke others by id. Returns the ids of the added rules. Raises Refused; nothing has changed
        then. Calls that wait, or have not started, are checked against the new rules."""
        body = {"add": [plain(rule) for rule in add], "revoke": list(revoke), "by": by, "why": why}
        return tuple((await self._sending.update("rules", body))["added"])


class RulesOfUser:
    """The rules of one user. Get it as `app.rules_of(user)`. They count in all sessions of that user, from the next
    reply on. In a reply that is under way, they count when Longhaul checks a call again, as after a minute of waiting.
    Longhaul writes them only into the store that the workers name as theirs."""

    def __init__(self, client: Client, settings: Settings, user: str) -> None:
        self._client = client
        self._settings = settings
        self._user = user

    async def listed(self) -> list[PermissionRule]:
        """All rules of the user. Raises Unreachable."""
        async with self._opened(why_another_store) as rules:
            return list(named(await rules.of(self._user)))

    async def changes(self) -> list[RuleChange]:
        """Who added and revoked which rules, when and why. The newest change is last; the oldest may be missing."""
        async with self._opened(why_another_store) as rules:
            return await rules.changes_of(self._user)

    async def change(
        self, add: Sequence[PermissionRule] = (), revoke: Sequence[str] = (), *, by: str = "", why: str = ""
    ) -> Sequence[str]:
        """Add and revoke rules as `SessionRules.change` does. Raises Refused. Raises Unreachable, also if no worker
        says where it keeps them."""
        async with self._opened(why_no_rule_holds) as rules:
            try:
                return await rules.change(self._user, tuple(add), tuple(revoke), by=by, why=why)
            except BadRule as bad:
                raise Refused(str(bad)) from bad

    @asynccontextmanager
    async def _opened(
        self, why_not: Callable[[Client, Settings, StateStore], Awaitable[str]]
    ) -> AsyncIterator[UserRules]:
        if self._settings.store == "memory":
            raise Refused(
                "store: 'memory' is each process's own, so no worker would see a user's rules; set another store"
            )
        try:
            async with open_store(self._settings.store, data_dir=self._settings.data_dir) as store:
                if why := await why_not(self._client, self._settings, store):
                    raise Unreachable(why)
                yield UserRules(store)
        except (StoreError, BadStoreSetting) as error:
            raise Unreachable(f"{error}; set LONGHAUL_STORE as for the workers") from error
