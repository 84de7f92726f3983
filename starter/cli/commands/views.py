"""The commands that only look: sessions, show; inbox, everything that waits for a person, the most urgent first;
watch, a session as it works.
"""

import dataclasses
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter import render, render_inbox, render_pending, render_session
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_lookup import (
    Name,
    connected,
    find_known,
    find_session,
    flags_of,
    is_found_from_root,
)
from longhaul.starter.cli.session_lookup import below as below_root
from longhaul.starter.cli.terminal.reply_printer import ReplyPrinter
from longhaul.starter.cli.terminal.screen import Screen, write_json
from longhaul.starter.client.cards import SessionCard
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.feed import CLOSED
from longhaul.starter.client.inbox import Inbox
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import WaitingBelow
from longhaul.starter.render import MadeCall, calls_in, in_full
from longhaul.starter.render_inbox import WaitingLine
from longhaul.starter.visible import one_line, visible
from longhaul.stores.blobs.blobs import BlobsUnavailable, NoBlob
from longhaul.workflows.contract import PendingCall, Status

FORMS = ("messages", "steps")
STATUSES = ("idle", "working", "waiting", "paused")


commands = options.SubjectCommands()


@commands.command()
async def sessions(
    screen: Screen,
    *,
    user: options.User = None,
    status: Annotated[str | None, typer.Option(help="idle, working, waiting or paused.")] = None,
    long: Annotated[bool, typer.Option("--long", "-l", help="Ask each session how full its context is.")] = False,
) -> int:
    if status is not None and status not in STATUSES:
        raise Misuse(f"--status: there is no status {status!r}; there are: {', '.join(STATUSES)}")
    async with connected() as app:
        cards = await app.sessions(user=user, status=status)
        details = await app.statuses(cards) if long else {}
        elsewhere = "" if cards or user is None else await _elsewhere(app, user)
    rows = [dataclasses.asdict(card) for card in cards]
    screen.document([{**row, "details": details.get(row["workflow_id"])} for row in rows] if long else rows)
    if not cards:
        screen.show(Text(one_line(f"no open sessions{elsewhere}")))
        return 0
    head, *lines = render_session.cards(cards, width=screen.width)
    if head:
        screen.show(head)
    for card, line in zip(cards, lines, strict=True):
        name, *below = line.split("\n")
        screen.show(name)
        screen.show_folded(*below)
        if card.title:
            screen.show(render_session.titled(card, width=screen.width))
        if long:
            screen.show_folded(*_details(details.get(card.workflow_id)))
    return 0


def _details(status: Status | None) -> Iterator[Text]:
    if status is None:
        yield Text("  no worker answers for it", "yellow")
        return
    for line in render_session.keeping(status):
        yield Text("  ").append_text(line)


@commands.command()
async def show(
    screen: Screen,
    name: Name,
    call: Annotated[str | None, typer.Argument(metavar="[CALL]", help="One call, with its whole output.")] = None,
    *,
    calls: Annotated[bool, typer.Option("--calls", help="Every call, with its whole output.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The whole transcript, not what the model reads now.")] = False,
    as_: Annotated[
        str, typer.Option("--as", metavar="FORM", help="messages, or steps: actions, observations, condensations.")
    ] = "messages",
) -> int:
    if calls or call is not None:
        return await _show_calls(screen, name, call)
    if as_ not in FORMS:
        raise Misuse(f"--as: there is no form {as_!r}; there are: {', '.join(FORMS)}")
    if as_ == "steps":
        return await _show_steps(screen, name)
    async with connected() as app:
        session = await find_known(app, name)
        status = await session.status()
        pending = await session.own_pending()
        below = (
            [each for each in await session.tree.pending() if each.above]
            if any(not child.outcome for child in status.children)
            else []
        )
        messages = [message async for message in (session.transcript() if full else session.context())]
    waits = {
        "pending": pending,
        "below": [{"session": each.session.id, "agent": each.session.spec.name, "call": each.call} for each in below],
    }
    screen.document({"status": status, **waits, "full": full, "transcript": messages, "links": session.links})
    screen.show_folded(render_session.head(status))
    screen.show(*(Text(f"{name}: {one_line(visible(address))}", "dim") for name, address in session.links.items()))
    screen.show(Text())
    if not full and status.messages > len(messages):
        screen.show(
            Text(f"(of {status.messages} messages the model reads {len(messages)}; all of them: --full)", "dim")
        )
    whole_by = shlex.join(["longhaul", "show", session.id, "--calls", *flags_of(session)])
    screen.show(*render_session.transcript(messages, width=screen.width, whole_by=lambda _: whole_by))
    screen.show(*render.sub_agents(status))
    screen.show(*render.commands(status))
    screen.show_folded(*render_session.waiting(session.id, pending, flags_of(session)))
    screen.show_folded(*_waiting_below(session, pending, below))
    screen.show_folded(*render_session.decisions(status))
    screen.show_folded(*render_session.refusals(status))
    return 0


