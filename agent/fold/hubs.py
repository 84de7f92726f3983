"""Changes the ledger by hubs: what was heard from them, and which replies they are to be told."""

from typing import Any, assert_never

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold import stuck_detection as circles
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.fold.reminders import stamped
from longhaul.agent.values.hubs import MOST_HUBS, Membership


def apply(ledger: Ledger, entry: e.HubEntry) -> None:
    match entry:
        case e.HubHeard():
            _heard(ledger, entry)
        case e.HubTold():
            _told(ledger, entry)
        case _ as never:
            assert_never(never)


def heard_before(ledger: Ledger, hub: str, life: str) -> int:
    """Up to which number; 0 of a hub that this session has never been in."""
    known = ledger.hubs.get(hub)
    return known.heard if known is not None and known.life == life else 0


def reply_ended(ledger: Ledger, reply_id: str) -> None:
    """Each hub is told, or hears that there is nothing to tell: clients wait there for it."""
    for hub, known in ledger.hubs.items():
        if not known.left:
            _change(ledger, hub, owed=(*known.owed, reply_id))


def _heard(ledger: Ledger, entry: e.HubHeard) -> None:
    """A letter may come twice, and before an earlier life of the session is found that has had it already."""
    before = heard_before(ledger, entry.hub, entry.life)
    if entry.through <= before:
        return
    pairs = zip(entry.numbers, entry.messages, strict=True)
    if new := tuple(message for number, message in pairs if number > before):
        ledger.hear(stamped(new, entry))
        circles.note_observed(ledger)
    if entry.tainted and not ledger.state.tainted:
        ledger.state.tainted = entry.tainted
    known = ledger.hubs.get(entry.hub)
    owed = known.owed if known is not None and known.life == entry.life and not entry.left else ()
    now = Membership(
        life=entry.life, name=entry.name, member=entry.member, heard=entry.through, owed=owed, left=entry.left
    )
    _keep(ledger, entry.hub, now)


def _told(ledger: Ledger, entry: e.HubTold) -> None:
    known = ledger.hubs.get(entry.hub)
    if known is not None:
        owed = () if entry.error else tuple(one for one in known.owed if one != entry.reply_id)
        _change(ledger, entry.hub, owed=owed, left=known.left or bool(entry.error))


def _change(ledger: Ledger, hub: str, **fields: Any) -> None:
    _keep(ledger, hub, ledger.hubs[hub].model_copy(update=fields))


def _keep(ledger: Ledger, hub: str, known: Membership) -> None:
    """A new table: a copy of the ledger has the same one."""
    kept = {**ledger.hubs, hub: known}
    left = [one for one, each in kept.items() if each.left]
    for one in left[: max(len(left) - MOST_HUBS, 0)]:
        del kept[one]
    ledger.hubs = kept
