"""Pages that change nothing: the inbox, the sessions, the workers, one session, and where one begins.

Filters and the page's number stand in the address, to be sent on.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp
from temporalio.service import RPCError

from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.subagents import Fate, Outcome
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.transcript import (
    CallGroup,
    WaitingRow,
    fitted,
    marked,
    marked_path,
    side_by_side,
    waiting_row,
)
from longhaul.starter.render_session import ago, spent, until
from longhaul.starter.serve.problems import TITLES, Problem, wrong
from longhaul.starter.serve.request_bodies import Listing
from longhaul.starter.serve.requests import known_agents
from longhaul.starter.serve.response_bodies import (
    Asked,
    InboxBody,
    LastDayBody,
    ListedRow,
    Row,
    Rows,
    StandingBody,
    Workers,
)
from longhaul.starter.visible import harmless, one_line

FOLDER = Path(__file__).parent
PAGE_CALLS = 100
FILTERS = ("text", "tool", "team", "overdue", "sort")
"""Of the inbox, in its address."""
TOLD = {
    "allowed": "Allowed.",
    "denied": "Denied.",
    "allowed-all": "Allowed the calls that you ticked. Their session goes on.",
    "denied-all": "Denied. The model reads why, and its session goes on.",
    "first": "Your approval counts; another person's has to follow.",
    "edited": "Allowed, with your arguments.",
    "resolved": "Resolved.",
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
    """`2026-11-23 19:02:41 UTC` of an ISO time, which is in UTC here; a script shows it in the reader's own zone."""
    return f"{one_line(moment[:19].replace('T', ' '))} UTC"


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
    "fitted": fitted,
}


async def page(template: str, visit: Visit | None, code: int = 200, **values: Any) -> HTMLResponse:
    """The template with these values; in a thread, for a long transcript takes a while."""
    told = TOLD.get(visit.request.query_params.get("told", ""), "") if visit else ""
    given = {
        "now": int(time.time() * 1000),
        "visit": visit,
        "told": told,
        "problem": None,
        "waiting": None,
        "standing": await _standing(visit) if visit else None,
        **values,
    }
    return HTMLResponse(await asyncio.to_thread(rendered, template, given), code)


def rendered(template: str, given: Mapping[str, Any]) -> str:
    return _TEMPLATES.get_template(f"{template}.html").render(given)


async def _standing(visit: Visit) -> StandingBody | None:
    """None where it can't be had: a page about something else is shown all the same."""
    try:
        found: StandingBody = await visit.ask("standing")
    except (Problem, ValueError, RPCError, TimeoutError):
        return None
    return found


async def problem_page(visit: Visit | None, home: str, problem: Problem) -> HTMLResponse:
    title = TITLES[problem.kind][1]
    return await page("problem", visit, problem.status, home=home, title=title, problem=harmless(problem.detail))


async def inbox(visit: Visit) -> ASGIApp:
    """How the sessions are, and a page of what waits, as far as the address asks for it. Raises Problem."""
    asked = {name: given for name in FILTERS if (given := visit.request.query_params.get(name, "").strip())}
    found: InboxBody
    day: LastDayBody
    found, day = await asyncio.gather(visit.ask("inbox", asked), visit.ask("lastDay"))
    start = number(visit, "from", 0)
    end = start + PAGE_CALLS
    waiting = [one for one in found.calls if one.call.waits_for != "event"]
    asleep = [one for one in found.calls if one.call.waits_for == "event"]
    return await page(
        "inbox",
        visit,
        groups=list(_groups(visit, waiting, waiting[start:end])),
        asleep=[_waiting_row(visit, one) for one in asleep[:PAGE_CALLS]],
        total=len(waiting),
        waiting=len(waiting),
        asked={name: asked.get(name, "") for name in FILTERS},
        day=day,
        cost="" if day.sessions is None else spent(day),
        earlier=visit.listed("", asked, max(start - PAGE_CALLS, 0)) if start else "",
        later=visit.listed("", asked, end) if end < len(waiting) else "",
        **{name: getattr(found, name)[:PAGE_CALLS] for name in ("silent", "quarantined", "paused")},
    )


