"""`longhaul watch`: what a session does, as it does it."""

from collections.abc import Sequence
from contextlib import aclosing

from rich.text import Text

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter import render_pending
from longhaul.starter.cli.exit_codes import Exit
from longhaul.starter.cli.session_lookup import Name, connected, find_session, flags_of
from longhaul.starter.cli.terminal.reply_printer import ReplyPrinter
from longhaul.starter.cli.terminal.screen import Screen, write_json
from longhaul.starter.client.feed import CLOSED
from longhaul.starter.client.reading.asking import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.visible import one_line


async def watch(screen: Screen, name: Name, start: int) -> int:
    """Until Ctrl-C, or until the session has closed. With --json one event a line, recorded ones and live ones."""
    async with connected() as app:
        session = await find_session(app, name)
        try:
            await _follow(screen, session, start, flags_of(session))
        except NoSession:
            screen.remark(Text("the session has closed", style="dim"))
        await screen.sounds.done()
    return Exit.DONE


async def watch_all(screen: Screen, names: Sequence[Name], start: int | None) -> int:
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
                    looks[last].begin_anew()
                await looks[last].take(event)
                if event.name == CLOSED:
                    screen.remark(Text(f"{one_line(session.id)} has closed", style="dim"))
    return Exit.DONE


async def _follow(screen: Screen, session: Session, start: int, flags: Sequence[str]) -> None:
    look = Look(screen, session, flags)
    async with aclosing(session.follow(start)) as events, screen.lively():
        async for event in events:
            if screen.as_json:
                write_json(event)
            else:
                await look.take(event)


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

    def begin_anew(self) -> None:
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
            pending = await self._session.pending()
        except NoSession:
            return
        for call in pending:
            if call.call_id in asked:
                self._screen.show(render_pending.how_to_answer(self._session.id, call, self._flags))
