"""Pages that change nothing: the inbox, one call that waits, the sessions, the workers, one session, and where one
begins.

Filters and the page's number stand in the address, to be sent on.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from longhaul.agent.plain.errors import Damaged, Unavailable
from longhaul.agent.values.subagents import Fate, Outcome
from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.schema_forms import forms_of
from longhaul.starter.console.transcript import (
    PAGE_MESSAGES,
    WaitingRow,
    marked,
    marked_path,
    newest,
    rule_row,
    said_messages,
    side_by_side,
    waiting_call,
    waiting_row,
)
from longhaul.starter.render_session import ago, cost, keeping, spent, until
from longhaul.starter.serve.problems import TITLES, Problem, wrong
from longhaul.starter.serve.reads import WouldPassBody
from longhaul.starter.serve.request_bodies import Listing
from longhaul.starter.serve.requests import known_agents, session_of
from longhaul.starter.serve.response_bodies import Asked, Calls, InboxBody, Page, Rows, Workers
from longhaul.starter.visible import harmless, one_line
from longhaul.workflows.contract import PendingCall, Status

FOLDER = Path(__file__).parent
PAGE_CALLS = 100
FILTERS = ("tool", "team", "overdue")
"""Of the inbox, in its address."""
TOLD = {
    "allowed": "Allowed.",
    "denied": "Denied.",
    "first": "Your approval counts; another person's has to follow.",
    "edited": "Allowed, with your arguments.",
    "settled": "Settled.",
    "handed": "The result is handed in.",
    "answered": "The answer is on its way to the server that asked.",
    "woken": "The session knows of the event.",
    "changed": "Changed.",
    "shorter": "The context is shorter.",
    "as-it-was": "The context is below its threshold, and stays as it is.",
    **{f"over-{end}": f"It is over: {end}." for end in (*get_args(Fate), *get_args(Outcome))},
    "over-all": "Nothing works in the background any more.",
    "over-": "It is stopping; it has not reported its end yet.",
    "over-unknown": "Nobody knows how it has ended, or whether it has.",
}
"""What a form has done, by the word in the next page's address."""


def clock(moment: str) -> str:
    """`2026-11-23 19:02:41` of an ISO time, which is in UTC here."""
    return one_line(moment[:19].replace("T", " "))


_TEMPLATES = Environment(
    loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
_TEMPLATES.filters |= {
    "ago": ago,
    "spent": spent,
    "one_line": one_line,
    "marked": marked,
    "marked_path": marked_path,
    "clock": clock,
    "until": until,
    "side_by_side": side_by_side,
}


async def page(template: str, visit: Visit | None, code: int = 200, **values: Any) -> HTMLResponse:
    """The template with these values; in a thread, for a long transcript takes a while."""
    told = TOLD.get(visit.request.query_params.get("told", ""), "") if visit else ""
    given = {"now": int(time.time() * 1000), "visit": visit, "told": told, "problem": None, "waiting": None, **values}
    html = await asyncio.to_thread(_TEMPLATES.get_template(f"{template}.html").render, given)
    return HTMLResponse(html, code)


async def problem_page(visit: Visit | None, home: str, problem: Problem) -> HTMLResponse:
    title = TITLES[problem.kind][1]
    return await page("problem", visit, problem.status, home=home, title=title, problem=harmless(problem.detail))


async def inbox(visit: Visit) -> ASGIApp:
    """A page of what waits, as far as the address asks for it. Raises Problem."""
    asked = {name: given for name in FILTERS if (given := visit.request.query_params.get(name, "").strip())}
    found: InboxBody = await visit.ask("inbox", asked)
    start = number(visit, "from", 0)
    end = start + PAGE_CALLS
    waiting = [one for one in found.calls if one.call.waits_for != "wake-up"]
    asleep = [one for one in found.calls if one.call.waits_for == "wake-up"]
    return await page(
        "inbox",
        visit,
        rows=[_asked(visit, one) for one in waiting[start:end]],
        asleep=[_asked(visit, one) for one in asleep[:PAGE_CALLS]],
        total=len(waiting),
        waiting=len(waiting),
        asked={name: asked.get(name, "") for name in FILTERS},
        earlier=visit.listed("", asked, max(start - PAGE_CALLS, 0)) if start else "",
        later=visit.listed("", asked, end) if end < len(waiting) else "",
        **{name: getattr(found, name)[:PAGE_CALLS] for name in ("silent", "held", "paused")},
    )


def _asked(visit: Visit, one: Asked) -> WaitingRow:
    link = visit.row_link(one.session, "call", id=one.call.call_id)
    return waiting_row(one.call, one.session, link, one.root)


async def call(visit: Visit) -> ASGIApp:
    return await call_page(visit, visit.request.query_params.get("id", ""))


async def call_page(visit: Visit, call_id: str, problem: Problem | None = None, said: str = "") -> HTMLResponse:
    """The call as it is now, or that it waits no more, and what people have decided on it; `said`: a result of it that
    was not taken."""
    waiting: Calls = await visit.ask("pending")
    status: Status = await visit.ask("status")
    found = next((one for one in waiting.calls if one.call_id == call_id), None)
    made = [one for one in status.decisions if one.call_id == call_id]
    if found is None and not made and problem is None:
        raise Problem("not-found", f"id: no call {call_id[:100]!r} waits in this session")
    seen = await asyncio.to_thread(_seen, visit, status, found) if found else None
    return await page(
        "call",
        visit,
        problem.status if problem else 200,
        call=seen,
        call_id=call_id,
        status=status,
        decisions=made,
        would_pass=[rule_row(one) for one in await _would_pass(visit, found)],
        request_id=secrets.token_hex(16),
        in_columns=visit.request.query_params.get("diff") == "columns",
        said=said,
        questions=await asyncio.to_thread(forms_of, found.asked if found else None),
        problem=harmless(problem.detail) if problem else None,
    )


async def _would_pass(visit: Visit, found: PendingCall | None) -> Sequence[WouldPass]:
    """Nothing where it can't be had: people decide all the same."""
    if found is None:
        return ()
    try:
        body: WouldPassBody = await visit.ask("wouldPass", {"call_id": found.call_id})
    except (WorkflowQueryFailedError, RPCError, Unavailable, Damaged, TimeoutError):
        return ()
    return body.rules


def _seen(visit: Visit, status: Status, found: PendingCall) -> Any:
    return waiting_call(found, waiting_row(found, status, visit.here("call", id=found.call_id)))


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
        lines=[cost(status), *(line.plain for line in keeping(status))],
        messages=await asyncio.to_thread(said_messages, shown.messages),
        rows=rows,
        waiting=len(rows),
        earlier=visit.here(**earlier) if earlier else "",
        later=visit.here(**{"from": str(shown.next)}) if shown.next is not None else "",
        events=visit.here("events", **{"from": str(last_event + 1), "deltas": "1"}) if shown.next is None else "",
        request_id=secrets.token_hex(16),
        said=said,
        problem=harmless(problem.detail) if problem else None,
    )


