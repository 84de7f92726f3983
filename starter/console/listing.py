"""Pages of the workers, and of the sessions: filters and the page's number stand in the address, to be sent on."""

import asyncio
from typing import get_args

from starlette.types import ASGIApp

from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.pages import number, page
from longhaul.starter.serve.request_bodies import Listing
from longhaul.starter.serve.requests import known_agents
from longhaul.starter.serve.response_bodies import Rows, Workers

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
