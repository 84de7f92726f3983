"""Other arguments than the model's: the form that shows them, and the decision that allows the call with them."""

import asyncio
from typing import Any

from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from longhaul.starter.console import pages
from longhaul.starter.console.changes import or_told, then
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.edit_form import Field, edited, fields_of
from longhaul.starter.console.waiting_calls import waiting_row
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.response_bodies import Calls, Decided, Tools
from longhaul.starter.visible import harmless
from longhaul.workflows.contract import PendingCall, Status


async def edit(visit: Visit) -> ASGIApp:
    """Raises Problem for a call that waits no more, or for no person."""
    call_id = visit.request.query_params.get("id", "")
    call = await _waiting(visit, call_id)
    if call is None:
        raise Problem("not-found", f"id: no call {call_id[:100]!r} waits for a decision in this session")
    return await _page(visit, call, await _fields(visit, call), call.digest)


async def decide(visit: Visit) -> Response:
    form = visit.form
    call = await _waiting(visit, call_id := form.get("call_id", ""))
    if call is None:
        return then(visit.here("call", id=call_id))
    fields = await _fields(visit, call)
    digest = form.get("digest", "")

    async def done() -> Response:
        body: dict[str, Any] = {"call_id": call_id, "decision": "allow", "digest": digest or None}
        body["input"] = await asyncio.to_thread(edited, fields, call.input, form)
        made: Decided = await visit.ask("decide", body=body)
        if made.approvals:
            return then(visit.here("call", id=call_id, told="first"))
        return then(f"{visit.home}?told=edited")

    # The digest is that of what was shown first: a page that only tells of a slip must not renew it.
    return await or_told(done, lambda problem: _page(visit, call, fields, digest, problem))


async def _waiting(visit: Visit, call_id: str) -> PendingCall | None:
    found: Calls = await visit.ask("pending")
    return next((one for one in found.calls if one.call_id == call_id and one.waits_for == "person"), None)


async def _fields(visit: Visit, call: PendingCall) -> list[Field]:
    found: Tools = await visit.ask("tools")
    schema = next((tool.input_schema for tool in found.tools if tool.name == call.tool), {})
    return await asyncio.to_thread(fields_of, call.input, schema)


async def _page(
    visit: Visit, call: PendingCall, fields: list[Field], digest: str, problem: Problem | None = None
) -> HTMLResponse:
    """The form, filled in as it was sent where it was."""
    status: Status = await visit.ask("status")
    return await pages.page(
        "edit",
        visit,
        problem.status if problem else 200,
        row=waiting_row(call, status, visit.here("call", id=call.call_id)),
        call_id=call.call_id,
        digest=digest,
        fields=fields,
        written={field.key: visit.form.get(field.key, field.value) for field in fields},
        problem=harmless(problem.detail) if problem else None,
    )
