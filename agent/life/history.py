"""Every message that a session ever had, by number, from its entries alone: also those that it has long put away.

The entries need not be all: at a seam between two of them, what was open there is enough to go on from it.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from longhaul.agent.entries.all_entries import AnyEntry, ContextCompressed, SessionOpened
from longhaul.agent.fold.all_changes import apply
from longhaul.agent.fold.ledger.agent_state import AgentState
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.fold.ledger.ledger_parts import Context, Requests
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.stuck_detection import UNWATCHED
from longhaul.agent.values.tasks import NO_TASKS

SEAM_BYTES = 8_000
_LEDGER = TypeAdapter(Ledger)
_NOBODY = AgentSpec(name="nobody")


class History:
    """Folds entries one by one, and keeps neither them nor the messages: only what the next ones need."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._ledger = ledger

    @classmethod
    def at(cls, seam: Any) -> "History":
        """From a seam on. Raises ValueError for what is none."""
        try:
            return cls(_LEDGER.validate_python(seam))
        except ValidationError as error:
            raise ValueError(f"a seam can't be read ({error.error_count()} fields are wrong)") from None

    @property
    def seq(self) -> int:
        """The newest entry that was folded."""
        return self._ledger.seq if self._ledger else 0

    @property
    def messages_total(self) -> int:
        return self._ledger.messages_total if self._ledger else 0

    @property
    def seam(self) -> Any:
        """Of the cut behind the newest entry, as JSON; None when too much is open there to be written down twice."""
        return seam_of(self._ledger) if self._ledger else None

    def take(self, entry: AnyEntry) -> list[tuple[int, Msg]]:
        """The messages that the entry brought, with the numbers that they had live. Raises ValueError for a gap."""
        if self._ledger is None:
            if not isinstance(entry, SessionOpened) or entry.seq != 1:
                raise ValueError(f"a history begins with entry 1, 'opened', not with {entry.kind!r}, {entry.seq}")
            self._ledger = _slim(Record.of([entry]))
            return []
        ledger = self._ledger
        if entry.seq != ledger.seq + 1:
            raise ValueError(f"entry {entry.seq} does not follow on {ledger.seq}")
        ledger.seq = entry.seq
        if isinstance(entry, ContextCompressed):
            return []  # it rewrites a context that is not held here, and brings no message
        first = ledger.messages_total
        apply(ledger, entry)
        brought = list(enumerate(ledger.context.transcript, start=first))
        ledger.context.transcript_base, ledger.context.transcript = ledger.messages_total, []
        ledger.context.marks, ledger.state.context = [], []
        return brought

    def take_all(self, entries: Iterable[AnyEntry]) -> list[tuple[int, Msg]]:
        """The same for entries in order."""
        return [pair for entry in entries for pair in self.take(entry)]


def messages(entries: Iterable[AnyEntry]) -> Iterator[tuple[int, Msg]]:
    """Number and message, oldest first. Raises ValueError when the entries do not begin at the first, or have a gap."""
    history = History()
    for entry in entries:
        yield from history.take(entry)


def seam_of(ledger: Ledger) -> Any:
    """What entries behind the ledger's newest one need to give their messages, as JSON; None when that is large."""
    seam = _beyond(_plain(_slim(ledger)), _NOTHING_OPEN)
    seam["spec"] = {"name": ledger.spec.name}
    return seam if len(json.dumps(seam)) <= SEAM_BYTES else None


def _beyond(given: Any, nothing: Any) -> Any:
    """What is not the same in both, of objects and of those in them."""
    if not isinstance(given, dict) or not isinstance(nothing, dict):
        return given
    told = cast(dict[str, Any], given)
    return {name: _beyond(value, nothing.get(name)) for name, value in told.items() if value != nothing.get(name)}


_NEEDLESS = frozenset(
    (
        *("log", "latest_at", "compaction", "provided", "calls", "notices", "pause", "refused", "life", "keeping"),
        *("spent", "account"),
    )
)
"""Parts of a ledger without which its entries give the same messages. Parts that rules to come add to it are kept."""


def _slim(ledger: Ledger) -> Ledger:
    kept = {part.name: getattr(ledger, part.name) for part in fields(Ledger) if part.name not in _NEEDLESS}
    plain: dict[str, Any] = {"context": [], "summary": "", "permission_context": PermissionContext(), "decisions": ()}
    if (reply := ledger.state.reply_context) is not None:
        # What an approval rests on, and a deadline, follow from tools and rules, which are not held here either.
        calls = {
            key: call.model_copy(update={"approved_terms": "", "deadline": None}) for key, call in reply.calls.items()
        }
        # Whether the reply goes on is decided by limits of the spec, and brings no message by itself.
        plain["reply_context"] = reply.model_copy(update={"calls": calls, "answered": False, "cur_iter": 0})
    # What it comes to is said by entries, and the settings that it goes by are not held here.
    plain["watch"] = UNWATCHED
    plain["tasks_context"] = NO_TASKS
    kept["state"] = ledger.state.model_copy(update=plain)
    kept["spec"] = _NOBODY.model_copy(update={"name": ledger.spec.name})
    kept["doubts"] = {
        key: doubt.model_copy(update={"input": "", "why": "", "due": False}) for key, doubt in ledger.doubts.items()
    }
    kept["requests"] = Requests(
        queue=ledger.requests.queue, steering=ledger.requests.steering, interrupted=ledger.interrupted
    )
    kept["context"] = Context(transcript_base=ledger.messages_total, deferred=ledger.context.deferred)
    return Ledger(**kept)


def _plain(ledger: Ledger) -> dict[str, Any]:
    return cast(dict[str, Any], _LEDGER.dump_python(ledger, mode="json"))


_NOTHING_OPEN = _plain(Ledger(state=AgentState(session_id=""), spec=_NOBODY))
