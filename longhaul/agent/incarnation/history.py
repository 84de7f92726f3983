"""Every message that a session ever had, by number, from its entries alone: also those that it has long put away.

The entries need not be all: at a boundary between two of them, what was open there is enough to go on from it.

Going back to a step: what a session was after its n-th model call, and the state that a copy of it begins with.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from longhaul.agent import entries as e
from longhaul.agent.entries import AnyEntry, ContextCompressed, SessionOpened
from longhaul.agent.incarnation.imported_state import read_state
from longhaul.agent.journal import Journal
from longhaul.agent.plain.errors import BadInput
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.all_changes import apply
from longhaul.agent.reducer.session_state import Context, Requests, SessionState
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import FILES_NOW
from longhaul.agent.values.stuck_detection import UNWATCHED
from longhaul.agent.values.tasks import NO_TASKS

BOUNDARY_BYTES = 8_000
_STATE = TypeAdapter(SessionState)
_NOBODY = AgentSpec(name="nobody")


class History:
    """Folds entries one by one, and keeps neither them nor the messages: only what the next ones need."""

    def __init__(self, session: SessionState | None = None) -> None:
        self._session = session

    @classmethod
    def at(cls, boundary: Any) -> "History":
        """From a boundary on. Raises ValueError for what is none."""
        try:
            return cls(_STATE.validate_python(boundary))
        except ValidationError as error:
            raise ValueError(f"a boundary can't be read ({error.error_count()} fields are wrong)") from None

    @property
    def seq(self) -> int:
        """The newest entry that was reduced."""
        return self._session.seq if self._session else 0

    @property
    def messages_total(self) -> int:
        return self._session.messages_total if self._session else 0

    @property
    def boundary(self) -> Any:
        """Of the cut behind the newest entry, as JSON; None when too much is open there to be written down twice."""
        return boundary_of(self._session) if self._session else None

    def take(self, entry: AnyEntry) -> list[tuple[int, Msg]]:
        """The messages that the entry brought, with the numbers that they had live. Raises ValueError for a gap."""
        if self._session is None:
            if not isinstance(entry, SessionOpened) or entry.seq != 1:
                raise ValueError(f"a history begins with entry 1, 'opened', not with {entry.kind!r}, {entry.seq}")
            self._session = _slim(Journal.of([entry]))
            return []
        session = self._session
        if entry.seq != session.seq + 1:
            raise ValueError(f"entry {entry.seq} does not follow on {session.seq}")
        session.seq = entry.seq
        if isinstance(entry, ContextCompressed):
            return []  # it rewrites a context that is not held here, and brings no message
        first = session.messages_total
        apply(session, entry)
        brought = list(enumerate(session.context.transcript, start=first))
        session.context.transcript_base, session.context.transcript = session.messages_total, []
        session.context.marks, session.state.context = [], []
        return brought

    def take_all(self, entries: Iterable[AnyEntry]) -> list[tuple[int, Msg]]:
        """The same for entries in order."""
        return [pair for entry in entries for pair in self.take(entry)]


def messages(entries: Iterable[AnyEntry]) -> Iterator[tuple[int, Msg]]:
    """Number and message, oldest first. Raises ValueError when the entries do not begin at the first, or have a gap."""
    history = History()
    for entry in entries:
        yield from history.take(entry)


def boundary_of(session: SessionState) -> Any:
    """What entries behind the session state's newest one need to give their messages, as JSON; None when that is
    large."""
    boundary = _beyond(_plain(_slim(session)), _NOTHING_OPEN)
    boundary["spec"] = {"name": session.spec.name}
    return boundary if len(json.dumps(boundary)) <= BOUNDARY_BYTES else None


def _beyond(given: Any, nothing: Any) -> Any:
    """What is not the same in both, of objects and of those in them."""
    if not isinstance(given, dict) or not isinstance(nothing, dict):
        return given
    told = cast(dict[str, Any], given)
    return {name: _beyond(value, nothing.get(name)) for name, value in told.items() if value != nothing.get(name)}


_NEEDLESS = frozenset(
    (
        *(
            "log",
            "latest_at",
            "compaction",
            "provided",
            "calls",
            "notifications",
            "pause",
            "refused",
            "incarnation",
            "keeping",
        ),
        *("spent", "account"),
    )
)
"""Parts of a session state without which its entries give the same messages. Parts that rules to come add to it are
kept."""


def _slim(session: SessionState) -> SessionState:
    kept = {part.name: getattr(session, part.name) for part in fields(SessionState) if part.name not in _NEEDLESS}
    plain: dict[str, Any] = {"context": [], "summary": "", "permission_context": PermissionContext(), "decisions": ()}
    if (reply := session.state.reply_context) is not None:
        # What an approval rests on, and a deadline, follow from tools and rules, which are not held here either.
        calls = {
            key: call.model_copy(update={"approved_terms": "", "deadline": None}) for key, call in reply.calls.items()
        }
        # Whether the reply goes on is decided by limits of the spec, and brings no message by itself.
        plain["reply_context"] = reply.model_copy(update={"calls": calls, "answered": False, "cur_iter": 0})
    # What it comes to is said by entries, and the settings that it goes by are not held here.
    plain["watch"] = UNWATCHED
    plain["tasks_context"] = NO_TASKS
    kept["state"] = session.state.model_copy(update=plain)
    kept["spec"] = _NOBODY.model_copy(update={"name": session.spec.name})
    kept["unknown_outcomes"] = {
        key: unknown_outcome.model_copy(update={"input": "", "why": "", "due": False})
        for key, unknown_outcome in session.unknown_outcomes.items()
    }
    kept["requests"] = Requests(
        queue=session.requests.queue, steering=session.requests.steering, interrupted=session.interrupted
    )
    kept["context"] = Context(transcript_base=session.messages_total, deferred=session.context.deferred)
    return SessionState(**kept)


def _plain(session: SessionState) -> dict[str, Any]:
    return cast(dict[str, Any], _STATE.dump_python(session, mode="json"))


_NOTHING_OPEN = _plain(SessionState(state=AgentState(session_id=""), spec=_NOBODY))


SOURCE = "fork"
FILES_STAY = (
    "You go on in a copy of this conversation. It has a folder of its own, which is empty: files that were made here "
    "before stay with the first one. Do not count on them; look, and make again what you need."
)
"""Told to the model of a copy whose first session worked in a folder of its own."""
FILES_COPIED = (
    "You go on in a copy of this conversation, in a folder of your own with a copy of the files as they were "
    "at this point. Paths below {root} that were used before lead to the files of the first session: do not touch "
    "those. Use relative paths, or ask `pwd` for the new place."
)
"""Told to the model of a copy that has the files too."""

WORK_STAYS = (
    "You go on in a copy of this conversation. What worked in the background at this point belongs to the first one, "
    "and nothing of it comes here: {work}. What became of it since is not known here. Do not wait for it; start "
    "again what you need."
)
"""Told to the model of a copy whose first session had started something in the background that had not ended. At a step
in the past that says nothing of now."""

HUBS_STAY = (
    "You go on in a copy of this conversation, which is in no hub: nobody in {hubs} gets what you answer, and "
    "nothing that is said there comes here."
)
"""Told to the model of a copy whose first session was in hubs."""


class NoSuchStep(BadInput, ValueError):
    """The session has not made that step. The sentence says how many steps there are."""


class StepReducer:
    """Folds entries up to the end of a step: a model call and the results of all that it called for."""

    def __init__(self, step: int, *, entry: int = 0) -> None:
        """`entry`: the step that this entry belongs to, in place of a number of model calls."""
        if step < 1 and not entry:
            raise NoSuchStep(f"step {step}: steps count from 1, the first model call")
        self.step = step
        self._entry = entry
        self._journal: Journal | None = None

    def take(self, entry: e.AnyEntry) -> bool:
        """Reduce the next entry, the session's first one first. True: the step had ended, and it was not reduced."""
        if self._journal is None:
            self._journal = Journal.of([entry])
            return False
        if self._ended(self._journal):
            return True
        self._journal.take(entry)
        return False

    def _ended(self, journal: Journal) -> bool:
        reached = journal.seq >= self._entry if self._entry else journal.spent.model_calls == self.step
        return reached and not journal.open_calls

    @property
    def keeps_files(self) -> bool:
        """Whether the files were kept before calls that may change them."""
        workspace = self._journal.spec.workspace if self._journal else None
        return workspace is not None and workspace.snapshots

    @property
    def session(self) -> SessionState:
        """What the session was then; results that have not come yet are missing. Raises NoSuchStep."""
        if self._entry:
            return self._up_to_the_entry()
        made = self._journal.spent.model_calls if self._journal else 0
        if self._journal is None or made < self.step:
            raise NoSuchStep(f"step {self.step}: this session has made {made} model calls; take a step up to {made}")
        return self._journal

    def _up_to_the_entry(self) -> SessionState:
        found = self._journal.seq if self._journal else 0
        if self._journal is None or found < self._entry:
            raise NoSuchStep(f"entry {self._entry}: this session has {found} entries; take one of them")
        return self._journal


