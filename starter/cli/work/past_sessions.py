"""Sessions to come back to: the newest one, or the one that is picked from a list."""

import asyncio
import textwrap
from typing import Literal

from rich.text import Text

from longhaul.agent.plain.errors import LonghaulError
from longhaul.starter import render_session
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_start import Wishes, adjust, as_it_was
from longhaul.starter.cli.terminal.key_presses import ask
from longhaul.starter.cli.terminal.last_turns import first_request
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.agent_files.agents import find_agent
from longhaul.starter.client.cards import CLOSED, SessionCard
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.visible import one_line

Which = Literal["named", "newest", "picked"]
LISTED = 15
TITLE_CHARS = 60
LEAST_CELLS = 8
"""Of a row, however narrow the terminal is."""
TITLE_SECONDS = 5.0
"""For each of them to say what it began with; one whose workers are gone is listed without."""


async def found_again(app: Longhaul, screen: Screen, wishes: Wishes, which: Which) -> Session:
    """The session to go on with, set up as the flags say. Raises Misuse when there is none, or none was picked."""
    agent = None if wishes.agent is None else find_agent(wishes.agent).name
    cards = [card for card in await app.sessions(user=wishes.user, closed=True) if agent in (None, card.agent)]
    if not cards:
        raise Misuse("there is no session to come back to; leave out --continue and --pick to begin one")
    card = max(cards, key=_newest) if which == "newest" else await _picked(app, screen, cards)
    session = await as_it_was(app, app.attach(card))
    if session is None:
        raise Misuse(f"what there was of session {one_line(card.session_id)!r} can't be read any more; begin another")
    await adjust(app, session, wishes)
    return session


def _newest(card: SessionCard) -> tuple[bool, str]:
    """Open ones before those that have closed."""
    return card.status != CLOSED, max(card.started_at, card.waiting_since)


async def _picked(app: Longhaul, screen: Screen, cards: list[SessionCard]) -> SessionCard:
    listed = cards[:LISTED]
    titles = await asyncio.gather(*(_title(app, card) for card in listed))
    for number, (card, title) in enumerate(zip(listed, titles, strict=True), 1):
        about = f"{card.session_id}, {card.agent}, {card.status}, {render_session.ago(card.started_at)}"
        about += f", {render_session.spent(card)}" if card.tokens or card.dollars else ""
        begins = textwrap.shorten(one_line(title), TITLE_CHARS, placeholder=" …") or "(no request yet)"
        _show_below(screen, Text(f"{number:>3} ", "bold"), Text(begins))
        _show_below(screen, Text("    "), Text(one_line(about), "dim"))
    if len(cards) > LISTED:
        screen.show(Text(f"    and {len(cards) - LISTED} older ones: longhaul sessions", "dim"))
    while (answer := ask("which one? a number: ")) and not _is_listed(answer, listed):
        screen.show(Text(f"a number from 1 to {len(listed)}, or nothing to leave", "yellow"))
    if not answer:
        raise Misuse("no session was picked")
    return listed[int(answer) - 1]


def _show_below(screen: Screen, mark: Text, text: Text) -> None:
    """In rows as wide as the terminal, broken at spaces, each below the first one's text."""
    for row in text.wrap(screen.out, max(screen.width - mark.cell_len, LEAST_CELLS)):
        row.rstrip()
        screen.show(Text.assemble(mark, row))
        mark = Text(" " * mark.cell_len)


def _is_listed(answer: str, listed: list[SessionCard]) -> bool:
    return answer in {str(number) for number in range(1, len(listed) + 1)}


async def _title(app: Longhaul, card: SessionCard) -> str:
    """As its row says; one whose row does not, as of a copy, is asked."""
    if card.title:
        return card.title
    try:
        async with asyncio.timeout(TITLE_SECONDS):
            return await first_request(app.attach(card))
    except (LonghaulError, TimeoutError):
        return "(it does not say)"
