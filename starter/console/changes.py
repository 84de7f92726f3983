"""Forms of the console that change something: each does what one request of the HTTP API does, and tells in its place
what was refused.

Two have pages of their own: other arguments than the model's, and the answer to an MCP server.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from longhaul.agent.operations.answers import BackgroundEnds
from longhaul.agent.plain.ids import check_name
from longhaul.starter.console import call_pages, pages, session_page
from longhaul.starter.console.console_request import NAMED, Visit, message_of
from longhaul.starter.console.schema_forms import (
    Field,
    FieldChange,
    answers_of,
    changes_of,
    edited,
    fields_of,
    form_digest,
)
from longhaul.starter.console.transcript import waiting_row
from longhaul.starter.serve.problems import Problem, problem_of, wrong
from longhaul.starter.serve.request_bodies import Nothing
from longhaul.starter.serve.response_bodies import Calls, Decided, Tools
from longhaul.starter.visible import harmless
from longhaul.workflows.contract import PendingCall, Status

MOST_TOGETHER = 100
"""Calls that one message decides on."""
SENT = {"pause": "", "resume": "", "interrupt": "", "step": "", "resolve": "resolved", "notify": "woken"}
"""Operations that are sent as their forms are filled in, each with the word for what the inbox then says; empty where
the session's own page shows it."""


def then(place: str) -> Response:
    """Look there: a form that was taken is not sent again by loading the page again."""
    return RedirectResponse(place, 303)


async def decide(visit: Visit) -> Response:
    form, allows = visit.form, visit.form.get("decision") == "allow"
    body: dict[str, Any] = {
        "call_id": form.get("call_id", ""),
        "decision": "allow" if allows else form.get("decision", ""),
        "reason": "" if allows else form.get("reason", ""),
        "digest": form.get("digest") or None,
        "rules": allows and form.get("rules") == "1",
    }

    async def done() -> Response:
        made: Decided = await visit.ask("decide", body=body)
        if made.approvals:
            return then(visit.here("call", id=made.call_id, told="first"))
        return then(f"{visit.home}?told={'allowed' if allows else 'denied'}")

    return await or_told(done, lambda problem: call_pages.call_page(visit, form.get("call_id", ""), problem))


async def decide_all(visit: Visit) -> Response:
    """Allow or deny the calls that were ticked, each as it was shown; or deny all that wait for a person."""
    form, word = visit.form, visit.form.get("decision", "")

    async def done() -> Response:
        if word == "deny-all":
            waiting: Calls = await visit.ask("pending")
            seen = [
                {"call_id": one.call_id, "digest": one.digest}
                for one in waiting.calls
                if one.at is None and one.waits_for == "person"
            ]
        else:
            ticked = [value.partition(" ") for name, value in form.items() if name.startswith("call-")]
            seen = [{"call_id": call_id, "digest": digest} for digest, _, call_id in ticked]
        if not seen:
            raise wrong("call", "", "tick the calls that you have looked at")
        allows = word == "allow"
        body: dict[str, Any] = {
            "decision": "allow" if allows else "deny",
            "reason": "" if allows else form.get("reason", ""),
        }
        for start in range(0, len(seen), MOST_TOGETHER):
            await visit.ask("decideAll", body={**body, "calls": seen[start : start + MOST_TOGETHER]})
        told = f"{'allowed' if allows else 'denied'}-all"
        left: Calls = await visit.ask("pending")
        if any(one.at is None and one.waits_for == "person" for one in left.calls):
            return then(visit.here("calls", told=told))
        return then(f"{visit.home}?told={told}")

    return await or_told(done, lambda problem: call_pages.calls_page(visit, problem))


async def hand_in(visit: Visit) -> Response:
    """The result of an external tool: text, or any JSON value."""
    form = visit.form
    call_id, output = form.get("call_id", ""), form.get("output", "")

    async def done() -> Response:
        result = {
            "id": call_id,
            "output": _read(output, form.get("form", "text")),
            "state": form.get("state", "success"),
        }
        await visit.ask("externalResults", body={"results": [result]})
        return then(f"{visit.home}?told=handed")

    return await or_told(done, lambda problem: call_pages.call_page(visit, call_id, problem, output))


def _read(output: str, form: str) -> Any:
    if form != "json":
        return output
    try:
        return json.loads(output)
    except (ValueError, RecursionError) as error:
        raise wrong("output", output, f"is not JSON ({error}); write JSON, or send it as text") from None


async def say(visit: Visit) -> Response:
    form = visit.form
    body = {"when": form.get("when", "queue"), "request_id": form.get("request_id", "")}

    async def done() -> Response:
        if not (form.get("text", "").strip() or visit.files):
            raise wrong("text", "", "write something")
        said = message_of(form.get("text", ""), visit.files)
        await visit.ask("message", body={**body, "messages": said})
        return then(visit.here())

    return await or_told(done, lambda problem: session_page.session_page(visit, problem, form.get("text", "")))


