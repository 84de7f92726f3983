"""A session's state as a thing of its own: taken out, put in, changed in places, copied, deleted."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from longhaul.agent.incarnation.history import files_of_copy, spec_of_copy, work_of_copy
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.reading.journal import SessionReader
from longhaul.starter.client.reading.queries import Asking, NoSession
from longhaul.starter.client.states.deletion import Deleted
from longhaul.starter.client.states.session_copies import FoundState, Kept, outputs_elsewhere, with_own_outputs
from longhaul.starter.client.states.state_json import (
    FRESH,
    State,
    copied,
    edited,
    exported,
    read_whole,
    repaired,
    replacement,
)
from longhaul.starter.client.updates import Sending
from longhaul.starter.client.wire import MovedOn, Refused
from longhaul.stores.offload.session_blobs import digits_in
from longhaul.workflows.contract import PendingCall

if TYPE_CHECKING:
    from longhaul.starter.client.session import Session

Answer = TypeVar("Answer")
Another = Callable[[str, AgentSpec], "Session"]
"""A session of the same user, by its name and the agent's settings."""


class Stored:
    """The state of one session. Get it as `session.stored`."""

    def __init__(
        self, named: str, asking: Asking, sending: Sending, reading: SessionReader, kept: Kept, another: Another
    ) -> None:
        self._named = named
        """As in `session 'x' of agent 'y'`."""
        self._asking = asking
        self._sending = sending
        self._reading = reading
        self._kept = kept
        self._another = another

    async def export(self) -> str:
        """The state as JSON, which `import_state` takes anywhere. For a session that is gone, the state as it was
        stored."""
        return exported((await self.found()).state)

    async def found(self) -> FoundState:
        """The state as a value, with a note of what may be missing from it. Raises NoSession, Stuck, Unreachable."""
        found = await self._kept.state_or(self._state)
        return found._replace(note=found.note or self._asking.lacks)

    async def whole_output(self, output: str) -> str | None:
        """The whole output of a call whose output was shortened, if the session's blobs have it; else None. Raises
        NoBlob, BlobsUnavailable."""
        digits = digits_in(output)
        return await self._kept.output(digits) if digits else None

    async def is_known(self) -> bool:
        """Whether the server or the store knows the session, open or closed. Raises Unreachable."""
        return await self._was_there() or await self._kept.is_stored()

    async def _was_there(self) -> bool:
        """Also the server knows one that was deleted for some seconds more."""
        return await self._asking.was_there() and not await self._kept.is_deleted()

    async def delete(self, *, terminate: bool = False, by: str = "") -> Deleted:
        """Delete a closed session and its sub-agents: histories, states, blobs, offloaded files. `terminate` ends those
        that are open first. Their workspace folders stay, and the result names them. Raises Refused."""
        return await self._kept.delete(self._reading.session, by=by, terminate=terminate)

    async def import_state(
        self, state: State, *, by: str = "", why: str = "", expected_seq: int | None = None, note: str = ""
    ) -> Sequence[str]:
        """Replace the session's state. Starts the session when there is none.

        Returns the places of the document that mean nothing here and were left out; safety depends on none of them.

        `expected_seq`: the `Status.seq` that you read. If an entry was recorded since (also that the session was opened
        again), raises MovedOn and changes nothing. Raises Refused, naming each wrong place; also if the session is
        working. If the session waits for somebody, its questions stay open if the new state has them without a result.
        With any other state, the reply that asked them ends as interrupted. `note`: text about the session that `show`
        prints from then on.
        """
        whole = read_whole(state, await self._waiting())
        told = "; ".join(filter(None, (note, await outputs_elsewhere(whole.state, self._kept))))
        body = replacement(whole.state, by=by, why=why, expected_seq=expected_seq, note=told)
        await self._sending.update_with_start("replace_state", body)
        return whole.left_out

    async def _waiting(self) -> list[str]:
        """The calls that wait in the session if it is open."""
        if await self._kept.is_over():
            return []
        try:
            return [call.call_id for call in await self._asking.query("pending", list[PendingCall])]
        except NoSession:
            return []

    async def edit(self, path: str, value: Any, *, by: str = "", why: str = "") -> None:
        """Set one place of the state, as in `edit("context[3].content[0].text", "Fifty.")`. See `edit_all`."""
        await self.edit_all({path: value}, by=by, why=why)

    async def edit_all(self, changes: Mapping[str, Any], *, by: str = "", why: str = "") -> None:
        """Set several places of the state at once. A closed session is opened again for it. If the session waits for
        somebody, its questions stay open; they are asked again if the arguments of their calls change.

        Raises BadPath, Refused, and MovedOn if the session went on meanwhile.
        """

        async def edit() -> None:
            session = await self._reading.session()
            body = replacement(edited(session.state, changes), by=by, why=why, expected_seq=session.keeping.changed)
            await self._sending.update("replace_state", body)

        await self.open_or_not(edit)

    async def repair(self, *, by: str = "") -> int:
        """Replace all attachments and all thinking in the context by text. Use it when the provider refuses each
        request because of what the context contains. The transcript keeps them. Returns how many were replaced; with
        none, the session stays unchanged. Raises Refused, and MovedOn if the session went on meanwhile."""

        async def repair() -> int:
            session = await self._reading.session()
            state, count = repaired(session.state)
            if count:
                why = f"a repair removed {count} attachments and thinking blocks from the context"
                body = replacement(state, by=by, why=why, expected_seq=session.keeping.changed)
                await self._sending.update("replace_state", body)
            return count

        return await self.open_or_not(repair)

    async def fork(self, new_id: str, at: int | None = None, *, entry: int = 0, by: str = "") -> "Session":
        """Create another session that continues from this session's state after step `at`: a model call and all of its
        results.

        None: from now, or after the step that `entry` belongs to, a `seq` of the trajectory. Nothing runs again, and
        open calls are closed as cancelled. The copy has the agent's settings. If these name a workspace, the copy works
        in the same files. Otherwise it gets an empty folder of its own, and its model reads that. If the workspace
        keeps snapshots, the copy gets a folder with the files as they were after that step. `Status.note` of the copy
        says which. Raises Refused, NoSuchStep.
        """
        session, snapshot = await self.open_or_not(lambda: self._stood(at, entry))
        session.spec = spec_of_copy(session, snapshot)
        copy = self._another(new_id, session.spec)
        why = f"a copy of {self._kept.workflow_id} after {session.spent.model_calls} model calls"
        await copy.stored.begin_as(session, self._kept, by=by, why=why)
        return copy

    async def _stood(self, at: int | None, entry: int) -> tuple[SessionState, str]:
        if at is None and not entry:
            return await self._reading.session(), ""
        return await self._reading.session_after(at or 0, entry)

    async def begin_as(self, session: SessionState, first: Kept, *, by: str, why: str) -> None:
        """Begin with the state of another session, and with what outputs it keeps among its blobs, so that deleting it
        takes nothing away. Raises Refused when there is or was a session of this name."""
        if await self._was_there():
            raise Refused(f"there is a {self._named} already; take another name")
        files = files_of_copy(session.spec, session.provided.workspace_root)
        state, lost = await with_own_outputs(copied(session), first, self._kept)
        note = "; ".join(filter(None, (files, work_of_copy(session), lost)))
        body = replacement(state, by=by, why=why, expected_seq=FRESH, note=note)
        body["before"] = session.calls_so_far.model_dump()
        await self._sending.update_with_start("replace_state", body)

    def begins_in(self, state: AgentState) -> None:
        """Begin in this state with the first message; a session that there is, or was, keeps its own."""
        self._sending.begin = lambda: self._begin_in(state)

    async def _begin_in(self, state: AgentState) -> None:
        """Raises Refused for a state that can't be taken."""
        if await self.is_known():
            return
        body = replacement(read_whole(state).state, by="", why="the state of its agent", expected_seq=FRESH)
        with suppress(MovedOn):  # somebody else has started it meanwhile
            await self._sending.start_with("replace_state", body)

    async def open_or_not(self, do: Callable[[], Awaitable[Answer]]) -> Answer:
        """Do it; with a session that is closed, after it has been opened again. Raises NoSession."""
        try:
            return await do()
        except NoSession:
            await self._kept.bring_back(self._reading.session, was_there=await self._was_there())
            return await do()

    async def _state(self) -> AgentState:
        return (await self._reading.session()).state
