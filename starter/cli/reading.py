"""Commands that only read: sessions, show, inbox."""

import dataclasses
import sys
from collections.abc import Iterator

from rich.text import Text

from starter import render, render_session
from starter.cli.finding import Name, connected, find_session
from starter.cli.leaving import Misuse
from starter.cli.screen import Screen
from starter.client import SessionCard
from starter.visible import one_line
from workflows.contract import PendingCall, Status

STATUSES = ("idle", "working", "waiting")


async def sessions(screen: Screen, user: str | None, status: str | None, *, long: bool = False) -> int:
    """Open sessions, newest first; with `long`, each one's own word about its context and its keeping."""
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
    screen.show(head)
    for card, row in zip(cards, rows, strict=True):
        screen.show(row)
        if long:
            screen.show(*_details(details.get(card.workflow_id)))
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


async def show(screen: Screen, name: Name, *, full: bool) -> int:
    """One session: how it stands, what the model reads (or, in full, all that was said), what it waits for."""
    async with connected() as app:
        session = await find_session(app, name)
        status = await session.status()
        pending = await session.pending()
        messages = [message async for message in (session.transcript() if full else session.context())]
    screen.document({"status": status, "pending": pending, "full": full, "transcript": messages})
    screen.show(render_session.head(status), Text())
    if not full and status.messages > len(messages):
        screen.show(
            Text(f"(of {status.messages} messages the model reads {len(messages)}; all of them: --full)", "dim")
        )
    screen.show(*render_session.transcript(messages, width=screen.width))
    screen.show(*render_session.waiting(session.id, pending, name.flags()))
    screen.show(*render_session.refusals(status))
    return 0


async def inbox(screen: Screen, user: str | None) -> int:
    """Everything that waits for a person, oldest first."""
    async with connected() as app:
        found = await app.inbox(user=user)
    waiting = [(card, call) for card, call in found.calls if call.waits_for in ("person", "settlement")]
    screen.document([_row(card, call) for card, call in waiting])
    if found.silent:
        names = ", ".join(one_line(card.session_id) for card in found.silent[:10])
        more = f" and {len(found.silent) - 10} more" if len(found.silent) > 10 else ""
        print(f"longhaul: these wait, but no worker answers for them: {names}{more}", file=sys.stderr)
    if not waiting and not found.silent:
        screen.show(Text("nothing waits for a person"))
    for card, call in waiting:
        owner = f" of {one_line(card.user_id)}" if card.user_id else ""
        screen.show(Text(f"{one_line(card.session_id)}{owner}, {render_session.ago(call.asked_at)}", style="bold"))
        flags = [] if card.user_id is None else ["--user", card.user_id]
        screen.show(render.pending_call(call), render.how_to_answer(card.session_id, call, flags), Text())
    return 0


def _row(card: SessionCard, call: PendingCall) -> dict[str, object]:
    named = {"session": card.session_id, "user": card.user_id, "agent": card.agent}
    return {**named, **call.model_dump(mode="json")}
