"""Changes the ledger by commands in the background, and by whoever wants an end of what works there."""

from collections.abc import Iterable
from typing import assert_never

from longhaul.agent.entries.background import BackgroundEntry, CommandBegun, CommandEnded, StopAsked
from longhaul.agent.fold import subagents
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.values.background import KEPT_COMMANDS, SOMEBODY, BackgroundCommand


def apply(ledger: Ledger, entry: BackgroundEntry) -> None:
    match entry:
        case CommandBegun(command=command):
            _keep(ledger, command.model_copy(update={"at": entry.at}))
        case CommandEnded(call_id=call_id, fate=fate):
            if known := ledger.commands.get(call_id):
                _keep(ledger, known.model_copy(update={"fate": fate}))
        case StopAsked(call_ids=call_ids, by=by):
            not_wanted(ledger, call_ids, by or SOMEBODY)
            subagents.not_wanted(ledger, call_ids, by or SOMEBODY)
        case _ as never:
            assert_never(never)


def not_wanted(ledger: Ledger, call_ids: Iterable[str], by: str = "") -> None:
    """They are to stop. `by`: who asks for it from outside."""
    for call_id in call_ids:
        if (command := ledger.commands.get(call_id)) is not None and not command.fate:
            _keep(ledger, command.model_copy(update={"unwanted": True, "stopped_by": by or command.stopped_by}))


def _keep(ledger: Ledger, command: BackgroundCommand) -> None:
    """A new table: a copy of the ledger has the same one."""
    kept = {**ledger.commands, command.call_id: command}
    ended = [call_id for call_id, each in kept.items() if each.fate]
    for call_id in ended[: max(len(ended) - KEPT_COMMANDS, 0)]:
        del kept[call_id]
    ledger.commands = kept