def _waiting_below(root: Session, pending: Sequence[PendingCall], below: Sequence[WaitingBelow]) -> Iterator[Text]:
    tree = [*pending, *(each.call for each in below)]
    for each in below:
        place = root if is_found_from_root(each.call, tree) else each.session
        flags = [*(below_root(each.session.id, each.call, tree) if place is root else ()), *flags_of(place)]
        yield from render_session.waiting(place.id, [each.call], flags)


async def _show_calls(screen: Screen, name: Name, call_id: str | None) -> int:
    """All calls that were ever made, or the named one, with all that they answered."""
    async with connected() as app:
        session = await find_known(app, name)
        made = calls_in([message async for message in session.transcript()])
        found = [call for call in made if call_id in (None, call.call_id)]
        if call_id is not None and not found:
            known = did_you_mean(call_id, (call.call_id for call in made))
            raise Misuse(f"session {visible(name.session_id)!r} has no call {visible(call_id)!r}; {known}")
        if call_id is not None:
            found[-1] = await _in_whole(screen, session, found[-1])
    screen.document(found if call_id is None else found[-1])
    for call in found:
        screen.show(*in_full(call), Text())
    if not found:
        screen.show(Text("there are no calls"))
    return 0


async def _in_whole(screen: Screen, session: Session, call: MadeCall) -> MadeCall:
    """With its whole output, where that was shortened and lies among the session's blobs."""
    try:
        whole = await session.stored.whole_output(call.output)
    except (NoBlob, BlobsUnavailable) as error:
        screen.remark(Text(f"the whole output can't be read: {one_line(visible(str(error)))}", "yellow"))
        return call
    return call if whole is None else dataclasses.replace(call, output=whole)


async def _show_steps(screen: Screen, name: Name) -> int:
    """All that happened, event by event, in OpenHands' words."""
    async with connected() as app:
        session = await find_known(app, name)
        events = [event async for event in session.trajectory()]
    screen.document(events)
    screen.show(*render_session.steps(events, width=screen.width))
    return 0


async def _elsewhere(app: Longhaul, user: str) -> str:
    """What a list of one user's, in which nothing stands, leaves out."""
    all_, nobodys = await app.count_open(), await app.count_open(without_user=True)
    if all_ is None or nobodys is None:
        return f" of user {user!r}"
    return f" of user {user!r}; without --user: {all_} open sessions, of which {nobodys} have no user"


