"""Commands that only read: sessions, show."""

import dataclasses
from collections.abc import Iterator

from rich.text import Text

from starter import render_session
from starter.cards import SessionCard
from starter.cli.finding import Name, connected, find_session
from starter.cli.leaving import Misuse
from starter.cli.screen import Screen
from workflows.contract import Status

FORMS = ("messages", "steps")
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


async def show(screen: Screen, name: Name, *, full: bool, form: str = "messages") -> int:
    """One session: how it stands, what the model reads (or, in full, all that was said), what it waits for."""
    if form not in FORMS:
        raise Misuse(f"--as: there is no form {form!r}; there are: {', '.join(FORMS)}")
    if form == "steps":
        return await _show_steps(screen, name)
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
    screen.show(*render_session.decisions(status))
    screen.show(*render_session.refusals(status))
    return 0


async def _show_steps(screen: Screen, name: Name) -> int:
    """All that happened, event by event, in OpenHands' words."""
    async with connected() as app:
        session = await find_session(app, name)
        events = [event async for event in session.trajectory()]
    screen.document(events)
    screen.show(*render_session.steps(events, width=screen.width))
    return 0
