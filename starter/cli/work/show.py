"""Commands that only read: sessions, show."""

import dataclasses
import shlex
from collections.abc import Iterator, Sequence

from rich.text import Text

from longhaul.agent.plain.text import did_you_mean
from longhaul.starter import render_background, render_session
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_lookup import Name, connected, find_known, flags_of
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.work.tree import below as below_root
from longhaul.starter.cli.work.tree import is_found_from_root
from longhaul.starter.client.cards import SessionCard
from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import WaitingBelow
from longhaul.starter.render_calls import MadeCall, calls_in, in_full
from longhaul.starter.visible import one_line, visible
from longhaul.stores.blobs.blobs import BlobsUnavailable, NoBlob
from longhaul.workflows.contract import PendingCall, Status

FORMS = ("messages", "steps")
STATUSES = ("idle", "working", "waiting", "paused")


async def sessions(screen: Screen, user: str | None, status: str | None, *, long: bool = False) -> int:
    """Open sessions, newest first, each with how its first request begins; with `long`, each one's own word about its
    context and its keeping."""
    if status is not None and status not in STATUSES:
        raise Misuse(f"--status: there is no status {status!r}; there are: {', '.join(STATUSES)}")
    async with connected() as app:
        cards = await app.sessions(user=user, status=status)
        details = await app.statuses(cards) if long else {}
    screen.document([_card(card, details.get(card.workflow_id), long=long) for card in cards])
    if not cards:
        screen.show(Text("no open sessions"))
        return 0
    head, *rows = render_session.cards(cards, width=screen.width)
    if head:
        screen.show(head)
    for card, row in zip(cards, rows, strict=True):
        name, *below = row.split("\n")
        screen.show(name)
        screen.show_folded(*below)
        if card.title:
            screen.show(render_session.titled(card, width=screen.width))
        if long:
            screen.show_folded(*_details(details.get(card.workflow_id)))
    return 0


def _card(card: SessionCard, status: Status | None, *, long: bool) -> dict[str, object]:
    row: dict[str, object] = dataclasses.asdict(card)
    return {**row, "details": status} if long else row


def _details(status: Status | None) -> Iterator[Text]:
    if status is None:
        yield Text("  no worker answers for it", "yellow")
        return
    for line in render_session.keeping(status):
        yield Text("  ").append_text(line)


async def show(screen: Screen, name: Name, *, full: bool, form: str = "messages") -> int:
    """One session: how it stands, what the model reads (or, in full, all that was said), what it waits for."""
    if form not in FORMS:
        raise Misuse(f"--as: there is no form {form!r}; there are: {', '.join(FORMS)}")
    if form == "steps":
        return await _show_steps(screen, name)
    async with connected() as app:
        session = await find_known(app, name)
        status = await session.status()
        pending = await session.pending()
        below = [each for each in await session.tree.pending() if each.above] if _has_children(status) else []
        messages = [message async for message in (session.transcript() if full else session.context())]
    waits = {"pending": pending, "below": [_below(each) for each in below]}
    screen.document({"status": status, **waits, "full": full, "transcript": messages, "links": session.links})
    screen.show_folded(render_session.head(status))
    screen.show(*(Text(f"{name}: {one_line(visible(address))}", "dim") for name, address in session.links.items()))
    screen.show(Text())
    if not full and status.messages > len(messages):
        screen.show(
            Text(f"(of {status.messages} messages the model reads {len(messages)}; all of them: --full)", "dim")
        )
    whole_by = shlex.join(["longhaul", "show", session.id, "--calls", *flags_of(session)])
    screen.show(*render_session.transcript(messages, width=screen.width, whole_by=lambda _: whole_by))
    screen.show(*render_background.sub_agents(status))
    screen.show(*render_background.commands(status))
    screen.show_folded(*render_session.waiting(session.id, pending, flags_of(session)))
    screen.show_folded(*_waiting_below(session, pending, below))
    screen.show_folded(*render_session.decisions(status))
    screen.show_folded(*render_session.refusals(status))
    return 0


def _has_children(status: Status) -> bool:
    return any(not child.outcome for child in status.children)


def _waiting_below(root: Session, pending: Sequence[PendingCall], below: Sequence[WaitingBelow]) -> Iterator[Text]:
    tree = [*pending, *(each.call for each in below)]
    for each in below:
        place = root if is_found_from_root(each.call, tree) else each.session
        flags = [*(below_root(each.session.id, each.call, tree) if place is root else ()), *flags_of(place)]
        yield from render_session.waiting(place.id, [each.call], flags)


def _below(waiting: WaitingBelow) -> dict[str, object]:
    return {"session": waiting.session.id, "agent": waiting.session.spec.name, "call": waiting.call}


async def show_calls(screen: Screen, name: Name, call_id: str | None) -> int:
    """All calls that were ever made, or the named one, with all that they answered."""
    async with connected() as app:
        session = await find_known(app, name)
        made = calls_in([message async for message in session.transcript()])
        found = [call for call in made if call_id in (None, call.call_id)]
        if call_id is not None and not found:
            known = did_you_mean(call_id, (call.call_id for call in made))
            raise Misuse(f"session {visible(name.session_id)!r} has made no call {visible(call_id)!r}; {known}")
        if call_id is not None:
            found[-1] = await _in_whole(screen, session, found[-1])
    screen.document(found if call_id is None else found[-1])
    for call in found:
        screen.show(*in_full(call), Text())
    if not found:
        screen.show(Text("no calls were made"))
    return 0


async def _in_whole(screen: Screen, session: Session, call: MadeCall) -> MadeCall:
    """With its whole output, where that was shortened and lies among the session's blobs."""
    try:
        whole = await session.stored.whole_output(call.output)
    except (NoBlob, BlobsUnavailable) as error:
        screen.remark(Text(f"the whole output can't be read: {one_line(visible(str(error)))}", "yellow"))
        return call
    return call if whole is None else dataclasses.replace(call, output=whole)


async def _show_steps(screen: Screen, name: Name) -> int:
    """All that happened, event by event, in OpenHands' words."""
    async with connected() as app:
        session = await find_known(app, name)
        events = [event async for event in session.trajectory()]
    screen.document(events)
    screen.show(*render_session.steps(events, width=screen.width))
    return 0
