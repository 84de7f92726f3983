"""A conversation in which one may type while the agent works: messages queue up, and Ctrl-C is for the reply."""

import asyncio
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.text import Text

from starter import render
from starter.cli.commands import Commands
from starter.cli.conversation import Conversation, newest_event
from starter.cli.desk import Desk
from starter.cli.leaving import Exit
from starter.session import Session
from starter.visible import harmless, one_line
from starter.wire import Refused

SEND_SECONDS = 5.0
"""For what was typed before one left to reach the session."""


class Talk:
    """One session at one desk."""

    def __init__(self, session: Session, approver: str, history: Path) -> None:
        self.session = session
        self.desk = Desk(history, self._typed, self.interrupt)
        self.conversation = Conversation(session, self.desk, approver)
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._replies: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        self._stopped = ""
        """The reply that Ctrl-C was for; `-` for none."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._typing: asyncio.Task[None] | None = None
        self._commands = Commands(session, self.desk, self.again)

    async def run(self) -> int:
        """Until Ctrl-D, /quit, or Ctrl-C twice. What the session does goes on."""
        greeting = f"session {one_line(self.session.id)}; /help says more, Ctrl-D leaves, Ctrl-C interrupts"
        self.desk.remark(Text(greeting, "dim"))
        self._typing = asyncio.create_task(self.desk.open())
        work = [asyncio.create_task(self._see()), asyncio.create_task(self._listen())]
        with self._signals():
            await asyncio.wait([self._typing, *work], return_when=asyncio.FIRST_COMPLETED)
            sent = asyncio.create_task(self._lines.join())
            await asyncio.wait([sent, *work], timeout=SEND_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            ended = [self._typing, sent, *work, *self._tasks]
            for task in ended:
                task.cancel()
            await asyncio.gather(*ended, return_exceptions=True)
        for task in (self._typing, *work):
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        if self.conversation.reply_id is not None:
            self.desk.remark(Text(f"the session goes on: longhaul chat --session {one_line(self.session.id)}", "dim"))
        return Exit.DONE

    def interrupt(self) -> None:
        """Ctrl-C: first what is typed goes, then the reply, then we."""
        if self.desk.forget_typed():
            return
        running = self.conversation.reply_id or "-"
        if self._stopped == running and self._typing is not None:
            self._typing.cancel()
            return
        self._stopped = running
        if running == "-":
            self.desk.remark(Text("Ctrl-C again, or Ctrl-D, leaves", "dim"))
            return
        task = asyncio.create_task(self.conversation.interrupt())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def again(self) -> None:
        """Ask once more about what was left for later."""
        self.conversation.ask_again()
        if (reply_id := (await self.session.status()).reply_id) and self.conversation.reply_id is None:
            self._replies.put_nowait((reply_id, await newest_event(self.session) + 1))

    def _typed(self, line: str) -> None:
        said = line.strip()
        if said == "/quit" and self._typing is not None:
            self._typing.cancel()
        elif said:
            self._stopped = ""
            self._lines.put_nowait(said)

    async def _listen(self) -> None:
        while True:
            await self._take(await self._lines.get())
            self._lines.task_done()

    async def _take(self, said: str) -> None:
        self.desk.show(render.user_said(said))
        try:
            if said.startswith("/"):
                await self._commands.do(said)
                return
            start = await newest_event(self.session) + 1
            busy = self.conversation.reply_id is not None
            reply_id = await self.session.submit(said, request_id=uuid.uuid4().hex)
        except Refused as refusal:
            self.desk.show(Text(harmless(str(refusal)), "yellow"))
            return
        if busy:
            self.desk.show(Text("queued: it is read when this reply has ended", "dim"))
        self._replies.put_nowait((reply_id, start))

    async def _see(self) -> None:
        await self.conversation.catch_up()
        while True:
            self.conversation.reply_id = None
            reply_id, start = await self._replies.get()
            await self.conversation.see_through(reply_id, start)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C while a question is asked, and from elsewhere; else it comes as a key."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.interrupt)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
