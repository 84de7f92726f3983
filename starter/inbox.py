"""Everything that waits for somebody, over all sessions: one query of the server's index, then each session's word."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starter.asking import NoSession
from starter.cards import SessionCard
from starter.session import Session
from workflows.contract import PendingCall, Status

AT_ONCE = 100
"""Sessions that are asked at one time. One that no worker answers for keeps its place until the patience is over."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """What `Longhaul.inbox()` found."""

    calls: list[tuple[SessionCard, PendingCall]] = field(default_factory=list[tuple[SessionCard, PendingCall]])
    """The longest waiting first."""
    silent: list[SessionCard] = field(default_factory=list[SessionCard])
    """Sessions that wait too, or may, but did not say for what."""
    held: list[tuple[SessionCard, Status]] = field(default_factory=list[tuple[SessionCard, Status]])
    """Sessions that do nothing until somebody resumes them: what they have may be damaged, or not all of it known."""
    paused: list[tuple[SessionCard, Status]] = field(default_factory=list[tuple[SessionCard, Status]])
    """Sessions that somebody has paused; calls that wait in them are among the calls."""


async def gather(
    cards: Sequence[SessionCard],
    attach: Callable[[SessionCard], Session],
    *,
    tool: str | None,
    overdue: bool,
    patience_seconds: float,
) -> Inbox:
    """Ask each session what waits in it. `tool` and `overdue` choose among the calls: nothing else is told then."""
    found = Inbox()
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(card: SessionCard) -> None:
        async with room:
            try:
                async with asyncio.timeout(patience_seconds):
                    await _ask(card, attach(card), found)
            except NoSession:
                return  # it has closed since
            except Exception:  # noqa: BLE001  a session of somebody else's making may answer with anything
                found.silent.append(card)

    await asyncio.gather(*(ask(card) for card in cards))
    now = datetime.now(UTC)
    chosen = [
        (card, call)
        for card, call in found.calls
        if tool in (None, call.tool) and (not overdue or is_overdue(call, now))
    ]
    narrowed = tool is not None or overdue
    return Inbox(
        calls=sorted(chosen, key=lambda pair: pair[1].asked_at),
        silent=sorted(found.silent, key=lambda card: card.waiting_since),
        held=[] if narrowed else sorted(found.held, key=lambda pair: pair[0].waiting_since),
        paused=[] if narrowed else sorted(found.paused, key=lambda pair: pair[1].paused_since),
    )


async def _ask(card: SessionCard, session: Session, found: Inbox) -> None:
    calls = await session.pending()
    found.calls.extend((card, call) for call in calls)
    if not calls or card.status == "paused":
        status = await session.status()
        if status.hold:
            found.held.append((card, status))
        elif status.paused_since:
            found.paused.append((card, status))


def is_overdue(call: PendingCall, now: datetime) -> bool:
    """Whether somebody has been reminded of it, it was handed up, or its time is over."""
    return bool(call.reminded_at or call.escalated_at or call.expired_at) or (
        bool(call.expires_at) and datetime.fromisoformat(call.expires_at) <= now
    )
