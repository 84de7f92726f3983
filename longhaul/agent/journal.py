"""The journal of a session: the entries in order, and the session state that follows from them.

Rules of this file: the journal changes in `write` and nowhere else. What an entry does is in `agent.reducer`; what
happens next is in `agent.decision`.
"""

from dataclasses import fields

from longhaul.agent import entries as e
from longhaul.agent.permission.rulebook import of_agent
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.all_changes import apply
from longhaul.agent.reducer.incarnation_state import PASSING, cut_off
from longhaul.agent.reducer.session_state import Incarnation, SessionState
from longhaul.agent.values.tool_groups import active_at_first


class Journal(SessionState):
    """Build it with `Journal.of(entries)`; read everything, change nothing."""

    @classmethod
    def of(cls, entries: list[e.AnyEntry]) -> "Journal":
        """Fold entries that were recorded before; the first one is SessionOpened."""
        opened = entries[0]
        if not isinstance(opened, e.SessionOpened):
            raise ValueError(f"the first entry of a session is 'opened', not {opened.kind!r}")
        journal = cls(
            state=AgentState(
                session_id=opened.session_id,
                user_id=opened.user_id,
                agent=opened.spec.name,
                permission_context=of_agent(opened.spec.permission),
            ),
            spec=opened.spec,
            search_attributes=opened.search_attributes,
            parent=opened.parent,
            incarnation=Incarnation(restored=False),
        )
        journal.state.take_mode(opened.spec.permission.mode)
        journal.state.tainted = opened.parent.tainted if opened.parent else ""
        journal.state.tool_context.activated_groups = active_at_first(opened.spec.tool_groups)
        for entry in entries:
            journal.take(entry)
        return journal

    @classmethod
    def over(cls, session: SessionState) -> "Journal":
        """Go on with a session state that was carried over."""
        own = session.twin()
        return cls(**{part.name: getattr(own, part.name) for part in fields(SessionState)})

    def write(self, entry: e.AnyEntry, at: int) -> None:
        """Record one entry at a time in milliseconds since 1970."""
        self.take(entry.model_copy(update={"seq": self.seq + 1, "at": at}))

    def restore(self, found: e.Restored, earlier: SessionState | None, at: int) -> None:
        """Put an earlier incarnation in the place of this one, which has only just started, and take again what came
        meanwhile.

        The recorded entry is without what was found: that is in the session state, and in the segments that it names.
        """
        meanwhile = [entry for entry in self.log if not isinstance(entry, e.SessionOpened)]
        if earlier is not None:
            parent = self.parent
            for part in fields(SessionState):
                setattr(self, part.name, getattr(earlier, part.name))
            self.parent = parent or self.parent
            self.incarnation.restored = False
            self.write(found.model_copy(update={"carried": None}), at)
            if self.reply is not None and (found.source == "history" or found.quarantine):
                self.write(cut_off(self, self.reply), at)
            refused = dict[str, str]()
            for entry in meanwhile:
                self._take_again(entry, at, refused)
        else:
            self.write(found, at)

    def _take_again(self, entry: e.AnyEntry, at: int, refused: dict[str, str]) -> None:
        """`refused`: why requests were not taken, by id: whoever waits for such a request has to hear of it."""
        if isinstance(entry, e.RequestAccepted) and (before := self.requests.handled.get(entry.request_id)):
            if before.body_digest != entry.body_digest:
                reason = f"submit: request_id {entry.request_id[:100]!r} was used before for another message"
                self.write(e.OperationRefused(name="submit", reason=reason, count=self.refused.count + 1), at)
                refused[entry.request_id] = reason
            return
        if isinstance(entry, e.AskerCame) and entry.asker.request_id in refused:
            why = refused[entry.asker.request_id]
            entry = entry.model_copy(update={"asker": entry.asker.model_copy(update={"refused": why})})
        self.write(entry, at)

    def take(self, entry: e.AnyEntry) -> None:
        """Fold one entry that was recorded before, with the number and the time that it has."""
        self.seq, self.latest_at = entry.seq, entry.at
        if not isinstance(entry, PASSING):
            self.keeping.changed, self.keeping.active_at = entry.seq, entry.at
        self.log.append(entry)
        apply(self, entry)
