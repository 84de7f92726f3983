"""Finds what a command at a lead's name is about, in the lead's session or in those of its sub-agents."""

from collections.abc import Iterable, Iterator, Sequence

from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import WaitingBelow
from longhaul.workflows.contract import PendingCall

FOUND_FROM_ROOT = ("person", "outside", "settlement", "budget")
"""What commands at a lead's name answer below it."""


def is_found_from_root(call: PendingCall, tree: Iterable[PendingCall]) -> bool:
    """Whether the root's name says which call of its tree is meant, with the call's id; or, of one that waits for more
    budget, with the name of its session."""
    if call.waits_for == "budget":
        return True
    same = [each for each in tree if (each.call_id, each.waits_for) == (call.call_id, call.waits_for)]
    return call.waits_for in FOUND_FROM_ROOT and len(same) == 1


def below(session_id: str, call: PendingCall, tree: Iterable[PendingCall]) -> list[str]:
    """The flags by which `longhaul budget` at the root's name finds it, where several wait."""
    if call.waits_for != "budget" or sum(each.waits_for == "budget" for each in tree) == 1:
        return []
    return ["--at", session_id]


async def out_of_budget(root: Session, at: str) -> WaitingBelow | None:
    """Where in its tree more budget is waited for: in the session of that name, or, without one, in the root itself or
    in the only one below it. None where the root alone can be meant. Raises Misuse for a name that does not wait."""
    found = [each for each in await root.tree.pending() if each.call.waits_for == "budget"]
    if at:
        named = [each for each in found if each.session.id == at]
        if not named:
            waiting = ", ".join(each.session.id for each in found) or "none"
            raise Misuse(f"--at: no session {at!r} below {root.id!r} waits for more budget; those that do: {waiting}")
        return named[0]
    return found[0] if len(found) == 1 and found[0].above else None


async def waiting_in(root: Session, call_ids: Sequence[str], waits_for: str) -> list[WaitingBelow]:
    """What waits so: the named calls, or all; sub-agents are asked where the session itself does not have them. Raises
    Misuse for an id that waits in several sessions."""
    own = [WaitingBelow(root, call) for call in await root.pending() if call.waits_for == waits_for]
    if call_ids:
        own = [each for each in own if each.call.call_id in call_ids]
    if own and len(own) >= len(call_ids):
        return own
    found = [each for each in await root.tree.pending() if each.call.waits_for == waits_for]
    chosen = [each for each in found if not call_ids or each.call.call_id in call_ids]
    for call_id in call_ids:
        places = [each.session.id for each in chosen if each.call.call_id == call_id]
        if len(places) > 1:
            raise Misuse(f"{call_id!r} waits in several sessions: {', '.join(places)}; name one of them")
    return chosen


async def place_of(root: Session, call_id: str, waits_for: str) -> Session:
    """The session in which the call waits; the root itself where none has it: it says why not."""
    waiting = await waiting_in(root, [call_id], waits_for)
    return waiting[0].session if waiting else root


def by_session(
    root: Session, waiting: Sequence[WaitingBelow], call_ids: Sequence[str]
) -> Iterator[tuple[Session, dict[str, PendingCall | None]]]:
    """Each session with the calls to be answered in it; None: it does not wait anywhere, and the root says so."""
    missing = [call_id for call_id in call_ids if call_id not in {each.call.call_id for each in waiting}]
    places = {each.session.workflow_id: each.session for each in waiting}
    if missing:
        places = {root.workflow_id: root, **places}
    for workflow_id, session in places.items():
        calls: dict[str, PendingCall | None] = {
            each.call.call_id: each.call for each in waiting if each.session.workflow_id == workflow_id
        }
        if session is root or workflow_id == root.workflow_id:
            calls.update(dict.fromkeys(missing))
        yield session, calls
