"""A session that is over and for which no worker answers: what it wrote down last answers as the session would have."""

from collections.abc import Callable
from typing import Any

from longhaul.agent.letters.settings_operations import listed
from longhaul.agent.life.rollover_state import Carried
from longhaul.agent.record import Record
from longhaul.agent.views.events import EventFold
from longhaul.agent.views.would_pass import would_pass
from longhaul.workflows import views
from longhaul.workflows.contract import SnapshotPage


class PastSession:
    """Read only."""

    def __init__(self, carried: Carried, lacks: str) -> None:
        """`lacks`: what may be missing from it; told with its status."""
        self.lacks = lacks
        why = "it is over, and no worker answers for it"
        carried.ledger.life.note = "; ".join(
            filter(None, (f"{why}: {lacks}" if lacks else why, carried.ledger.life.note))
        )
        record = self._record = Record.over(carried.ledger)
        fold = EventFold(carried.events)
        text = carried.model_dump_json()
        self._answers: dict[str, Callable[..., Any]] = {
            "status": lambda: views.status(record),
            "pending": lambda: views.pending(record),
            "state": lambda: record.state.model_dump(mode="json", exclude={"context"}),
            "spec": lambda: views.spec_texts(record),
            "would_pass": lambda call_id="": would_pass(record, call_id),
            "rules": lambda: listed(record),
            "transcript": lambda _epoch=0, start=0: views.context_page(record, start),
            "messages": lambda start=0: views.message_page(record, start),
            "events": lambda start=1: views.event_page(fold, record, start),
            "entries": lambda start=1: views.entries_page(record, start),
            "result": lambda reply: views.result(record, reply),
            "snapshot": lambda *_: SnapshotPage(seq=record.seq, total=len(text), text=text),
            "stream": lambda: "",
        }

    def answers(self, name: str) -> bool:
        return name in self._answers

    def answer(self, name: str, *arguments: Any) -> Any:
        """As the query of that name."""
        return self._answers[name](*arguments)
