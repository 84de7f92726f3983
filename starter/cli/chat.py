"""`longhaul chat`: a conversation, line by line."""

import asyncio
import os
import sys
import uuid
from collections.abc import Coroutine
from typing import Any

from rich.text import Text

from agent.entries_requests import When
from starter.cli.commands import Commands
from starter.cli.conversation import Conversation, Outcome, interrupting, newest_event
from starter.cli.finding import connected
from starter.cli.keys import read_line
from starter.cli.leaving import Exit
from starter.cli.opening import Wishes, open_session, whoami
from starter.cli.screen import Screen
from starter.session import Session
from starter.visible import harmless, one_line
from starter.wire import Refused

HISTORY = "chat_history"
"""What was typed, in the data directory."""


async def chat(wishes: Wishes, screen: Screen, *, play: bool = False) -> int:
    """Until /quit or the end of input. Returns the exit code."""
    screens = [screen]

    def tell(sentence: str) -> None:
        screens[-1].remark(Text(f"longhaul: {one_line(sentence)}", "yellow"))

    async with connected(tell) as app:
        session = await open_session(app, wishes)
        if screen.renders and screen.answers:
            from starter.cli.talk import Talk  # noqa: PLC0415  nobody else waits for what it is made with

            talk = Talk(session, whoami(), app.settings.data_dir / HISTORY, play=play)
            screens.append(talk.desk)  # what is typed there must not be written over
            return await talk.run()
        greeting = f"session {one_line(session.id)}; /help says more, Ctrl-D leaves, Ctrl-C interrupts"
        screen.remark(Text(greeting, style="dim"))
        return await Turns(session, screen).run()


class Turns:
    """One line, one reply, and then the next: for pipes, and for terminals on which nothing can be painted over."""

    busy = False
    """A line is read when the reply before it has ended."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._screen = screen
        self._session = session
        self._conversation = Conversation(session, screen, whoami(), stays=False)
        self._commands = Commands(session, screen, self, whoami())
        self._outcome: Outcome | None = None

    async def run(self) -> int:
        async with interrupting(self._conversation):
            await self._shown(self._conversation.catch_up())
        while (line := _next_line()) is not None:
            if line:
                await self._turn(line)
            if self._outcome is not None and self._outcome.code == Exit.PARKED and not self._screen.answers:
                break  # Nobody here can answer, so what is said next would only queue up.
        return Exit.DONE if self._outcome is None or self._screen.answers else self._outcome.code

    async def send(self, text: str, when: When) -> None:
        """Raises Refused."""
        start = await newest_event(self._session) + 1
        reply_id = await self._session.submit(text, request_id=uuid.uuid4().hex, when=when)
        await self._shown(self._conversation.see_through(reply_id, start))

    async def again(self, call_id: str) -> None:
        """Ask once more about what was left for later."""
        self._conversation.ask_again(call_id)
        await self._shown(self._conversation.catch_up(await newest_event(self._session) + 1))

    def text_of(self, request_id: str) -> str:
        """Nothing is said here while something waits."""
        del request_id
        return ""

    async def _turn(self, line: str) -> None:
        try:
            async with interrupting(self._conversation):
                start = await newest_event(self._session) + 1
                if not line.startswith("/"):
                    await self.send(line, "queue")
                    return
                await self._commands.do(line)
                if line.split(maxsplit=1)[0] in ("/resume", "/step"):
                    await self._shown(self._conversation.catch_up(start))
        except Refused as refusal:
            self._screen.show(Text(harmless(str(refusal)), "yellow"))
        except asyncio.CancelledError:
            # The second Ctrl-C, or an interrupted reply that took too long: back to the prompt, not out of the chat.
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
            self._outcome = None

    async def _shown(self, seeing: Coroutine[Any, Any, Outcome | None]) -> None:
        self._outcome = await seeing


def _next_line() -> str | None:
    """The next thing to say; None to leave."""
    try:
        line = read_line("> ") if os.isatty(0) else sys.stdin.readline() or None
    except KeyboardInterrupt:
        print()
        return ""
    return None if line is None or line.strip() == "/quit" else line.strip()
