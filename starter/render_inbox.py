"""Renders the inbox: one line for each thing that waits, or each call whole with the commands that answer it."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.cells import cell_len
from rich.text import Text

from longhaul.agent.values.conversation.messages import in_words
from longhaul.starter import render, render_pending, render_session
from longhaul.starter.client.cards import SessionCard
from longhaul.starter.client.inbox import is_overdue
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import PendingCall, Status

USUAL_LINES = 20
"""Shown without `--limit`: hundreds of calls must not push the most urgent ones off the screen."""
_LEAST_CHARS = 24
"""For what a call does. Where the other columns leave less, each entry has two lines."""
_HEADS = ("WAITS", "DUE", "SESSION", "USER", "CALL", "WHAT")
_NO_DEADLINE = "9999"


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """A call in the inbox."""

    card: SessionCard
    """The session that waits."""
    call: PendingCall
    place: SessionCard
    """The session at whose name the call is answered: the root of the tree, or the session itself."""
    head: SessionCard
    """The root of the tree, whether or not the call can be answered at its name."""


@dataclass(frozen=True, slots=True)
class InboxLine:
    """What one line of the inbox says."""

    since: str
    """ISO 8601."""
    card: SessionCard
    what: Text
    due: str = ""
    call_id: str = ""


def most_urgent_first(calls: Iterable[WaitingLine]) -> list[WaitingLine]:
    """Late calls first, then those with the nearest deadline, then the newest; calls of one turn keep their order."""
    now = datetime.now(UTC)
    newest = sorted(calls, key=lambda each: each.call.asked_at, reverse=True)
    return sorted(newest, key=lambda each: (not is_overdue(each.call, now), each.call.expires_at or _NO_DEADLINE))


def line_of_call(waiting: WaitingLine) -> InboxLine:
    call = waiting.call
    match call.waits_for:
        case "budget":
            what = Text.assemble(("more budget: ", "yellow"), one_line(call.reason))
        case "event":
            until = f" until {render.when(call.wakes_at)}" if call.wakes_at else ""
            what = Text(f"asleep{until}, or until the event {one_line(visible(call.event))!r}", "dim")
        case "resolution":
            what = Text.assemble(("outcome unknown: ", "yellow"), _done_by(call))
        case _ if call.asked is not None:
            what = Text.assemble(("an MCP server asks: ", "yellow"), one_line(visible(in_words(call.asked))))
        case _:
            given = f"{len(call.approved_by)} of {call.approvers} approvals: " if call.approvers > 1 else ""
            what = Text.assemble((given, "yellow"), _done_by(call))
    return InboxLine(call.asked_at, waiting.place, what, _due(call), one_line(visible(call.call_id)))


def line_of_stopped(card: SessionCard, status: Status) -> InboxLine:
    """Of a session that does nothing until somebody resumes it."""
    if status.quarantine:
        return InboxLine(card.waiting_since, card, Text(f"quarantined: {one_line(status.quarantine)}", "red"))
    return InboxLine(status.paused_since, card, Text(one_line(render_session.paused(status)), "magenta"))


def line_of_parked(card: SessionCard, why: str) -> InboxLine:
    """Of a session that waits for the host of its workspace."""
    return InboxLine(card.waiting_since, card, Text(f"parked: {one_line(why)}", "yellow"))


def _done_by(call: PendingCall) -> Text:
    plan = render_pending.plan_of(call)
    if plan is not None:
        return Text(f"a plan: {render.short(plan)}")
    path = f"{one_line(visible(call.path)).rpartition(' › ')[0]} › " if " › " in call.path else ""
    return Text.assemble((path, "dim"), render.call_line(visible(call.tool), visible(call.input)))


def _late(call: PendingCall) -> str:
    return "OVERDUE" if call.expired_at else "ESCALATED" if call.escalated_at else ""


def _due(call: PendingCall) -> str:
    if late := _late(call):
        return late
    left = render_session.until(call.expires_at) if call.expires_at else ""
    return f"{left}, reminded".lstrip(", ") if call.reminded_at else left


def lines(entries: Sequence[InboxLine], *, width: int) -> Iterator[Text]:
    """A head, and one line for each entry, at most `width` cells wide; its names are never cut, for they are copied.
    In a terminal that is too narrow for them each entry has two lines, and there is no head."""
    table = [list(_HEADS), *(_cells(entry) for entry in entries)]
    used = [column for column in range(len(_HEADS)) if any(row[column] for row in table[1:])]
    widths = {column: max(cell_len(row[column]) for row in table) for column in used}
    names = sum(widths[column] + 2 for column in used[:-1])
    if names + _LEAST_CHARS > width:
        for entry in entries:
            yield from _in_two_lines(entry, width)
        return
    for number, row in enumerate(table):
        shown = Text(style="" if number else "bold")
        for column in used[:-1]:
            style = _style(column, row[column]) if number else ""
            shown.append(row[column], style).append(" " * (widths[column] - cell_len(row[column]) + 2))
        shown.append_text(entries[number - 1].what if number else Text(_HEADS[-1]))
        shown.rstrip()
        shown.truncate(width, overflow="ellipsis")
        yield shown


def _cells(entry: InboxLine) -> list[str]:
    since = render_session.ago(entry.since).removesuffix(" ago")
    names = (entry.card.session_id, entry.card.user_id or "", entry.call_id)
    return [since, entry.due, *map(one_line, names), entry.what.plain]


def _style(column: int, cell: str) -> str:
    match _HEADS[column]:
        case "DUE":
            return "red" if cell in ("OVERDUE", "ESCALATED") else "yellow"
        case "SESSION" | "CALL":
            return "bold"
        case _:
            return ""


def _in_two_lines(entry: InboxLine, width: int) -> Iterator[Text]:
    since, due, session, user, call_id, _ = _cells(entry)
    yield Text(session, "bold")
    told = ", ".join(filter(None, (call_id, f"{since} ago", user and f"of {user}", due)))
    what = entry.what.copy()
    what.truncate(width, overflow="ellipsis")
    yield Text(f"  {told}: ").append_text(what)


def calls_in_full(
    calls: Sequence[WaitingLine], flags_of: Callable[[WaitingLine], list[str]], *, width: int
) -> Iterator[list[Text]]:
    """Each call whole, and the commands that answer it, with their flags."""
    together = Counter((each.card.workflow_id, each.call.waits_for) for each in calls)
    shown = Counter[tuple[str, str]]()
    for each in calls:
        of = each.card.workflow_id, each.call.waits_for
        shown[of] += 1
        number = f", {shown[of]} of {together[of]}" if together[of] > 1 else ""
        how = render_pending.how_to_answer(each.place.session_id, each.call, flags_of(each))
        if each.call.waits_for == "event":
            until = [Text(f"  {line}") for line in render_pending.deadline(each.call)]
            yield [Text(f"{name(each.card)}, asleep", style="bold"), *until, how]
        else:
            whole = render_pending.pending_call(each.call, width=width)
            yield [head(each.head, each.call).append(number, "dim"), whole, how]


def head(card: SessionCard, call: PendingCall) -> Text:
    """Whose, since when, until when, and whether it is late."""
    shown = Text(f"{name(card)}, {render_session.ago(call.asked_at)}", style="bold")
    if call.expires_at:
        shown.append(f", deadline {render_session.until(call.expires_at)}")
    if late := _late(call):
        shown.append(f", {late}", "red")
    elif call.reminded_at:
        shown.append(", reminded of", "yellow")
    return shown


def stopped_in_full(card: SessionCard, status: Status) -> Iterator[Text]:
    line = line_of_stopped(card, status)
    yield Text(f"{name(card)}, {render_session.ago(line.since)}", style="bold")
    yield Text("  ").append_text(line.what)
    resume = shlex.join(["longhaul", "resume", card.session_id, *render.flags_for(card.user_id, card.agent)])
    yield Text(f"  {one_line(resume)}")


def parked_in_full(card: SessionCard, why: str) -> Iterator[Text]:
    yield Text(f"{name(card)}, {render_session.ago(card.waiting_since)}", style="bold")
    yield Text("  ").append_text(line_of_parked(card, why).what)


def name(card: SessionCard) -> str:
    return f"{one_line(card.session_id)}{f' of {one_line(card.user_id)}' if card.user_id else ''}"
