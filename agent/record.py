"""The record of a session: the entries in order, and the ledger that follows from them.

Rules of this file: the record changes in `write` and nowhere else. What an entry does is in `agent.fold`; what
happens next is in `agent.decision`.
"""

from dataclasses import fields

from agent import entries as e
from agent.fold import apply
from agent.fold_kept import PASSING, cut_off
from agent.ledger import RESTORING, Ledger
from agent.permission.facts import CallFacts
from agent.permission.rulebook import of_agent
from agent.state import AgentState, OpenCall
from agent.tool_groups import active_at_first


class Record(Ledger):
    """Build it with `Record.of(entries)`; read everything, change nothing."""

    @classmethod
    def of(cls, entries: list[e.AnyEntry]) -> "Record":
        """Fold entries that were recorded before; the first one is SessionOpened."""
        opened = entries[0]
        if not isinstance(opened, e.SessionOpened):
            raise ValueError(f"the first entry of a session is 'opened', not {opened.kind!r}")
        record = cls(
            state=AgentState(
                session_id=opened.session_id,
                user_id=opened.user_id,
                agent=opened.spec.name,
                permission_context=of_agent(opened.spec.permission),
            ),
            spec=opened.spec,
            search_attributes=opened.search_attributes,
            format=opened.format,
            restored=opened.format < RESTORING,
        )
        record.state.take_mode(opened.spec.permission.mode)
        record.state.tool_context.activated_groups = active_at_first(opened.spec.tool_groups)
        for entry in entries:
            record.take(entry)
        return record

    @classmethod
    def over(cls, ledger: Ledger) -> "Record":
        """Go on with a ledger that was carried over."""
        return cls(**{part.name: getattr(ledger, part.name) for part in fields(Ledger)})

    def write(self, entry: e.AnyEntry, at: int) -> None:
        """Record one entry at a time in milliseconds since 1970."""
        self.take(entry.model_copy(update={"seq": self.seq + 1, "at": at}))

    def restore(self, found: e.Restored, earlier: Ledger | None, at: int) -> None:
        """Put an earlier life in the place of this one, which has only just begun, and take anew what came meanwhile.

        The recorded entry is without what was found: that is in the ledger, and in the segments that it names.
        """
        meanwhile = [entry for entry in self.log if not isinstance(entry, e.SessionOpened)]
        if earlier is not None:
            for part in fields(Ledger):
                setattr(self, part.name, getattr(earlier, part.name))
            self.restored = False
            self.write(found.model_copy(update={"carried": None}), at)
            if self.reply is not None and (found.source == "history" or found.hold):
                self.write(cut_off(self, self.reply), at)
            for entry in meanwhile:
                self._take_anew(entry, at)
        else:
            self.write(found, at)

    def _take_anew(self, entry: e.AnyEntry, at: int) -> None:
        if isinstance(entry, e.RequestAccepted) and (before := self.handled.get(entry.request_id)):
            if before.body_digest != entry.body_digest:
                reason = f"submit: request_id {entry.request_id[:100]!r} was used before for another message"
                self.write(e.Refused(name="submit", reason=reason, count=self.refused_count + 1), at)
            return
        self.write(entry, at)

    def carried(self) -> list[e.AnyEntry]:
        """The entries that a roll-over takes along, without what only open calls needed."""
        forgotten = {entry.seq for entry in self.log if isinstance(entry, e.Refused)}
        forgotten -= {entry.seq for entry in self.refusals}
        return [_slim(entry, self.calls) for entry in self.log if entry.seq not in forgotten]

    def take(self, entry: e.AnyEntry) -> None:
        """Fold one entry that was recorded before, with the number and the time that it has."""
        self.seq, self.latest_at = entry.seq, entry.at
        if not isinstance(entry, PASSING):
            self.changed, self.active_at = entry.seq, entry.at
        self.log.append(entry)
        self.weight += _weight(entry)
        apply(self, entry)


def _weight(entry: e.AnyEntry) -> int:
    """Bytes of the entry as JSON, with a comma. Refusals weigh nothing: only KEPT_REFUSALS of them are ever carried."""
    if isinstance(entry, e.Refused):
        return 0
    return (entry.size_bytes if isinstance(entry, e.RequestAccepted) else len(entry.model_dump_json().encode())) + 1


def _slim(entry: e.AnyEntry, open_calls: dict[str, OpenCall]) -> e.AnyEntry:
    """The entry without findings about calls of turns that are over: nobody will ask for those again."""
    if isinstance(entry, e.CallUnsettled) and entry.call_id not in open_calls:
        return entry.model_copy(update={"facts": CallFacts()})
    if isinstance(entry, e.ModelSaid | e.CallsExamined) and entry.facts:
        return entry.model_copy(
            update={"facts": {key: facts for key, facts in entry.facts.items() if key in open_calls}}
        )
    return entry