_Name = tuple[str | None, str, str]


def _name_of(row: Row) -> _Name:
    return row.user_id, row.agent, row.session_id


def _groups(visit: Visit, waiting: Sequence[Asked], shown: Sequence[Asked]) -> Iterator[CallGroup]:
    """Calls of one session next to each other, where the first of them is; those of a tree too, the root's first."""
    counts = Counter(_name_of(one.session) for one in waiting)
    trees = dict[_Name, dict[_Name, list[Asked]]]()
    for one in shown:
        tree = trees.setdefault(_name_of(one.root or one.session), {})
        tree.setdefault(_name_of(one.session), []).append(one)
    for root, tree in trees.items():
        for name, found in sorted(tree.items(), key=lambda pair: pair[0] != root):
            yield CallGroup(
                session=marked(found[0].session.session_id),
                title=marked(found[0].session.title),
                count=counts[name],
                review=visit.row_link(found[0].session, "calls") if counts[name] > 1 else "",
                depth=int(name != root and root in tree),
                rows=tuple(_waiting_row(visit, one) for one in found),
            )


def _waiting_row(visit: Visit, one: Asked) -> WaitingRow:
    link = visit.row_link(one.session, "call", id=one.call.call_id)
    return waiting_row(one.call, one.session, link, one.root)


def number(visit: Visit, name: str, usual: int) -> int:
    """Of that name in the address. Raises Problem."""
    given = visit.request.query_params.get(name)
    if given is None:
        return usual
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise wrong(name, given, "send a whole number")
    return int(given)


async def start(visit: Visit) -> ASGIApp:
    return await start_page(visit, {})


async def start_page(visit: Visit, filled_in: Mapping[str, str], problem: Problem | None = None) -> HTMLResponse:
    agents = await asyncio.to_thread(known_agents)
    return await page(
        "start",
        visit,
        problem.status if problem else 200,
        agents=agents,
        modes=[mode.value for mode in PermissionMode],
        folder="" if visit.has_login else str(await asyncio.to_thread(Path.cwd)),
        filled_in={"session": secrets.token_hex(4), "request_id": secrets.token_hex(16), **filled_in},
        problem=harmless(problem.detail) if problem else None,
    )


PAGE_SESSIONS = 50
STATES = tuple(
    word for choice in get_args(Listing.model_fields["status"].annotation) for word in get_args(choice) if word
)
_FILTERS = ("status", "agent", "text", "sort")


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A session in the list, below its lead where both are on the page."""

    row: ListedRow
    depth: int


def _as_trees(rows: Sequence[ListedRow]) -> Iterator[PlacedRow]:
    """Each tree where the first session of it is."""
    names = {_name_of(row) for row in rows}
    below = dict[_Name | None, list[ListedRow]]()
    for row in rows:
        lead = (row.user_id, row.lead.agent, row.lead.session_id) if row.lead is not None else None
        below.setdefault(lead if lead in names else None, []).append(row)

    def tree(row: ListedRow, depth: int) -> list[PlacedRow]:
        under = [each for one in below.get(_name_of(row), ()) for each in tree(one, depth + 1)]
        return [PlacedRow(row, depth), *under]

    order = {_name_of(row): place for place, row in enumerate(rows)}
    found = [tree(top, 0) for top in below.get(None, ())]
    for placed in sorted(found, key=lambda one: min(order[_name_of(each.row)] for each in one)):
        yield from placed


async def sessions(visit: Visit) -> ASGIApp:
    """A page of the sessions that the address asks for. Raises Problem."""
    asked = {name: given for name in _FILTERS if (given := visit.request.query_params.get(name, "").strip())}
    start = number(visit, "from", 0)
    found: Rows = await visit.ask("sessions", {**asked, "from": start, "limit": PAGE_SESSIONS})
    end = start + len(found.sessions)
    return await page(
        "sessions",
        visit,
        sessions=list(_as_trees(found.sessions)),
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