def send(name: str) -> Callable[[Visit], Awaitable[Response]]:
    """A form whose fields are those of the operation's body; `call_id` is also that of the call on whose page it is."""

    async def sent(visit: Visit) -> Response:
        call_id = visit.form.get("call_id", "")

        async def done() -> Response:
            body = NAMED[name].body or Nothing
            await visit.ask(
                name, body={field: visit.form[field] for field in body.model_fields if visit.form.get(field)}
            )
            return then(f"{visit.home}?told={SENT[name]}" if SENT[name] else visit.here())

        async def refused(problem: Problem) -> Response:
            return await (
                call_pages.call_page(visit, call_id, problem) if call_id else session_page.session_page(visit, problem)
            )

        return await or_told(done, refused)

    return sent


async def stop(visit: Visit) -> Response:
    """End what works in the background, or one thing of it; the next page says how it has ended, where that is known
    in time."""
    call_id, everything = visit.form.get("call_id", ""), visit.form.get("all") == "yes"

    async def done() -> Response:
        if not call_id and not everything:
            # To the operation no name means all of it, which has a button of its own.
            raise wrong("call_id", call_id, "send the id of the call that began what is to stop")
        made: BackgroundEnds = await visit.ask("stopBackground", body={"call_id": call_id} if call_id else {})
        ends = made.ends.values()
        of_all = next((left_open for left_open in ("", "unknown") if left_open in ends), "all")
        return then(visit.here(told=f"over-{made.ends[call_id] if call_id else of_all}"))

    return await or_told(done, lambda problem: session_page.session_page(visit, problem))


async def begin(visit: Visit) -> Response:
    form = visit.form
    agent, session = form.get("agent", ""), form.get("session", "")

    async def done() -> Response:
        for name, value in (("agent", agent), ("session", session)):
            if not value:
                raise wrong(name, value, "write a name")
            try:
                check_name(name, value)
            except ValueError as error:
                raise wrong(name, value, f"is no name ({error})") from None
        if not form.get("text", "").strip():
            raise wrong("text", "", "write what it shall do")
        said = message_of(form["text"], visit.files)
        path = {"agent": agent, "session": session}
        where = {"workspace": folder} if (folder := form.get("workspace", "").strip()) else {}
        if settings := {name: given for name in ("model", "mode") if (given := form.get(name, "").strip())}:
            await visit.ask("configure", where, settings, path)
        body = {"messages": said, "request_id": form.get("request_id", "")}
        await visit.ask("message", where, body, path)
        return then(visit.session_link(agent, session, visit.visitor.caller.user))

    return await or_told(done, lambda problem: pages.start_page(visit, form, problem))


async def or_told(done: Callable[[], Awaitable[Response]], told: Callable[[Problem], Awaitable[Response]]) -> Response:
    """What `done` answers; of a refusal the page that `told` makes, on which what was written is still there."""
    try:
        return await done()
    except Exception as error:
        problem = problem_of(error)  # what nobody foresaw goes to the log there
        if problem.kind in ("unauthorized", "not-found"):
            raise
        return await told(problem)


async def edit(visit: Visit) -> ASGIApp:
    """Raises Problem for a call that waits no more, or for no person."""
    call_id = visit.request.query_params.get("id", "")
    call = await _waiting(visit, call_id)
    if call is None:
        raise Problem("not-found", f"id: no call {call_id[:100]!r} waits for a decision in this session")
    return await _page(visit, call, await _fields(visit, call), call.digest)


async def decide_edited(visit: Visit) -> Response:
    """Shows first what would change; the form counts once it comes back with just these values."""
    form = visit.form
    call = await _waiting(visit, call_id := form.get("call_id", ""))
    if call is None:
        return then(visit.here("call", id=call_id))
    fields = await _fields(visit, call)
    digest = form.get("digest", "")

    async def done() -> Response:
        body: dict[str, Any] = {"call_id": call_id, "decision": "allow", "digest": digest or None}
        body["input"] = await asyncio.to_thread(edited, fields, call.input, form)
        if form.get("seen") != form_digest(fields, form):
            visit.call("decide", body=body)  # a person who may not edit reads so before they look it over
            changes = await asyncio.to_thread(changes_of, fields, form)
            return await _page(visit, call, fields, digest, changes=changes)
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
    visit: Visit,
    call: PendingCall,
    fields: list[Field],
    digest: str,
    problem: Problem | None = None,
    changes: list[FieldChange] | None = None,
) -> HTMLResponse:
    """The form, filled in as it was sent where it was; `changes`: what is to be looked over before it counts."""
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
        changes=changes,
        seen="" if changes is None else form_digest(fields, visit.form),
        problem=harmless(problem.detail) if problem else None,
    )


async def answer(visit: Visit) -> Response:
    call_id = visit.form.get("call_id", "")

    async def done() -> Response:
        waiting: Calls = await visit.ask("pending")
        asked = next((call.asked for call in waiting.calls if call.call_id == call_id), None)
        # Of a call that asks no more the session says what became of it, whatever is handed in.
        output = await asyncio.to_thread(answers_of, asked, visit.form) if asked else "decline"
        await visit.ask("externalResults", body={"results": [{"id": call_id, "output": output}]})
        return then(f"{visit.home}?told=answered")

    return await or_told(done, lambda problem: call_pages.call_page(visit, call_id, problem))
