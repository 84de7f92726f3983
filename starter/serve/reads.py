"""Requests that change nothing, among them suggested rules with what else each of them would have let pass."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TypeVar

from pydantic import BaseModel, Field
from temporalio.service import RPCError

from longhaul.agent.views.trajectory import TrajectoryEvent
from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter.client.cards import CLOSED, SessionCard, Users, leads_of_asking
from longhaul.starter.connection.pollers import pollers
from longhaul.starter.connection.storage_places import keeper_of
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.request_bodies import (
    FromEntry,
    Listing,
    Paging,
    Sorting,
    StepPaging,
    Whose,
)
from longhaul.starter.serve.requests import Call, Handler, session_of, unseen_by, user_meant
from longhaul.starter.serve.response_bodies import (
    Alive,
    Asked,
    Calls,
    InboxBody,
    LastDayBody,
    LeadName,
    ListedRow,
    Page,
    Quarantined,
    Resting,
    Row,
    Rows,
    RulesBody,
    RunBody,
    StandingBody,
    Steps,
    Tasks,
    Tools,
    VersionRow,
    WorkerRow,
    Workers,
)
from longhaul.starter.worker_host.deployment import versions
from longhaul.workflows.contract import PendingCall, ReplyResult, Status

Delivered = TypeVar("Delivered", bound=BaseModel)
MOST_PAGE_BYTES = 2_000_000
"""A page ends with the message that goes beyond it."""


class OfCall(Whose):
    call_id: str = Field(default="", max_length=1_000, description="A call that waits for a person")


class WouldPassBody(BaseModel):
    """What the rules come to that were suggested with a call, one by one."""

    rules: tuple[WouldPass, ...]


@dataclass(frozen=True, slots=True)
class ReadRow:
    """One question to a session, of which the answer says what a method gives."""

    path: str
    """Below the session's own."""
    method: str
    """Of `Session`; its arguments are the fields of the query."""
    answer: type[BaseModel]
    """What the method gives, or a model with one field for it."""
    help: str
    query: type[Whose] = Whose


READS = (
    ReadRow("status", "status", Status, "One session at a glance"),
    ReadRow("pending", "pending", Calls, "Calls that wait"),
    ReadRow(
        "would-pass",
        "rules.would_pass",
        WouldPassBody,
        "Which earlier calls the suggested rules would have allowed",
        OfCall,
    ),
    ReadRow("tools", "tools", Tools, "Its tools, with their schemas"),
    ReadRow("tasks", "tasks", Tasks, "The model's list of tasks"),
    ReadRow("rules", "rules.listed", RulesBody, "What it may do without approval"),
)


def by_read(row: ReadRow) -> Handler:
    """What the row's method gives."""
    arguments = row.query.model_fields.keys() - Whose.model_fields.keys()

    async def read(call: Call) -> BaseModel:
        method = attrgetter(row.method)(session_of(call))
        gave = await method(**{name: getattr(call.query, name) for name in arguments})
        (field, *_) = row.answer.model_fields
        return gave if isinstance(gave, row.answer) else row.answer.model_validate({field: gave})

    return read


async def health(call: Call) -> Alive:
    del call
    return Alive()


async def ready(call: Call) -> Alive:
    """Whether there is somebody to ask: a server that drains, or has lost Temporal, should get no requests."""
    if call.served.draining.is_set():
        raise Problem("unavailable", "this server is stopping; ask another one")
    try:
        await call.app.client.service_client.check_health()
    except (RPCError, RuntimeError) as error:
        raise Problem("unavailable", "the Temporal server does not answer; see TEMPORAL_ADDRESS") from error
    return Alive()


