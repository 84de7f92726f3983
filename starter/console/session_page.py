"""The page of one session: what was said, what it waits for, why it stands still and what helps, its run as a picture
next to it, and what happens while somebody looks.
"""

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import HTMLResponse
from starlette.types import ASGIApp
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from longhaul.agent.plain.errors import Damaged, Unavailable
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.pages import number, page
from longhaul.starter.console.run_picture import Lane, Picture, picture
from longhaul.starter.console.transcript import PAGE_MESSAGES, marked, newest, said_messages, waiting_row
from longhaul.starter.render_session import ago, cost, keeping, standing_still
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.requests import session_of
from longhaul.starter.serve.response_bodies import Calls, Page, RunBody
from longhaul.starter.visible import harmless
from longhaul.workflows.contract import PendingCall, Status

DRAWN_ENTRIES = 300
"""The newest: the page is renewed often, and further ones are on the page of the run."""
DRAWN_WIDTH = 326


async def session(visit: Visit) -> ASGIApp:
    return await session_page(visit)


async def session_page(visit: Visit, problem: Problem | None = None, said: str = "") -> HTMLResponse:
    """A page of the transcript, the last one unless the address says another; `said`: what was not taken."""
    # Before all else: what is recorded from here on is told by the stream, and the page renewed.
    last_event = await session_of(visit.call("status")).last_event()
    status: Status = await visit.ask("status")
    shown = await _page_from(visit) or await newest(visit, status.messages)
    waiting: Calls = await visit.ask("pending")
    rows = [waiting_row(one, status, visit.here("call", id=one.call_id)) for one in waiting.calls]
    earlier = {"from": str(max(shown.start - PAGE_MESSAGES, 0))} if shown.start else None
    return await page(
        "session",
        visit,
        problem.status if problem else 200,
        status=status,
        links=session_of(visit.call("status")).links,
        lines=_lines(status),
        standing_word=_standing_word(status, waiting.calls),
        waits_below=_waits_below(waiting.calls),
        troubles=troubles(visit, status, waiting.calls),
        started=await _started(visit, status, last_event),
        drawn=await _drawn(visit, status),
        messages=await asyncio.to_thread(said_messages, shown.messages),
        rows=rows,
        waiting=len(rows),
        together=sum(one.at is None and one.waits_for == "person" for one in waiting.calls),
        earlier=visit.here(**earlier) if earlier else "",
        later=visit.here(**{"from": str(shown.next)}) if shown.next is not None else "",
        events=visit.here("events", **{"from": str(last_event + 1), "deltas": "1"}) if shown.next is None else "",
        request_id=secrets.token_hex(16),
        said=said,
        problem=harmless(problem.detail) if problem else None,
    )


def _lines(status: Status) -> list[str]:
    """What it costs and keeps; what it stands still for has a place of its own."""
    still = {line.plain for line in standing_still(status)}
    return [cost(status), *(line.plain for line in keeping(status) if line.plain not in still)]


def _standing_word(status: Status, calls: Sequence[PendingCall]) -> str:
    if status.quarantine:
        return "quarantined"
    sleeps = bool(calls) and all(one.waits_for == "event" for one in calls)
    return "asleep" if sleeps and status.status == "waiting" else status.status


_WAITS = {
    "person": "waits for a person",
    "resolution": "waits for a person",
    "budget": "waits for a person",
    "outside": "waits for an outside system",
    "event": "asleep",
}
"""What needs somebody first."""


def _waits_below(calls: Sequence[PendingCall]) -> dict[str, str]:
    """For what each sub-agent waits, by workflow id: what needs somebody first."""
    below = [(one.at.workflow_id, _WAITS[one.waits_for]) for one in calls if one.at is not None]
    order = [*dict.fromkeys(_WAITS.values())]
    return dict(sorted(below, key=lambda pair: order.index(pair[1]), reverse=True))


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a session does not simply go on, and the button that helps."""

    word: str
    """quarantined, unknown, overdue, damaged, paused or unavailable."""
    says: str
    button: str = ""
    form: str = ""
    """Below the session's address, where the button sends something."""
    link: str = ""
    """Where it leads, if it sends nothing."""


