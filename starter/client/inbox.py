"""Everything that waits for somebody, over all sessions: as the rows of the server's index tell it. A session is asked
only where there was no room for all that waits in it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from longhaul.starter.client.cards import SessionCard
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.workflows.contract import PendingCall, Status, Waits

AT_ONCE = 100
"""Sessions that are asked at one time. One that no worker answers for keeps its place until the patience is over."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """The result of `Longhaul.inbox()`."""

    calls: list[tuple[SessionCard, PendingCall]] = field(default_factory=list[tuple[SessionCard, PendingCall]])
    """Waiting calls, the longest waiting first."""
    silent: list[SessionCard] = field(default_factory=list[SessionCard])
    """Sessions that wait, or may wait, but did not say for what."""
    quarantined: list[tuple[SessionCard, Status]] = field(default_factory=list[tuple[SessionCard, Status]])
    """Quarantined sessions: they do nothing until somebody resumes them. Their state may be damaged or incomplete."""
    paused: list[tuple[SessionCard, Status]] = field(default_factory=list[tuple[SessionCard, Status]])
    """Paused sessions. Their waiting calls are in `calls`."""
    parked: list[tuple[SessionCard, str]] = field(default_factory=list[tuple[SessionCard, str]])
    """Sessions whose workspace is on a host that is unavailable, with the host's name. They continue by themselves."""
    roots: dict[str, SessionCard] = field(default_factory=dict[str, SessionCard])
    """The root session of each sub-agent whose calls are listed, by workflow id, if that session is open."""

    @property
    def stopped(self) -> list[tuple[SessionCard, Status]]:
        """Sessions that do nothing until somebody resumes them: quarantined and paused ones."""
        return [*self.quarantined, *self.paused]

    def root_of(self, card: SessionCard) -> SessionCard | None:
        """The root session, in which you answer a sub-agent's call. None: the session is no sub-agent, or its root has
        closed."""
        root = self.roots.get(card.root_workflow_id)
        return root if root is not None and root.user_id == card.user_id else None


async def gather(
    rows: Iterable[tuple[SessionCard, Waits | None]],
    attach: Callable[[SessionCard], Session],
    *,
    tool: str | None,
    overdue_at: datetime | None,
    patience_seconds: float,
) -> Inbox:
    """What waits in these sessions. `tool`, and the moment at which they are late, choose among the calls: nothing else
    is told then."""
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

    asked = list[SessionCard]()
    for card, waits in rows:
        if waits is None or waits.left_out:
            asked.append(card)
        else:
            _take(card, waits, found)
    await asyncio.gather(*map(ask, asked))
    chosen = [
        (card, call)
        for card, call in found.calls
        if tool in (None, call.tool) and (overdue_at is None or is_overdue(call, overdue_at))
    ]
    narrowed = tool is not None or overdue_at is not None
    return Inbox(
        calls=sorted(chosen, key=lambda pair: pair[1].asked_at),
        silent=sorted(found.silent, key=lambda card: card.waiting_since),
        quarantined=[] if narrowed else sorted(found.quarantined, key=lambda pair: pair[0].waiting_since),
        paused=[] if narrowed else sorted(found.paused, key=lambda pair: pair[1].paused_since),
        parked=[] if narrowed else sorted(found.parked, key=lambda pair: pair[0].waiting_since),
    )


def _take(card: SessionCard, waits: Waits, found: Inbox) -> None:
    found.calls.extend((card, call) for call in waits.calls)
    if waits.host_unavailable:
        found.parked.append((card, waits.host_unavailable))
    if waits.quarantine or waits.paused_since:
        status = Status(
            session_id=card.session_id,
            user_id=card.user_id,
            agent=card.agent,
            model="",
            status=card.status,
            quarantine=waits.quarantine,
            paused_since=waits.paused_since,
            paused_by=waits.paused_by,
            paused_why=waits.paused_why,
        )
        (found.quarantined if waits.quarantine else found.paused).append((card, status))


async def _ask(card: SessionCard, session: Session, found: Inbox) -> None:
    calls = await session.own_pending()
    found.calls.extend((card, call) for call in calls)
    if not calls or card.status == "paused":
        status = await session.status()
        if status.host_unavailable:
            found.parked.append((card, status.host_unavailable))
        if status.quarantine:
            found.quarantined.append((card, status))
        elif status.paused_since:
            found.paused.append((card, status))


def is_overdue(call: PendingCall, now: datetime) -> bool:
    """Whether somebody has been reminded of it, it was handed up, or its time is over."""
    return bool(call.reminded_at or call.escalated_at or call.expired_at) or (
        bool(call.expires_at) and datetime.fromisoformat(call.expires_at) <= now
    )
