"""Requests that ask, answer and steer a session, stop what works in its background, and take out, put in, change or
copy its state.

Who does it is always the caller: nobody decides in another's name.
"""

import asyncio
from collections.abc import Coroutine
from operator import attrgetter
from typing import Any, TypeVar

from pydantic.fields import FieldInfo
from starlette.responses import Response

from longhaul.agent.operations.all_operations import OperationRow
from longhaul.agent.operations.bodies import Submit
from longhaul.starter.client.session import Session
from longhaul.starter.client.states.state_json import BadPath
from longhaul.starter.serve.problems import Problem, wrong
from longhaul.starter.serve.request_bodies import (
    Copy,
    Decision,
    Decisions,
    Edits,
    Requesting,
    Results,
)
from longhaul.starter.serve.requests import Answer, Call, Handler, request_id_of, session_of, session_to_begin
from longhaul.starter.serve.response_bodies import (
    Copied,
    Decided,
    DecidedAll,
    Taken,
)
from longhaul.workflows.contract import PendingCall

Found = TypeVar("Found")


def by_operation(row: OperationRow[Any]) -> Handler:
    """What the row's method makes of the body's fields, which are its arguments, in the caller's name."""
    fields: dict[str, FieldInfo] = row.body.model_fields
    (answered,) = row.answer.model_fields if row.answer is not None else ("",)

    async def act(call: Call) -> Answer:
        session = await session_to_begin(call, call.query) if row.begins else session_of(call)
        method = attrgetter(row.method)(session)
        given = {fields[name].alias or name: getattr(call.body, name) for name in call.body.model_fields_set}
        if "by" in fields:
            given["by"] = call.by
        if row.once:
            given["request_id"] = request_id_of(call, call.body.request_id)
        if of_sessions := given.keys() & row.from_sessions:
            raise wrong(field := min(of_sessions), str(given[field]), "leave it out; sessions send it to each other")
        gave = await method(**given)
        return None if row.answer is None else row.answer.model_validate({answered: gave})

    return act


async def message(call: Call) -> tuple[int, Taken]:
    """202 with the reply's id, or 200 when it came to an end, or waits for somebody, within the time given."""
    body: Submit = call.body
    query: Requesting = call.query
    session = await session_to_begin(call, query)
    asked: dict[str, Any] = {
        "request_id": request_id_of(call, body.request_id),
        "context": body.context,
        "structured_model": body.structured_schema,
    }
    reply_id = (
        await session.submit_if_idle(body.messages, **asked)
        if body.unless_busy
        else await session.submit(body.messages, when=body.when, **asked)
    )
    if reply_id is None:
        raise Problem("refused", "unless_busy: a reply is running or a request waits, so nothing was requested")
    said = await within(query.wait, call, session.wait(reply_id)) if query.wait else None
    found = await session.result(reply_id)
    if said is None:
        return 202, Taken(reply_id=reply_id, status=found.status)
    # Where sub-agents are waited for, the session itself is at work.
    status = "waiting" if said.finished_reason is None else found.status
    return 200, Taken(reply_id=reply_id, status=status, message=said)


async def within(seconds: float, call: Call, waiting: Coroutine[Any, Any, Found]) -> Found | None:
    """None when it takes longer, or when the server is about to end."""
    task = asyncio.create_task(waiting)
    ending = asyncio.create_task(call.served.draining.wait())
    try:
        await asyncio.wait({task, ending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        ending.cancel()


async def decide(call: Call) -> Decided:
    body: Decision = call.body
    session = session_of(call)
    approvals = await session.confirm(
        await _seen(session, body),
        allow=body.decision == "allow",
        reason=body.reason,
        input=body.input,
        rules=body.rules,
        approver=call.by,
    )
    return Decided(call_id=body.call_id, decision=body.decision, approvals=approvals)


async def decide_all(call: Call) -> DecidedAll:
    """Raises Problem where one of the calls waits no more, or has to be decided by itself."""
    body: Decisions = call.body
    session = session_of(call)
    waiting = {one.call_id: one for one in await session.own_pending()}
    seen = list[PendingCall]()
    for one in body.calls:
        found = waiting.get(one.call_id)
        if found is None:
            raise Problem("refused", f"calls: no call {one.call_id!r} waits here any more; nothing was decided")
        if body.decision == "allow" and (why := alone_because(found)):
            raise Problem("refused", f"calls: {one.call_id!r} {why}, so it is decided by itself; nothing was decided")
        seen.append(found.model_copy(update={"digest": one.digest}))
    allow = body.decision == "allow"
    await session.confirm_all(seen, allow=allow, reason=body.reason, approver=call.by)
    return DecidedAll(call_ids=tuple(one.call_id for one in body.calls), decision=body.decision)


def alone_because(call: PendingCall) -> str:
    """Why a call is allowed by itself, and never together with others; empty where nothing speaks against it."""
    if call.waits_for != "person":
        return "waits for no approval"
    if call.risk == "high":
        return "has a high risk"
    if call.approvers > 1:
        return f"needs {call.approvers} approvers"
    return "needs a signed decision" if call.signed else ""


async def _seen(session: Session, body: Decision) -> PendingCall | str:
    """What the decision is about, under the digest that the caller sends: the session refuses it for anything else."""
    waiting = await _waiting(session, body.call_id, body.digest)
    if isinstance(waiting, str):
        return waiting  # the session says why it can't be decided
    if body.digest is not None:
        return waiting.model_copy(update={"digest": body.digest})
    if body.decision == "allow" and waiting.digest:
        raise wrong("digest", "", "to allow a call, send the `digest` that `pending` shows for what you saw")
    return waiting


async def _waiting(session: Session, call_id: str, digest: str | None = None) -> PendingCall | str:
    """The call of that id: the session's own, or that of a sub-agent; of several below, the one of that digest. The id
    where none waits."""
    if own := [one for one in await session.own_pending() if one.call_id == call_id]:
        return own[0]
    found = [one for one in await session.pending() if one.call_id == call_id]
    if len(found) > 1:
        found = [one for one in found if digest and one.digest == digest] or found
    if len(found) > 1:
        places = ", ".join(one.at.session_id for one in found if one.at is not None)
        raise wrong("call_id", call_id, f"it waits in several sessions: {places}; answer it in one of these")
    return found[0] if found else call_id


async def external_results(call: Call) -> None:
    body: Results = call.body
    session = session_of(call)
    # Before the first is handed in: one that is not clear should leave nothing half done.
    waiting = [await _waiting(session, one.id) for one in body.results]
    for one, where in zip(body.results, waiting, strict=True):
        await session.external_result(where, one.output, failed=one.state == "error", partial=one.partial, by=call.by)


async def state(call: Call) -> Response:
    """As it stands now; of a session that has closed, as it was stored."""
    exported = await session_of(call).stored.export()
    return Response(exported, media_type="application/json")


async def edit_state(call: Call) -> None:
    body: Edits = call.body
    try:
        await session_of(call).stored.edit_all(body.changes, by=call.by, why=body.why)
    except BadPath as error:
        raise wrong("changes", ", ".join(body.changes), str(error)) from error


async def copy(call: Call) -> tuple[int, Copied]:
    body: Copy = call.body
    if body.at is not None and body.entry is not None:
        raise wrong("entry", str(body.entry), "`at` names a step too; send one of the two")
    made = await session_of(call).stored.fork(body.session, body.at, entry=body.entry or 0, by=call.by)
    return 201, Copied(session_id=made.id, files=(await made.status()).note)
