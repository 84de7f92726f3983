"""Keeps what people wrote beside their messages: why they did something, and what a refusal quotes of a letter.

A secret may stand in it, which workers alone know: the next model call takes it along, and its answer brings what is to
be shown.
"""

from collections.abc import Mapping
from typing import TypeVar, get_args

from longhaul.agent.entries import all_entries as e
from longhaul.agent.entries.entry import WRITTEN
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.fold.ledger.ledger_parts import WakeUps

Shown = TypeVar("Shown", bound=e.Entry)

MOST_CHARS = 200_000
"""Taken along with one call, the newest first."""
FIELDS: dict[type[e.Entry], tuple[str, ...]] = {
    kind: names
    for kind in get_args(get_args(e.AnyEntry)[0])
    if (names := tuple(name for name, field in kind.model_fields.items() if WRITTEN in field.metadata))
}
"""Of each entry with words of a person; of a decision on calls each has its own."""


def unseen(ledger: Ledger) -> dict[str, str]:
    """By place, what no worker has seen yet. From the model call before the last one on: what was written while that
    one ran came too late for it, and what has been seen before holds nothing to mask."""
    found: dict[str, str] = {}
    room, calls = MOST_CHARS, 0
    for entry in reversed(ledger.log):
        calls += isinstance(entry, e.ModelSaid)
        words = _words(entry)
        room -= sum(map(len, words.values()))
        if calls > 1 or room < 0:
            break
        found |= words
    return found


def take_shown(ledger: Ledger, shown: Mapping[str, str]) -> None:
    """Put these in the place of what was written, wherever it is held."""
    if not shown:
        return
    came = {words: shown[place] for entry in ledger.log for place, words in _words(entry).items() if place in shown}
    ledger.log = [_with(entry, shown) for entry in ledger.log]
    ledger.refused.newest = [_with_fields(entry, shown) for entry in ledger.refused.newest]
    if ledger.wake_ups is not None:
        kept = [_with_fields(entry, shown) for entry in ledger.wake_ups.kept]
        ledger.wake_ups = WakeUps(kept, ledger.wake_ups.handled)
    if ledger.pause is not None and ledger.pause.why in came:
        ledger.pause = ledger.pause.model_copy(update={"why": came[ledger.pause.why]})
    state = ledger.state
    state.decisions = tuple(
        made.model_copy(update={"reason": came[made.reason]}) if made.reason in came else made
        for made in state.decisions
    )
    for call in ledger.open_calls.values():
        call.reason = came.get(call.reason, call.reason)
    rules = tuple(
        rule.model_copy(update={"reason": came[rule.reason]}) if rule.reason in came else rule
        for rule in state.permission_context.rules
    )
    if rules != state.permission_context.rules:
        state.permission_context = state.permission_context.model_copy(update={"rules": rules})


def _words(entry: e.AnyEntry) -> dict[str, str]:
    if isinstance(entry, e.HumanDecided):
        return {f"{entry.seq}.{at}": made.reason for at, made in enumerate(entry.decisions) if made.reason}
    return {f"{entry.seq}.{field}": words for field in FIELDS.get(type(entry), ()) if (words := getattr(entry, field))}


def _with(entry: e.AnyEntry, shown: Mapping[str, str]) -> e.AnyEntry:
    if isinstance(entry, e.HumanDecided):
        decisions = tuple(
            made.model_copy(update={"reason": shown.get(f"{entry.seq}.{at}", made.reason)})
            for at, made in enumerate(entry.decisions)
        )
        return entry.model_copy(update={"decisions": decisions})
    return _with_fields(entry, shown)


def _with_fields(entry: Shown, shown: Mapping[str, str]) -> Shown:
    came = {
        field: shown[f"{entry.seq}.{field}"] for field in FIELDS.get(type(entry), ()) if f"{entry.seq}.{field}" in shown
    }
    return entry.model_copy(update=came) if came else entry