def troubles(visit: Visit, status: Status, calls: Sequence[PendingCall]) -> list[Trouble]:
    """The worst first."""
    found = list[Trouble]()
    if status.quarantine:
        says = f"Its earlier state is uncertain: {marked(status.quarantine)}. "
        says += "Look at its transcript; if it is right, resume."
        found.append(Trouble("quarantined", says, "Resume", "resume"))
    if status.checkpoint_error:
        says = f"Its store has nothing newer than entry {status.saved_seq}: {marked(status.checkpoint_error)}."
        found.append(Trouble("damaged", says, "Export its state", link=visit.here("state")))
    for one in calls:
        link = visit.here("call", id=one.call_id)
        if one.waits_for == "resolution":
            says = f"Nobody knows whether {marked(one.tool)} ran. Check the system that it acts on."
            found.append(Trouble("unknown outcome", says, "Say what happened", link=link))
        elif one.expired_at:
            says = f"Nobody answered {marked(one.tool)} in time. It still waits."
            found.append(Trouble("overdue", says, "Decide now", link=link))
    if status.paused_since:
        by = marked(status.paused_by) or "somebody"
        why = f": {marked(status.paused_why)}" if status.paused_why else ""
        step = " It takes one step now." if status.stepping else " Nothing new starts until it is resumed."
        says = f"By {by}, {ago(status.paused_since)}{why}.{step}"
        found.append(Trouble("paused", says, "Resume", "resume"))
    away = status.outage.told() if status.outage else status.host_unavailable or status.lacking
    if not away and status.shutdown_interrupted:
        away = "its worker was shut down, and no other worker has taken it yet"
    if away:
        says = f"{marked(away)[:1].upper()}{marked(away)[1:]}. It goes on by itself."
        link = f"{visit.home}/workers" if visit.may("admin") else ""
        found.append(Trouble("unavailable", says, "See the workers" if link else "", link=link))
    return found


RUNS_SINCE_EVENTS = 300
"""Newest events among which a call that runs is looked for: it began not long before them."""


async def _started(visit: Visit, status: Status, last_event: int) -> dict[str, str]:
    """By call that runs, when it began, so that its seconds count from wherever somebody begins to look."""
    if status.status != "working":
        return {}
    found = await session_of(visit.call("status")).events(max(last_event - RUNS_SINCE_EVENTS, 1))
    began = {one.tool_call_id: one.created_at for one in found.events if one.type == "TOOL_RESULT_START"}
    ended = {one.tool_call_id for one in found.events if one.type == "TOOL_RESULT_END"}
    return {call_id: at for call_id, at in began.items() if call_id not in ended}


async def _page_from(visit: Visit) -> Page | None:
    """The page that begins where the address says, if it says so. Raises Problem."""
    if "from" not in visit.request.query_params:
        return None
    found: Page = await visit.ask("transcript", {"from": number(visit, "from", 0), "limit": PAGE_MESSAGES})
    return found


async def _drawn(visit: Visit, status: Status) -> Picture | None:
    """None where its entries can't be read: the transcript is shown all the same."""
    try:
        found: RunBody = await visit.ask("run", {"entry": max(status.seq - DRAWN_ENTRIES, 1)})
    except (WorkflowQueryFailedError, RPCError, Unavailable, Damaged, TimeoutError):
        return None
    lane = Lane(marked(status.session_id), status.agent, status.session_id, found.spans, 0)
    now = int(time.time() * 1000)
    return await asyncio.to_thread(picture, visit, [lane], DRAWN_WIDTH, now) if found.spans else None


async def events(visit: Visit) -> ASGIApp:
    """Raises Problem."""
    if visit.request.method == "HEAD":
        # No byte of it would be sent, and no later request on that connection be answered while the stream lasts.
        raise Problem("method", "HEAD: send GET here", headers={"Allow": "GET"})
    asked = {name: value for name, value in visit.request.query_params.items() if name not in visit.whose}
    answer: ASGIApp = await visit.ask("events", asked)
    return answer
