"""Reads page by page what a session answers about itself as a whole: its entries, and all that it would carry on."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio.client import WorkflowHandle

from longhaul.activities.contract import (
    ENTRIES,
    MESSAGES,
    NO_MESSAGES,
    SNAPSHOT,
    EntriesPage,
    MessagePage,
    SnapshotPage,
)
from longhaul.agent.entries import AnyEntry, Segment
from longhaul.agent.life.rollover_state import Carried, carry
from longhaul.agent.plain.text import Pages
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.record import Record

QUERY_TIMEOUT = timedelta(seconds=10)
"""A session that is busy answers late; one that nobody hosts does not answer at all."""


QUICK_CHARS = 20_000
"""A text so long is read, or a state of such a text written out, before a thread has taken it."""

STATUS = "status"
SNAPSHOT_TRIES = 20


class Sealed(OpenValue):
    """Of what the session answers about itself: where its older entries are."""

    segments: tuple[Segment, ...] = sparse(())


class Unsteady(Exception):
    """The session moved on while it was read, each time that it was tried."""


async def entries_after(session: WorkflowHandle[Any, Any], seq: int) -> list[AnyEntry]:
    """What the session has recorded after entry `seq`, up to now. Raises RPCError or WorkflowQueryFailedError."""
    taken: list[AnyEntry] = []
    while True:
        start = (taken[-1].seq if taken else seq) + 1
        page: EntriesPage = await session.query(ENTRIES, start, result_type=EntriesPage, rpc_timeout=QUERY_TIMEOUT)
        taken += page.entries
        if not page.entries or page.entries[-1].seq >= page.seq:
            return taken


async def since(session: WorkflowHandle[Any, Any], seq: int) -> tuple[list[AnyEntry], Carried]:
    """Both of what a checkpoint needs, as of one moment: what was recorded after entry `seq`, and what the session
    would take along without that. Raises as `snapshot`."""
    return await parted(await _text(session, seq, NO_MESSAGES))


async def read(text: str) -> Carried:
    """All of what the session answers."""
    whole = Carried.model_validate_json
    return whole(text) if len(text) <= QUICK_CHARS else await asyncio.to_thread(whole, text)


async def parted(text: str) -> tuple[list[AnyEntry], Carried]:
    """The same, its entries by themselves."""
    return _parted(text) if len(text) <= QUICK_CHARS else await asyncio.to_thread(_parted, text)


def _parted(text: str) -> tuple[list[AnyEntry], Carried]:
    whole = Carried.model_validate_json(text)
    record = Record.over(whole.ledger)
    return record.log, carry(record, whole.events, record.seq, record.messages_total)


async def sealed(session: WorkflowHandle[Any, Any]) -> tuple[Segment, ...]:
    """The segments that the session has had written, oldest first. Raises RPCError or WorkflowQueryFailedError."""
    told: Sealed = await session.query(STATUS, result_type=Sealed, rpc_timeout=QUERY_TIMEOUT)
    return told.segments


async def messages(session: WorkflowHandle[Any, Any], start: int) -> MessagePage:
    """Messages from number `start`, or from the first one that the session still holds. Raises the same."""
    page: MessagePage = await session.query(MESSAGES, start, result_type=MessagePage, rpc_timeout=QUERY_TIMEOUT)
    return page


async def snapshot(session: WorkflowHandle[Any, Any]) -> Carried:
    """All that the session still holds. Raises RPCError, WorkflowQueryFailedError, and Unsteady when its pages never
    fit together."""
    return Carried.model_validate_json(await _text(session, 0, 0))


async def _text(session: WorkflowHandle[Any, Any], saved: int, saved_messages: int) -> str:
    for _ in range(SNAPSHOT_TRIES):
        text = await _one_state(session, saved, saved_messages)
        if text is not None:
            return text
    raise Unsteady("the session moved on each time that its state was read; it is tried again")


async def _one_state(session: WorkflowHandle[Any, Any], saved: int, saved_messages: int) -> str | None:
    """The whole text, or None when the session moved on between two pages."""
    pages = Pages()
    while not pages.whole:
        asked = [saved, saved_messages, len(pages.text), pages.seq]
        page: SnapshotPage = await session.query(
            SNAPSHOT, args=asked, result_type=SnapshotPage, rpc_timeout=QUERY_TIMEOUT
        )
        if not pages.take(page.seq, page.total, page.text):
            return None
    return pages.text