@commands.command()
async def inbox(
    screen: Screen,
    *,
    user: options.User = None,
    team: Annotated[str | None, typer.Option(help="Of agents with this `team`.")] = None,
    tool: Annotated[str | None, typer.Option(help="Calls of this tool.")] = None,
    overdue: Annotated[
        bool, typer.Option("--overdue", help="Only calls that were reminded of, escalated or expired.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"The most entries to list; default: {render_inbox.USUAL_LINES}.")
    ] = None,
    long: Annotated[
        bool, typer.Option("--long", "-l", help="Show each call whole, with the commands that answer it.")
    ] = False,
) -> int:
    """With --json all entries, unless --limit is given."""
    async with connected() as app:
        found = await app.inbox(user=user, team=team, tool=tool, overdue=overdue)
        nothing = not (found.calls or found.stopped or found.silent)
        elsewhere = await _elsewhere(app, user) if nothing and user is not None else ""
    for_people = ("person", "resolution", "budget")
    calls = render_inbox.most_urgent_first(_waiting(found))
    waiting = [each for each in calls if each.call.waits_for in for_people or each.call.asked is not None]
    asleep = [each for each in calls if each.call.waits_for == "event"]
    screen.document(_documents(found, waiting, asleep)[:limit])
    if found.silent:
        names = ", ".join(one_line(card.session_id) for card in found.silent[:10])
        more = f" and {len(found.silent) - 10} more" if len(found.silent) > 10 else ""
        screen.remark(f"longhaul: these wait, but no worker answers for them: {names}{more}")
    if not waiting and not found.stopped and not found.silent:
        screen.show(Text(one_line(f"nothing waits for a person{elsewhere}")))
    if screen.as_json:
        return 0
    most = limit or render_inbox.USUAL_LINES
    total = len(waiting) + len(found.stopped) + len(found.parked) + len(asleep)
    if long:
        for part in islice(_in_full(found, waiting, asleep, width=screen.width), most):
            screen.show_folded(*part, Text())
    elif total:
        first = [*islice(_in_lines(found, waiting, asleep), most)]
        screen.show_folded(*render_inbox.lines(first, width=screen.width))
    if total > most:
        screen.remark(Text(f"{total - most} more; list them with --limit {total}", "yellow"))
    if not long and (waiting or found.stopped):
        screen.remark(Text("to answer: longhaul approve SESSION CALL; --long shows each call with its commands", "dim"))
    return 0


def _documents(found: Inbox, waiting: Sequence[WaitingLine], asleep: Sequence[WaitingLine]) -> list[dict[str, object]]:
    return [
        *(_row(each.place, each.call, each.card) for each in waiting),
        *(_stopped(card, status) for card, status in found.stopped),
        *(_row(each.card, each.call, each.card) for each in asleep),
        *(
            {**_named(card), "waits_for": "host", "asked_at": card.waiting_since, "why": why}
            for card, why in found.parked
        ),
    ]


def _in_lines(
    found: Inbox, waiting: Sequence[WaitingLine], asleep: Sequence[WaitingLine]
) -> Iterator[render_inbox.InboxLine]:
    yield from map(render_inbox.line_of_call, waiting)
    yield from (render_inbox.line_of_stopped(card, status) for card, status in found.stopped)
    yield from (render_inbox.line_of_parked(card, why) for card, why in found.parked)
    # Nobody has to do anything for these.
    yield from map(render_inbox.line_of_call, asleep)


def _waiting(found: Inbox) -> Iterator[WaitingLine]:
    for card, call in found.calls:
        asleep = call.waits_for == "event"
        place = card if asleep else _answered_at(found, card, call)
        yield WaitingLine(card, call, place, found.root_of(card) or card)


def _in_full(
    found: Inbox, waiting: Sequence[WaitingLine], asleep: Sequence[WaitingLine], *, width: int
) -> Iterator[Iterable[Text]]:
    def flags_of(each: WaitingLine) -> list[str]:
        under = [] if each.place is each.card else below_root(each.card.session_id, each.call, _tree(found, each.place))
        return [*under, *render.flags_for(each.place.user_id, each.place.agent)]

    yield from render_inbox.calls_in_full(waiting, flags_of, width=width)
    for card, status in found.stopped:
        yield render_inbox.stopped_in_full(card, status)
    for card, why in found.parked:
        yield render_inbox.parked_in_full(card, why)
    # Nobody has to do anything for these; the command wakes the session early.
    yield from render_inbox.calls_in_full(asleep, flags_of, width=width)


def _answered_at(found: Inbox, card: SessionCard, call: PendingCall) -> SessionCard:
    """The root's name, where that says which call is meant; else the session that waits."""
    root = found.root_of(card)
    if root is None:
        return card
    return root if is_found_from_root(call, _tree(found, root)) else card


def _tree(found: Inbox, root: SessionCard) -> list[PendingCall]:
    return [each for of, each in found.calls if root.workflow_id in (of.workflow_id, of.root_workflow_id)]


def _named(card: SessionCard) -> dict[str, object]:
    return {"session": card.session_id, "user": card.user_id, "agent": card.agent, "team": card.team}


def _row(place: SessionCard, call: PendingCall, card: SessionCard) -> dict[str, object]:
    """`place`: where it is answered; `sub_session` is there where that is not the session that waits."""
    below = {} if place is card else {"sub_session": card.session_id, "sub_agent": card.agent}
    return {**_named(place), **below, **call.model_dump(mode="json")}


def _stopped(card: SessionCard, status: Status) -> dict[str, object]:
    told = {"waits_for": "resume", "asked_at": card.waiting_since}
    if status.quarantine:
        return {**_named(card), **told, "quarantine": status.quarantine}
    return {**_named(card), **told, "paused_by": status.paused_by, "paused_why": status.paused_why}


@commands.command()
async def watch(
    s: Annotated[list[str], typer.Argument(metavar="S…", help="One session, or several in one feed.")],
    *,
    start: Annotated[int, typer.Option("--from", min=1, help="Number of the first event; default: 1.")] = 1,
    user: options.User = None,
    agent: options.Agent = None,
    play: options.Play = False,
    as_json: Annotated[bool, typer.Option("--json", help="One event a line as JSON, and nothing else.")] = False,
) -> int:
    names = [Name(each, user, agent) for each in s]
    screen = Screen(as_json=as_json, play=play)
    return await (_watch_all(screen, names, start) if s[1:] else _watch(screen, names[0], start))


async def _watch(screen: Screen, name: Name, start: int) -> int:
    """Until Ctrl-C, or until the session has closed. With --json one event a line, recorded ones and live ones."""
    async with connected() as app:
        session = await find_session(app, name)
        try:
            look = Look(screen, session, flags_of(session))
            async with aclosing(session.follow(start)) as events, screen.lively():
                async for event in events:
                    if screen.as_json:
                        write_json(event)
                    else:
                        await look.take(event)
        except NoSession:
            screen.remark(Text("the session has closed", style="dim"))
        await screen.sounds.done()
    return Exit.DONE


async def _watch_all(screen: Screen, names: Sequence[Name], start: int | None) -> int:
    """Several in one feed, until all have closed. With --json each line names its session."""
    async with connected() as app:
        sessions = [await find_session(app, name) for name in names]
        looks = {
            session.workflow_id: Look(screen, session, flags_of(session), f"{one_line(session.id)}, ")
            for session in sessions
        }
        last = ""
        async with app.feed(sessions, start=start, live=screen.as_json) as feed:
            async for item in feed:
                session, event = item.session, item.event
                if screen.as_json:
                    write_json({"session": session.id, "number": item.number, **event.outside()})
                    continue
                if last != session.workflow_id:
                    last = session.workflow_id
                    looks[last].begin_again()
                await looks[last].take(event)
                if event.name == CLOSED:
                    screen.remark(Text(f"{one_line(session.id)} has closed", style="dim"))
    return Exit.DONE


class Look:
    """At one session, by somebody who takes no part in it."""

    def __init__(self, screen: Screen, session: Session, flags: Sequence[str], name: str = "") -> None:
        """`flags` are repeated in the commands that answer; `name` begins each heading."""
        self._screen = screen
        self._session = session
        self._flags = flags
        self._name = name
        self._reply_id = ""
        self._headed = False
        self._progress: ReplyPrinter | None = None

    def begin_again(self) -> None:
        """Something else was shown meanwhile: say once more what this is about."""
        self._headed = False

    async def take(self, event: AgentEvent) -> None:
        if self._progress is None or event.reply_id not in ("", self._reply_id):
            self._reply_id, self._headed = event.reply_id, False
            self._progress = ReplyPrinter(self._screen, self._session, self._reply_id, looks_on=True)
        if not self._headed:
            self._headed = True
            head = f"{self._name}reply {self._reply_id}" if self._reply_id else self._name.rstrip(", ")
            self._screen.show(*([Text(head, style="bold" if self._name else "dim")] if head else []))
        await self._progress.take(event)
        if event.type.startswith("REQUIRE_"):
            await self._say_how(event)

    async def _say_how(self, event: AgentEvent) -> None:
        """The commands that answer what still waits; of a closed session nothing does."""
        asked = {call.id for call in event.tool_calls}
        try:
            pending = await self._session.own_pending()
        except NoSession:
            return
        for call in pending:
            if call.call_id in asked:
                self._screen.show(render_pending.how_to_answer(self._session.id, call, self._flags))
