"""The command `inbox`: everything that waits for a person, oldest first; and what sleeps."""

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from longhaul.starter import render_pending, render_session
from longhaul.starter.cli.session_lookup import connected
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.work.tree import below, is_found_from_root
from longhaul.starter.client.cards import SessionCard
from longhaul.starter.client.inbox import Inbox
from longhaul.starter.visible import one_line
from longhaul.workflows.contract import PendingCall, Status


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """Which part of the inbox; None is all of it."""

    user: str | None = None
    team: str | None = None
    tool: str | None = None
    overdue: bool = False


async def inbox(screen: Screen, wanted: InboxFilter) -> int:
    """Calls that wait for a person, and sessions that wait for somebody to resume them."""
    async with connected() as app:
        found = await app.inbox(user=wanted.user, team=wanted.team, tool=wanted.tool, overdue=wanted.overdue)
    for_people = ("person", "settlement", "budget")
    waiting = [
        (card, call, _answered_at(found, card, call))
        for card, call in found.calls
        if call.waits_for in for_people or call.asked is not None
    ]
    asleep = [(card, call) for card, call in found.calls if call.waits_for == "wake-up"]
    stopped = [*found.held, *found.paused]
    rows = [_row(place, call, card) for card, call, place in waiting]
    rows += [_stopped(card, why) for card, why in stopped]
    parked = [
        {**_named(card), "waits_for": "host", "asked_at": card.waiting_since, "why": why} for card, why in found.parked
    ]
    screen.document([*rows, *(_row(card, call, card) for card, call in asleep), *parked])
    _mention_silent(screen, found)
    if not waiting and not stopped and not found.silent:
        screen.show(Text("nothing waits for a person"))
    for number, (card, call, place) in zip(_numbers(waiting), waiting, strict=True):
        screen.show_folded(_head(found.root_of(card) or card, call).append(number, "dim"))
        flags = (
            [*below(card.session_id, call, _tree(found, place)), *_flags(place)] if place is not card else _flags(card)
        )
        screen.show_folded(
            render_pending.pending_call(call, width=screen.width),
            render_pending.how_to_answer(place.session_id, call, flags),
            Text(),
        )
    for card, status in stopped:
        screen.show_folded(*_shown_stopped(card, status), Text())
    for card, why in found.parked:
        screen.show_folded(Text(f"{_name(card)}, {render_session.ago(card.waiting_since)}", style="bold"))
        screen.show_folded(Text(f"  parked: {one_line(why)}", "yellow"), Text())
    for card, call in asleep:
        screen.show_folded(*_shown_asleep(card, call), Text())
    return 0


def _answered_at(found: Inbox, card: SessionCard, call: PendingCall) -> SessionCard:
    """The root's name, where that says which call is meant; else the session that waits."""
    root = found.root_of(card)
    if root is None:
        return card
    return root if is_found_from_root(call, _tree(found, root)) else card


def _tree(found: Inbox, root: SessionCard) -> list[PendingCall]:
    return [each for of, each in found.calls if root.workflow_id in (of.workflow_id, of.root_workflow_id)]


def _numbers(waiting: list[tuple[SessionCard, PendingCall, SessionCard]]) -> Iterator[str]:
    """Which of a session's calls each one is, where several wait together."""
    together = Counter((card.workflow_id, call.waits_for) for card, call, _ in waiting)
    shown = Counter[tuple[str, str]]()
    for card, call, _ in waiting:
        of = card.workflow_id, call.waits_for
        shown[of] += 1
        yield f", {shown[of]} of {together[of]}" if together[of] > 1 else ""


def _mention_silent(screen: Screen, found: Inbox) -> None:
    if not found.silent:
        return
    names = ", ".join(one_line(card.session_id) for card in found.silent[:10])
    more = f" and {len(found.silent) - 10} more" if len(found.silent) > 10 else ""
    screen.remark(f"longhaul: these wait, but no worker answers for them: {names}{more}")


def _head(card: SessionCard, call: PendingCall) -> Text:
    """Whose, since when, until when, and whether it is late."""
    shown = Text(f"{_name(card)}, {render_session.ago(call.asked_at)}", style="bold")
    if call.expires_at:
        shown.append(f", deadline {render_session.until(call.expires_at)}")
    if call.escalated_at or call.expired_at:
        shown.append(", ESCALATED" if call.escalated_at and not call.expired_at else ", OVERDUE", "red")
    elif call.reminded_at:
        shown.append(", reminded of", "yellow")
    return shown


def _shown_stopped(card: SessionCard, status: Status) -> Iterator[Text]:
    since = card.waiting_since if status.hold else status.paused_since
    yield Text(f"{_name(card)}, {render_session.ago(since)}", style="bold")
    if status.hold:
        yield Text(f"  held: {one_line(status.hold)}", "red")
    else:
        yield Text(f"  {one_line(render_session.paused(status))}", "yellow")
    resume = shlex.join(["longhaul", "resume", card.session_id, *_flags(card)])
    yield Text(f"  {one_line(resume)}")


def _shown_asleep(card: SessionCard, call: PendingCall) -> Iterator[Text]:
    """Nobody has to do anything; whoever wants to may wake it."""
    yield Text(f"{_name(card)}, asleep", style="bold")
    for line in render_pending.deadline(call):
        yield Text(f"  {line}")
    yield render_pending.how_to_answer(card.session_id, call, _flags(card))


def _name(card: SessionCard) -> str:
    return f"{one_line(card.session_id)}{f' of {one_line(card.user_id)}' if card.user_id else ''}"


def _flags(card: SessionCard) -> list[str]:
    user = [] if card.user_id is None else ["--user", card.user_id]
    return [*user, "--agent", card.agent]


def _named(card: SessionCard) -> dict[str, object]:
    return {"session": card.session_id, "user": card.user_id, "agent": card.agent, "team": card.team}


def _row(place: SessionCard, call: PendingCall, card: SessionCard) -> dict[str, object]:
    """`place`: where it is answered; `sub_session` is there where that is not the session that waits."""
    below = {} if place is card else {"sub_session": card.session_id, "sub_agent": card.agent}
    return {**_named(place), **below, **call.model_dump(mode="json")}


def _stopped(card: SessionCard, status: Status) -> dict[str, object]:
    told = {"waits_for": "resume", "asked_at": card.waiting_since}
    if status.hold:
        return {**_named(card), **told, "hold": status.hold}
    return {**_named(card), **told, "paused_by": status.paused_by, "paused_why": status.paused_why}
