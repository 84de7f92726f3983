"""Requests that change nothing."""

from temporalio.service import RPCError

from agent.messages import Msg
from starter.serve.bodies import (
    Alive,
    Asked,
    Calls,
    Held,
    InboxBody,
    Listing,
    Page,
    Paging,
    Row,
    Rows,
    RulesBody,
    Sorting,
)
from starter.serve.calls import Call, session_of, user_meant
from starter.serve.problems import Problem
from workflows.contract import ReplyResult, Status

MOST_PAGE_BYTES = 2_000_000
"""A page ends with the message that goes beyond it."""


async def health(call: Call) -> Alive:
    del call
    return Alive()


async def ready(call: Call) -> Alive:
    """Whether there is somebody to ask: a server that drains, or has lost Temporal, should get no requests."""
    if call.served.draining.is_set():
        raise Problem("unavailable", "this server is about to end; ask another one")
    try:
        await call.app.client.service_client.check_health()
    except (RPCError, RuntimeError) as error:
        raise Problem("unavailable", "the Temporal server does not answer; see TEMPORAL_ADDRESS") from error
    return Alive()


async def sessions(call: Call) -> Rows:
    query: Listing = call.query
    cards = await call.app.sessions(session_id=query.session, user=_listed_user(call), status=query.status)
    return Rows(sessions=tuple(Row.of(card) for card in cards if not query.anonymous or card.user_id is None))


async def inbox(call: Call) -> InboxBody:
    query: Sorting = call.query
    found = await call.app.inbox(user=_listed_user(call), team=query.team, tool=query.tool, overdue=query.overdue)
    calls = [Asked(session=Row.of(card), call=waiting) for card, waiting in found.calls]
    silent = [Row.of(card) for card in found.silent]
    held = [Held(session=Row.of(card), hold=status.hold) for card, status in found.held]
    if query.anonymous:
        calls = [one for one in calls if one.session.user_id is None]
        silent = [one for one in silent if one.user_id is None]
        held = [one for one in held if one.session.user_id is None]
    return InboxBody(calls=tuple(calls), silent=tuple(silent), held=tuple(held))


def _listed_user(call: Call) -> str | None:
    """None: all that there are, which is what `admin` sees who names nobody."""
    if "admin" in call.caller.scopes and call.query.user is None:
        return None
    user = user_meant(call)
    if user is None:
        raise Problem("forbidden", "user: the sessions of all users want a token with the scope 'admin'")
    return user


async def status(call: Call) -> Status:
    return await session_of(call).status()


async def pending(call: Call) -> Calls:
    return Calls(calls=tuple(await session_of(call).pending()))


async def rules(call: Call) -> RulesBody:
    return RulesBody(rules=tuple(await session_of(call).rules.listed()))


async def result(call: Call) -> ReplyResult:
    found = await session_of(call).result(call.path["reply_id"])
    if found.status == "unknown":
        raise Problem("not-found", f"reply_id: the session knows no reply {call.path['reply_id']!r}")
    return found


async def transcript(call: Call) -> Page:
    query: Paging = call.query
    messages: list[Msg] = []
    size, more = 0, False
    async for message in session_of(call).transcript(query.start):
        if len(messages) == query.limit or size > MOST_PAGE_BYTES:
            more = True
            break
        messages.append(message)
        size += len(message.model_dump_json())
    end = query.start + len(messages)
    return Page(start=query.start, next=end if more else None, messages=tuple(messages))
