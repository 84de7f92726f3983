"""A session's state as a thing of its own: taken out, put in, changed in places, copied, deleted."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from agent.ledger import Ledger
from agent.settings import AgentSpec
from agent.state import AgentState
from starter.asking import Asking, NoSession
from starter.kept import Deleted, Kept
from starter.reading import Reading
from starter.sending import Sending
from starter.state import FRESH, State, copied, edited, exported, read, replacement
from starter.wire import Refused

if TYPE_CHECKING:
    from starter.session import Session

Answer = TypeVar("Answer")
Another = Callable[[str, AgentSpec], "Session"]
"""A session of the same user, by its name and the agent's settings."""


class Stored:
    """Of one session; get it as `session.stored`."""

    def __init__(
        self, named: str, asking: Asking, sending: Sending, reading: Reading, kept: Kept, another: Another
    ) -> None:
        self._named = named
        """As in `session 'x' of agent 'y'`."""
        self._asking = asking
        self._sending = sending
        self._reading = reading
        self._kept = kept
        self._another = another

    async def export(self) -> str:
        """The state as JSON, which `import_state` takes anywhere; of a session that is gone, as it was stored."""
        return exported(await self._kept.state_or(self._state))

    async def is_known(self) -> bool:
        """Whether there is or was such a session, for the server or in the store. Raises Unreachable."""
        return await self._asking.was_there() or await self._kept.is_stored()

    async def delete(self, *, terminate: bool = False, by: str = "") -> Deleted:
        """Forget a closed session: histories, state, blobs, offloads. `terminate` ends an open one. Raises Refused."""
        return await self._kept.delete(by=by, terminate=terminate)

    async def import_state(self, given: State, *, by: str = "", why: str = "", expected_seq: int | None = None) -> None:
        """Put this state in the place of the session's own; starts the session when there is none.

        `expected_seq`: as `Status.seq` was; when something has been recorded since (also that it was opened again),
        MovedOn is raised and nothing is changed. Raises Refused, which names each place that is wrong, and for a
        session that is at work.
        """
        body = replacement(read(given), by=by, why=why, expected_seq=expected_seq)
        await self._sending.update_with_start("replace_state", body)

    async def edit(self, path: str, value: Any, *, by: str = "", why: str = "") -> None:
        """Set one place of the state, as in `edit("context[3].content[0].text", "Fifty.")`; see `edit_all`."""
        await self.edit_all({path: value}, by=by, why=why)

    async def edit_all(self, changes: Mapping[str, Any], *, by: str = "", why: str = "") -> None:
        """Set several places at once; a session that has closed is opened again for it.

        Raises BadPath, Refused, and MovedOn when the session went on meanwhile.
        """

        async def edit() -> None:
            ledger = await self._reading.ledger()
            body = replacement(edited(ledger.state, changes), by=by, why=why, expected_seq=ledger.changed)
            await self._sending.update("replace_state", body)

        await self._open_or_not(edit)

    async def fork(self, new_id: str, at: int | None = None, *, by: str = "") -> "Session":
        """Another session that goes on from this one's state after step `at`: a model call and all of its results.

        None = from now. Nothing is done again, and calls that were open are closed as cancelled. The copy has the
        agent's settings, so it works in the same workspace if one is named there. Raises Refused, NoSuchStep.
        """
        ledger = await self._open_or_not(
            lambda: self._reading.ledger() if at is None else self._reading.ledger_after(at)
        )
        copy = self._another(new_id, ledger.spec)
        why = f"a copy of {self._kept.workflow_id} after {ledger.model_calls} model calls"
        await copy.stored.begin_as(ledger, by=by, why=why)
        return copy

    async def begin_as(self, ledger: Ledger, *, by: str, why: str) -> None:
        """Begin with the state of another session. Raises Refused when there is or was a session of this name."""
        if await self._asking.was_there():
            raise Refused(f"there is a {self._named} already; take another name")
        body = replacement(copied(ledger), by=by, why=why, expected_seq=FRESH)
        await self._sending.update_with_start("replace_state", body)

    async def _open_or_not(self, do: Callable[[], Awaitable[Answer]]) -> Answer:
        """Do it; with a session that is closed, after it has been opened again. Raises NoSession."""
        try:
            return await do()
        except NoSession:
            await self._kept.bring_back(self._reading.ledger, was_there=await self._asking.was_there())
            return await do()

    async def _state(self) -> AgentState:
        return (await self._reading.ledger()).state