class KeptFiles:
    """Finds the files as they were at the end of a step, from the entries after it: those that were kept before the
    first call that could change any."""

    def __init__(self) -> None:
        self._command = ""
        """The first call since the step, where it began a command in the background: what was kept before that stands
        with its end, behind calls of which more was changed already."""
        self.snapshot = ""
        """The commit or the clone; empty while there is none."""

    def take(self, entry: e.AnyEntry) -> bool:
        """True: no later entry can bring one that is nearer to the step."""
        match entry:
            case e.CommandStarted(command=command) if not self._command and not self.snapshot:
                self._command = command.call_id
            case e.CommandEnded(call_id=call_id, snapshot=kept) if call_id == self._command:
                # One that only reads has none, nor one that was lost: then the next call's counts.
                self._command = ""
                self.snapshot = kept or self.snapshot
            case e.ToolReturned(snapshot=kept) if kept and not self.snapshot:
                self.snapshot = kept
            case _:
                pass
        return bool(self.snapshot) and not self._command


def state_of_copy(session: SessionState) -> AgentState:
    """What a copy begins with: nothing is open in it, and what was open here is closed with a result that says so.

    Requests that wait in the queue are not taken along: the copy was not asked for them.
    """
    state = read_state(session.state.model_dump_json())
    # They wait for results that will never come to the copy.
    state.context.extend(session.context.deferred)
    return state