async def sessions(call: Call) -> Rows:
    query: Listing = call.query
    over = query.status == CLOSED
    status, user = None if over else query.status, _listed_user(call)
    cards = await call.app.sessions(session_id=query.session, user=user, status=status, closed=over)
    # Without a filter the sub-agents that wait are among the cards; a list of the others is one more query.
    narrowed = query.session is not None or status not in (None, "waiting")
    asked_below = leads_of_asking([*cards, *(await call.app.asking(user=user) if narrowed and cards else ())])
    found = [card for card in cards if _is_wanted(card, query)]
    if query.sort == "oldest":
        found.reverse()
    elif query.sort == "waiting":
        found.sort(key=lambda card: card.waiting_since or "~")
    elif query.sort == "cost":
        found.sort(key=lambda card: (card.dollars, card.tokens), reverse=True)
    end = None if query.limit is None else query.start + query.limit
    note = "" if found else await _unseen(call)
    leads = {card.workflow_id: card for card in found}
    rows = tuple(_listed(card, leads, asked_below) for card in found[query.start : end])
    return Rows(sessions=rows, total=len(found), note=note)


def _listed(card: SessionCard, leads: Mapping[str, SessionCard], asked_below: Collection[str]) -> ListedRow:
    lead = leads.get(card.parent_workflow_id)
    name = LeadName(agent=lead.agent, session_id=lead.session_id) if lead and lead.user_id == card.user_id else None
    row = ListedRow.model_validate(card)
    return row.model_copy(update={"lead": name, "asks_below": card.workflow_id in asked_below})


def _is_wanted(card: SessionCard, query: Listing) -> bool:
    """As far as the server's index does not tell."""
    if (query.anonymous and card.user_id is not None) or query.agent not in (None, card.agent):
        return False
    if query.status == CLOSED and card.status != CLOSED:
        return False
    words = "\n".join((card.session_id, card.agent, card.user_id or "", card.title, *card.waiting_tools))
    return query.text.casefold() in words.casefold()


async def inbox(call: Call) -> InboxBody:
    query: Sorting = call.query
    found = await call.app.inbox(user=_listed_user(call), team=query.team, tool=query.tool, overdue=query.overdue)
    calls = [
        Asked(session=Row.of(card), call=waiting, root=Row.of(root) if (root := found.root_of(card)) else None)
        for card, waiting in _sorted(found.calls, query)
    ]
    silent = [Row.of(card) for card in found.silent]
    quarantined = [
        Quarantined(session=Row.of(card), quarantine=status.quarantine) for card, status in found.quarantined
    ]
    paused = [
        Resting(
            session=Row.of(card),
            paused_since=status.paused_since,
            paused_by=status.paused_by,
            paused_why=status.paused_why,
        )
        for card, status in found.paused
    ]
    if query.anonymous:
        calls = [one for one in calls if one.session.user_id is None]
        silent = [one for one in silent if one.user_id is None]
        quarantined = [one for one in quarantined if one.session.user_id is None]
        paused = [one for one in paused if one.session.user_id is None]
    note = "" if calls or silent or quarantined or paused else await _unseen(call)
    return InboxBody(
        calls=tuple(calls), silent=tuple(silent), quarantined=tuple(quarantined), paused=tuple(paused), note=note
    )


_RISKS = ("high", "unknown", "medium", "low")


def _sorted(found: list[tuple[SessionCard, PendingCall]], query: Sorting) -> list[tuple[SessionCard, PendingCall]]:
    """Those that fit the text; found are the longest waiting first."""
    wanted = query.text.casefold()
    if wanted:
        found = [
            (card, one)
            for card, one in found
            if wanted in "\n".join((one.tool, one.input, card.session_id, card.agent, card.user_id or "")).casefold()
        ]
    match query.sort:
        case "oldest":
            return found
        case "newest":
            return found[::-1]
        case "risk":
            return sorted(found, key=lambda pair: _RISKS.index(pair[1].risk) if pair[1].risk in _RISKS else len(_RISKS))
        case "deadline":
            return sorted(found, key=lambda pair: pair[1].expires_at or "~")


async def standing(call: Call) -> StandingBody:
    user = _listed_user(call)
    found = None if call.query.anonymous else await call.app.standing(user=user)
    return StandingBody() if found is None else StandingBody(**asdict(found))


async def last_day(call: Call) -> LastDayBody:
    user = _listed_user(call)
    found = None if call.query.anonymous else await call.app.last_day(user=user)
    return LastDayBody() if found is None else LastDayBody(**asdict(found))


