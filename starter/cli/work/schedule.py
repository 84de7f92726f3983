"""`longhaul schedule`: requests at times that are set."""

import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

from rich.text import Text

from longhaul.agent.values.deadlines import LONGEST_SECONDS, seconds_in
from longhaul.agent.values.scheduled_request import Overlap
from longhaul.starter import render_session
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_lookup import connected
from longhaul.starter.cli.session_start import Wishes, agent_to_begin
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.agent_files import find_sections
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.file_sections import apply_schedules
from longhaul.starter.client.schedule_cards import PastFiring, ScheduleCard
from longhaul.starter.client.schedules import Schedules
from longhaul.starter.visible import one_line, visible


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the flags of `schedule add` say beside those about the agent."""

    name: str
    prompt: str
    cron: str = ""
    zone: str = ""
    every: str | None = None
    overlap: str | None = None
    catch_up: str = "1d"
    paused: bool = False


async def add(screen: Screen, wanted: Wanted, wishes: Wishes) -> int:
    overlap = next((one for one in get_args(Overlap) if one == wanted.overlap), None)
    if wanted.overlap is not None and overlap is None:
        raise Misuse(f"--overlap: there is no {wanted.overlap!r}; there are: {', '.join(get_args(Overlap))}")
    every = None if wanted.every is None else _span("--every", wanted.every)
    async with connected() as app:
        spec = await agent_to_begin(app, wishes)
        card = await app.schedules.add(
            wanted.name,
            wanted.prompt,
            agent=spec,
            user=wishes.user,
            session=wishes.session or "",
            cron=wanted.cron,
            zone=wanted.zone,
            every=every,
            overlap=overlap,
            catch_up=_span("--catch-up", wanted.catch_up),
            paused=wanted.paused,
        )
    screen.document(_row(card))
    screen.show_folded(*_shown(card))
    return 0


async def apply(screen: Screen, wishes: Wishes, *, remove: bool) -> int:
    """`wishes.agent`: whose file it is."""
    tables = find_sections(wishes.agent or "longhaul").schedules
    async with connected() as app:
        spec = await agent_to_begin(app, wishes)
        applied = await apply_schedules(app.schedules, spec, tables, user=wishes.user, remove=remove)
    screen.document([dataclasses.asdict(one) for one in applied])
    if not applied:
        screen.show(Text("the file has no schedules"))
    for one in applied:
        hint = f"; it stays until `longhaul schedule remove {one.name}`" if one.outcome == "gone from the file" else ""
        screen.show_folded(Text(one_line(visible(f"{one.name}: {one.outcome}{hint}"))))
    return 0


def _span(flag: str, text: str) -> timedelta:
    seconds = seconds_in(text)
    if seconds is None:
        raise Misuse(f"{flag}: {text!r} is no span; write a number with its unit, as in 90s, 30m, 4h, 2d")
    if seconds > LONGEST_SECONDS:
        raise Misuse(f"{flag}: {LONGEST_SECONDS / 86_400:g}d is the most")
    return timedelta(seconds=seconds)


async def list_all(screen: Screen) -> int:
    async with Longhaul.connect() as app:
        cards = await app.schedules.list()
    screen.document([_row(card) for card in cards])
    if not cards:
        screen.show(Text("no schedules"))
    for card in cards:
        screen.show_folded(*_shown(card))
    return 0


async def show(screen: Screen, name: str) -> int:
    async with Longhaul.connect() as app:
        card, firings = await app.schedules.show(name), await app.schedules.firings(name)
    screen.document({**_row(card), "firings": [dataclasses.asdict(firing) for firing in firings]})
    screen.show_folded(*_shown(card))
    for firing in firings:
        screen.show_folded(_past(firing))
    return 0


async def pause(screen: Screen, name: str, why: str) -> int:
    return await _done(screen, name, "paused", lambda schedules: schedules.pause(name, why=why))


async def resume(screen: Screen, name: str) -> int:
    return await _done(screen, name, "resumed", lambda schedules: schedules.resume(name))


async def trigger(screen: Screen, name: str) -> int:
    return await _done(screen, name, "triggered", lambda schedules: schedules.trigger(name))


async def remove(screen: Screen, name: str) -> int:
    return await _done(screen, name, "removed", lambda schedules: schedules.remove(name))


async def _done(screen: Screen, name: str, word: str, act: Callable[[Schedules], Awaitable[PastFiring | None]]) -> int:
    async with Longhaul.connect() as app:
        firing = await act(app.schedules)
    screen.document({"schedule": name, word: True} | ({"firing": dataclasses.asdict(firing)} if firing else {}))
    screen.show_folded(Text(one_line(f"{name} is {word}")), *([_past(firing)] if firing else []))
    return 0


def _row(card: ScheduleCard) -> dict[str, object]:
    return {
        "name": card.name,
        **card.terms.model_dump(mode="json"),
        "in_words": card.terms.in_words(),
        "paused": card.paused,
        "note": card.note,
        "next_at": card.next_at,
    }


def _shown(card: ScheduleCard) -> list[Text]:
    state = (
        "paused" if card.paused else f"next {render_session.until(card.next_at)}" if card.next_at else "no firing ahead"
    )
    head = Text(f"{one_line(card.name)}, {state}", style="bold")
    head.append(f": {one_line(visible(card.note))}" if card.note else "", "yellow")
    whom = card.terms.agent + (f" for {card.terms.user}" if card.terms.user else "")
    return [
        head,
        Text(f"  {one_line(visible(card.terms.in_words()))}"),
        Text(f"  asks {one_line(visible(whom))}: ", "dim").append(one_line(visible(card.terms.prompt))),
    ]


def _past(firing: PastFiring) -> Text:
    what = f"{firing.session} {firing.reply_id}" if firing.state == "asked" else firing.why
    return Text(f"  {firing.at}  {firing.state:<9}  {one_line(visible(what))}")