def spec_of_copy(session: SessionState, snapshot: str) -> AgentSpec:
    """The settings of a copy: with files of its own where the first session had a git working tree, or kept its files.
    `snapshot`: the files to begin with; empty = as they are when it begins.

    A copy of a sandboxed session stays in that sandbox: elsewhere what was allowed there would run as the worker
    does."""
    wanted, root = session.spec.workspace, session.provided.workspace_root
    if (
        session.spec.seal is not None
        or wanted is None
        or not root
        or not (wanted.snapshots or wanted.place == "worktree")
    ):
        return session.spec
    own = wanted.model_copy(update={"place": "worktree", "root": root, "at": snapshot or FILES_NOW})
    return session.spec.model_copy(update={"workspace": own})


def told_of_its_files(state: AgentState, session: SessionState) -> AgentState:
    """The state of a copy, whose model hears that the files of the first session are not in its own folder."""
    workspace = session.spec.workspace
    if workspace is not None and workspace.place == "worktree" and workspace.at:
        state.context.append(hint_message(FILES_COPIED.format(root=workspace.root), SOURCE))
    if session.provided.workspace_root and session.spec.workspace is None:
        state.context.append(hint_message(FILES_STAY, SOURCE))
    return state


def told_of_its_work(state: AgentState, session: SessionState) -> AgentState:
    """The state of a copy, whose model hears that nothing comes of what works in the first one."""
    if work := _in_background(session):
        state.context.append(hint_message(WORK_STAYS.format(work=work), SOURCE))
    if hubs := ", ".join(sorted(repr(each.name) for each in session.hubs.values() if not each.left)):
        state.context.append(hint_message(HUBS_STAY.format(hubs=hubs), SOURCE))
    return state


def work_of_copy(session: SessionState) -> str:
    """What becomes of work in the background, for a person; empty where there was none."""
    worked = "what worked in the background at that point stays with that session"
    return f"{worked}: {work}" if (work := _in_background(session)) else ""


def _in_background(session: SessionState) -> str:
    agents = [child for child in session.children.values() if child.background and not child.outcome]
    commands = [command for command in session.commands.values() if not command.fate]
    named = (f"the sub-agent {child.agent!r} (id {child.call_id!r})" for child in agents)
    return ", ".join((*named, *(f"the command {command.call_id!r}" for command in commands)))


def files_of_copy(spec: AgentSpec, root: str) -> str:
    """What becomes of the files of a session that is copied, for a person. `root`: where they are; empty: there are
    none yet."""
    if spec.workspace is not None and spec.workspace.place == "worktree" and spec.workspace.at:
        how = "as they are when it begins" if spec.workspace.at == FILES_NOW else "as they were at that step"
        return f"it has a folder of its own, with the files of {spec.workspace.root} {how}"
    if spec.workspace is not None:
        sandboxed = "in a sandbox too, " if spec.seal is not None else ""
        files = "in the same files as the session that it is a copy of, as they are now"
        return f"it works {sandboxed}{files}: {spec.workspace.root}"
    if not root:
        return "it has a folder of its own; the session that it is a copy of had none yet"
    return f"it has a folder of its own, which is empty: files of the session that it is a copy of stay in {root}"
