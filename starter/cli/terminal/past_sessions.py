"""Sessions that somebody comes back to: found or picked from a list, their last turns as they were shown, and what is
said where one stands still.
"""

import asyncio
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal

from rich.text import Text

from longhaul.agent.plain.errors import LonghaulError
from longhaul.agent.values.conversation.messages import Msg, TextBlock, title_of
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter import render, render_session
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_start import Wishes, adjust, as_it_was
from longhaul.starter.cli.terminal.key_presses import ask
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.terminal.text_layout import MarkdownText
from longhaul.starter.client.agent_files import find_agent
from longhaul.starter.client.cards import CLOSED, SessionCard
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.visible import one_line
from longhaul.workflows.contract import Status

TURNS = 2
LOOK_BACK_MESSAGES = 60


async def last_turns(session: Session, status: Status) -> list[Msg]:
    """What was asked and answered last; of the reply that the status tells of nothing, for it is shown by its
    events."""
    start = max(status.messages - LOOK_BACK_MESSAGES, 0)
    messages = [message async for message in session.transcript(start)]
    # A copy of another session has its messages in the context alone.
    messages = messages or [message async for message in session.context()]
    return of_turns(messages, status.reply_id)


def of_turns(messages: Sequence[Msg], reply_id: str) -> list[Msg]:
    """From the request before the last one on, up to the reply."""
    started = next((place for place, one in enumerate(messages) if reply_id and one.id == reply_id), len(messages))
    before = list(messages[:started])
    asked = [
        place
        for place, message in enumerate(before)
        if message.role == "user"
        and bool(" ".join(block.text for block in message.content if isinstance(block, TextBlock)).strip())
    ]
    return before[asked[-TURNS] :] if len(asked) >= TURNS else before


def shown_again(messages: Sequence[Msg], screen: Screen) -> Iterator[Text]:
    """Under a heading, if there are any; what is cut can be shown whole by a command of the chat."""

    def laid_out(text: str) -> Text:
        parts = screen.out.render(MarkdownText(text))
        shown = Text.assemble(*((part.text, part.style or "") for part in parts))
        shown.rstrip()
        return shown

    if messages:
        yield Text("the last messages:", "dim")
    yield from render_session.transcript(
        messages,
        width=screen.width,
        whole_by=lambda call_id: f"/output {call_id}",
        said=laid_out if screen.renders else render.model_text,
    )


async def first_request(session: Session) -> str:
    """How it begins; empty where nothing was asked yet."""
    async for message in session.transcript():
        if title := title_of((message,)):
            return title
    return ""


_TURNS = ("paused", "step_asked", "resumed")
"""Names of the events after which it may stand still, or go on."""


class PausedSession:
    """Of one session at one terminal."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen
        self._unsure = True
        self._still = False
        self._told = False

    def hear(self, event: AgentEvent) -> bool:
        """Whether the event is about this; the session is asked again after it."""
        if event.type != "CUSTOM" or event.name not in _TURNS:
            return False
        if event.name == "resumed" and self._told:
            by = one_line(str(event.value["by"]))
            self._screen.show(Text(f"it continues{f': resumed by {by}' if by else ''}", "magenta"))
            self._still = self._told = False
        self._unsure = True
        return True

    async def still(self) -> bool:
        """Whether nothing moves until somebody lets it; says so, with the command for it, when that is news."""
        if not self._unsure:
            return self._still
        status = await self._session.status()
        before, self._unsure = self._still, status.stepping
        self._still = bool(status.quarantine or status.paused_since) and not status.stepping
        if self._still and not before:
            self._told = True
            self._screen.show(*render_session.standing_still(status))
        return self._still


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
        raise Misuse("there is no session to continue; leave out --continue and --pick to start one")
    card = max(cards, key=_newest) if which == "newest" else await _picked(app, screen, cards)
    session = await as_it_was(app, app.attach(card))
    if session is None:
        raise Misuse(f"what there was of session {one_line(card.session_id)!r} cannot be read anymore; start another")
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
