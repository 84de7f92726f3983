"""The page of one call that waits, and the page on which several calls of one session are decided together: each with
the request it serves, what the model said before it, and what would change.
"""

import asyncio
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from longhaul.agent.plain.errors import Damaged, Unavailable
from longhaul.agent.values.conversation.messages import Msg, TextBlock, ToolCallBlock
from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter import render_pending
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.pages import number, page
from longhaul.starter.console.schema_forms import forms_of
from longhaul.starter.console.transcript import (
    MOST_PARTS,
    PAGE_MESSAGES,
    WaitingCall,
    as_html,
    fitted,
    marked,
    newest,
    rule_row,
    waiting_call,
    waiting_row,
)
from longhaul.starter.serve.acts import alone_because
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.reads import WouldPassBody
from longhaul.starter.serve.response_bodies import Calls, Page
from longhaul.starter.visible import harmless
from longhaul.workflows.contract import PendingCall, Status

PAGE_TOGETHER = 20
"""Calls on one page that are decided together: all of each is on the page, which is to stay below 150 kB."""
REQUEST_CHARS = 4_000
CLAIM_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """Where a call comes from."""

    request: str
    """The newest thing that somebody asked before the call; empty where it is too far back."""
    claim: Markup
    """What the model said in the message that has the call: nobody has checked it."""


@dataclass(frozen=True, slots=True)
class CallTogether:
    """One call of several."""

    call: WaitingCall
    origin: CallOrigin
    alone: str
    """Why it can't be allowed together with others; empty where it can."""


NOT_KNOWN = CallOrigin("", Markup())


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
    origins = await _origins(visit, status, {call_id} if found else ())
    passed = await _would_pass(visit, found)
    # To a person who came second the refusal says nothing that the decision before theirs does not say better.
    was_late = problem is not None and problem.kind == "refused" and found is None and bool(made)
    return await page(
        "call",
        visit,
        problem.status if problem else 200,
        call=seen,
        call_id=call_id,
        status=status,
        origin=origins.get(call_id, NOT_KNOWN),
        decisions=made,
        was_late=was_late,
        would_pass=[rule_row(one) for one in passed],
        passed_in_short=_passed_in_short(passed),
        request_id=secrets.token_hex(16),
        in_columns=visit.request.query_params.get("diff") == "columns",
        said=said,
        questions=await asyncio.to_thread(forms_of, found.asked if found else None),
        problem=harmless(problem.detail) if problem and not was_late else None,
    )


async def calls(visit: Visit) -> ASGIApp:
    return await calls_page(visit)


async def calls_page(visit: Visit, problem: Problem | None = None) -> HTMLResponse:
    """A page of the session's calls that wait for a person, each with all there is to decide on. Raises Problem."""
    pending: Calls = await visit.ask("pending")
    status: Status = await visit.ask("status")
    waiting = [one for one in pending.calls if one.at is None and one.waits_for == "person"]
    start = number(visit, "from", 0)
    shown = waiting[start : start + PAGE_TOGETHER]
    origins = await _origins(visit, status, {one.call_id for one in shown})
    return await page(
        "calls",
        visit,
        problem.status if problem else 200,
        status=status,
        calls_here=await asyncio.to_thread(_together, visit, status, shown, origins),
        total=len(waiting),
        elsewhere=len(pending.calls) - len(waiting),
        earlier=visit.here("calls", **{"from": str(max(start - PAGE_TOGETHER, 0))}) if start else "",
        later=visit.here("calls", **{"from": str(start + PAGE_TOGETHER)}) if len(waiting) > start + len(shown) else "",
        problem=harmless(problem.detail) if problem else None,
    )


def _together(
    visit: Visit, status: Status, shown: Sequence[PendingCall], origins: dict[str, CallOrigin]
) -> list[CallTogether]:
    return [
        CallTogether(_seen(visit, status, one), origins.get(one.call_id, NOT_KNOWN), alone_because(one))
        for one in shown
    ]


def _seen(visit: Visit, status: Status, found: PendingCall) -> WaitingCall:
    return waiting_call(found, waiting_row(found, status, visit.here("call", id=found.call_id)))


async def _would_pass(visit: Visit, found: PendingCall | None) -> Sequence[WouldPass]:
    """Nothing where it can't be had: people decide all the same."""
    if found is None:
        return ()
    try:
        body: WouldPassBody = await visit.ask("wouldPass", {"call_id": found.call_id})
    except (WorkflowQueryFailedError, RPCError, Unavailable, Damaged, TimeoutError):
        return ()
    return body.rules


def _passed_in_short(found: Sequence[WouldPass]) -> str:
    """A sentence next to the button; each rule is listed by itself below it."""
    if len(found) < 2 or not found[0].looked_at:
        return render_pending.passes(found[0]) if found else ""
    counts = " and ".join(str(one.count or "none") for one in found)
    tool = marked(found[0].rule.tool_name)
    return f"of the last {found[0].looked_at} other calls of {tool} the rules, each alone, would have allowed {counts}"


async def _origins(visit: Visit, status: Status, call_ids: Collection[str]) -> dict[str, CallOrigin]:
    """By call, as far as the newest messages tell; nothing where they can't be had."""
    if not call_ids:
        return {}
    try:
        shown = await newest(visit, status.messages)
        messages, start = list(shown.messages), shown.start
        for _ in range(MOST_PARTS):
            if start == 0 or any(message.role == "user" for message in messages):
                break
            before = max(start - PAGE_MESSAGES, 0)
            part: Page = await visit.ask("transcript", {"from": before, "limit": start - before})
            if part.next is not None and part.next < start:
                break  # what is too large for one part would be skipped, and the request that stands there with it
            messages, start = [*part.messages, *messages], before
    except (WorkflowQueryFailedError, RPCError, Unavailable, Damaged, TimeoutError):
        return {}
    return await asyncio.to_thread(_origins_in, messages, call_ids)


def _origins_in(messages: Sequence[Msg], call_ids: Collection[str]) -> dict[str, CallOrigin]:
    request, found = "", dict[str, CallOrigin]()
    for message in messages:
        said = "\n\n".join(block.text for block in message.content if isinstance(block, TextBlock)).strip()
        if message.role == "user" and said:
            request = fitted(said, REQUEST_CHARS)
        asked = {block.id for block in message.content if isinstance(block, ToolCallBlock)} & {*call_ids}
        if asked:
            claim = as_html(fitted(said, CLAIM_CHARS)) if said else Markup()
            found |= dict.fromkeys(asked, CallOrigin(request, claim))
    return found