async def _unseen(call: Call) -> str:
    """With the number of sessions without a user: of those of others not even that is told."""
    if not (unseen := unseen_by(call)):
        return ""
    count = await call.app.count_open(without_user=True)
    return unseen if count is None else f"{unseen}; open sessions without a user: {count}"


def _listed_user(call: Call) -> Users:
    """None: all that there are, which is what `admin` sees who names nobody."""
    whose: Whose = call.query
    if "admin" in call.caller.scopes and whose.user is None:
        return None
    if call.caller.users and whose.user is None and not whose.anonymous:
        return call.caller.users
    user = user_meant(call)
    if user is None:
        raise Problem("forbidden", "user: the sessions of all users need a token with the scope 'admin'")
    return user


async def workers(call: Call) -> Workers:
    settings, client = call.app.settings, call.app.client
    try:
        found = await pollers(client, settings.task_queue)
        builds = await versions(client, settings.deployment) if settings.deployment else []
    except RPCError as error:
        raise Problem("unavailable", f"the Temporal server does not report its workers: {error.message}") from error
    rows = list[WorkerRow]()
    for one in found:
        keeper = keeper_of(one.identity)
        kinds = {"store": keeper.store.kind, "blobs": keeper.blobs.kind} if keeper else {"store": "", "blobs": ""}
        name = keeper.name if keeper else one.identity
        rows.append(WorkerRow(name=name, seen_at=one.seen_at.isoformat(), build=one.build, **kinds))
    return Workers(
        task_queue=settings.task_queue,
        workers=tuple(rows),
        deployment=settings.deployment,
        versions=tuple(VersionRow.model_validate(one) for one in builds),
    )


async def result(call: Call) -> ReplyResult:
    found = await session_of(call).result(call.path["reply_id"])
    if found.status == "unknown":
        raise Problem("not-found", f"reply_id: the session knows no reply {call.path['reply_id']!r}")
    return found


async def transcript(call: Call) -> Page:
    query: Paging = call.query
    messages, following = await _page(session_of(call).transcript(query.start), query)
    return Page(start=query.start, next=following, messages=messages)


async def context(call: Call) -> Page:
    query: Paging = call.query
    messages, following = await _page(_from(session_of(call).context(), query.start), query)
    return Page(start=query.start, next=following, messages=messages)


async def history(call: Call) -> Steps:
    query: StepPaging = call.query
    found, size, seen, before = list[TrajectoryEvent](), 0, 0, Counter[int]()
    async for event in session_of(call).trajectory(query.entry or 1):
        if query.kind not in (None, event.kind):
            continue
        seen += 1
        if seen > query.start and (len(found) == query.limit or size > MOST_PAGE_BYTES):
            # A page that another follows: from the start on, or from an entry on, of whose steps so many are in this
            # one.
            events = tuple(found)
            if query.entry is None:
                return Steps(start=query.start, next=query.start + len(found), events=events)
            return Steps(start=query.start, next=before[event.seq], entry=event.seq, events=events)
        before[event.seq] += 1
        if seen > query.start:
            found.append(event)
            size += len(event.model_dump_json())
    return Steps(start=query.start, next=None, events=tuple(found))


async def run(call: Call) -> RunBody:
    query: FromEntry = call.query
    return RunBody(spans=tuple(await session_of(call).run_spans(query.entry)))


async def _page(items: AsyncIterator[Delivered], query: Paging) -> tuple[tuple[Delivered, ...], int | None]:
    """As many as are wanted, and as fit; and where the next page begins."""
    found: list[Delivered] = []
    size = 0
    async for item in items:
        if len(found) == query.limit or size > MOST_PAGE_BYTES:
            return tuple(found), query.start + len(found)
        found.append(item)
        size += len(item.model_dump_json())
    return tuple(found), None


async def _from(items: AsyncIterator[Delivered], start: int) -> AsyncIterator[Delivered]:
    number = 0
    async for item in items:
        if number >= start:
            yield item
        number += 1