async def _page_from(visit: Visit) -> Page | None:
    """The page that begins where the address says, if it says so. Raises Problem."""
    if "from" not in visit.request.query_params:
        return None
    found: Page = await visit.ask("transcript", {"from": number(visit, "from", 0), "limit": PAGE_MESSAGES})
    return found


def number(visit: Visit, name: str, usual: int) -> int:
    """Of that name in the address. Raises Problem."""
    given = visit.request.query_params.get(name)
    if given is None:
        return usual
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise wrong(name, given, "send a whole number")
    return int(given)


async def events(visit: Visit) -> ASGIApp:
    """Raises Problem."""
    if visit.request.method == "HEAD":
        # No byte of it would be sent, and no later request on that connection be answered while the stream lasts.
        raise Problem("method", "HEAD: send GET here", headers={"Allow": "GET"})
    asked = {name: value for name, value in visit.request.query_params.items() if name not in visit.whose}
    answer: ASGIApp = await visit.ask("events", asked)
    return answer


async def start(visit: Visit) -> ASGIApp:
    return await start_page(visit, {})


async def start_page(visit: Visit, filled_in: Mapping[str, str], problem: Problem | None = None) -> HTMLResponse:
    agents = await asyncio.to_thread(known_agents)
    return await page(
        "start",
        visit,
        problem.status if problem else 200,
        agents=agents,
        folder="" if visit.has_login else str(await asyncio.to_thread(Path.cwd)),
        filled_in={"session": secrets.token_hex(4), "request_id": secrets.token_hex(16), **filled_in},
        problem=harmless(problem.detail) if problem else None,
    )


PAGE_SESSIONS = 50
STATES = tuple(
    word for choice in get_args(Listing.model_fields["status"].annotation) for word in get_args(choice) if word
)
_FILTERS = ("status", "agent", "text")


async def sessions(visit: Visit) -> ASGIApp:
    """A page of the sessions that the address asks for. Raises Problem."""
    asked = {name: given for name in _FILTERS if (given := visit.request.query_params.get(name, "").strip())}
    start = number(visit, "from", 0)
    found: Rows = await visit.ask("sessions", {**asked, "from": start, "limit": PAGE_SESSIONS})
    end = start + len(found.sessions)
    return await page(
        "sessions",
        visit,
        sessions=found.sessions,
        total=found.total,
        first=start + 1,
        last=end,
        earlier=visit.listed("/sessions", asked, max(start - PAGE_SESSIONS, 0)) if start else "",
        later=visit.listed("/sessions", asked, end) if found.sessions and end < found.total else "",
        asked={name: asked.get(name, "") for name in _FILTERS},
        states=STATES,
        agents=await asyncio.to_thread(known_agents),
    )


async def workers(visit: Visit) -> ASGIApp:
    """Raises Problem for whoever may not see all."""
    found: Workers = await visit.ask("workers")
    return await page("workers", visit, found=found)
