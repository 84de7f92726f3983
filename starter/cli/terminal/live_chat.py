"""A conversation in which one may type while the agent works: messages queue up, and Ctrl-C is for the reply."""

import asyncio
import itertools
import shlex
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from longhaul.agent.entries import When
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter import render
from longhaul.starter.cli.exit_codes import Exit
from longhaul.starter.cli.session_lookup import flags_of
from longhaul.starter.cli.terminal.conversation import Conversation, newest_event
from longhaul.starter.cli.terminal.pictures import with_pictures
from longhaul.starter.cli.terminal.prompt_screen import PromptScreen
from longhaul.starter.cli.terminal.slash_commands import NAMES, Commands
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.visible import harmless, one_line

Another = Callable[[str, AgentSpec], Session]
"""A session of the same user, by its name and the agent's settings."""
SEND_SECONDS = 5.0
"""For what was typed before one left to reach the session."""
ENDING_SECONDS = 1.0
"""So long after its last word a reply may take to end: what is typed at once must not be refused for it."""

_TAKEN: Mapping[When, str] = {
    "queue": "queued: it is read when this reply has ended; /drop takes it back",
    "now": "it is told at the next step",
    "interrupt": "the reply ends, and this is next",
}


@dataclass(frozen=True, slots=True, order=True)
class _Awaited:
    """A request whose reply is to be shown. What goes before all that waits is shown before it."""

    waits: bool
    number: int
    reply_id: str
    start: int


class LiveChat:
    """One session at one terminal at which one may type at any time."""

    def __init__(self, session: Session, approver: str, history: Path, another: Another, *, play: bool = False) -> None:
        self.session = session
        self.another = another
        self.next: Session | None = None
        """To talk with after this one."""
        self.screen = PromptScreen(history, self._typed, self.interrupt, commands=NAMES, play=play)
        self.conversation = Conversation(session, self.screen, approver, stays=True)
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._replies: asyncio.PriorityQueue[_Awaited] = asyncio.PriorityQueue()
        self._said: dict[str, str] = {}
        """By request id."""
        self._numbers = itertools.count()
        self._stopped = ""
        """The reply that Ctrl-C was for; `-` for none."""
        self._idle = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._typing: asyncio.Task[None] | None = None
        self._commands = Commands(session, self.screen, self, approver)

    async def run(self, typed: str = "") -> int:
        """Until Ctrl-D, /quit, or Ctrl-C twice. What the session does goes on. `typed`: what was typed before."""
        greeting = f"session {one_line(self.session.id)}; /help says more, Ctrl-D leaves, Ctrl-C interrupts"
        self.screen.remark(Text(greeting, "dim"))
        self._typing = asyncio.create_task(self.screen.open(typed))
        work = [asyncio.create_task(self._see()), asyncio.create_task(self._listen())]
        with self._signals():
            await asyncio.wait([self._typing, *work], return_when=asyncio.FIRST_COMPLETED)
            sent = asyncio.create_task(self._lines.join())
            await asyncio.wait([sent, *work], timeout=SEND_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            ended = [self._typing, sent, *work, *self._tasks]
            for task in ended:
                task.cancel()
            await asyncio.gather(*ended, self.screen.sounds.stop(), return_exceptions=True)
        for task in (self._typing, *work):
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        if self.conversation.has_begun:
            how = shlex.join(["longhaul", "chat", "--session", self.session.id, *flags_of(self.session)])
            word = "the session goes on" if self.conversation.reply_id is not None else "to come back"
            self.screen.remark(Text(f"{word}: {one_line(how)}", "dim"))
        return Exit.DONE

    def interrupt(self) -> None:
        """Ctrl-C: first what is typed goes, then the reply, then we."""
        if self.screen.forget_typed():
            return
        running = self.conversation.reply_id or "-"
        if self._stopped == running and self._typing is not None:
            self._typing.cancel()
            return
        self._stopped = running
        if running == "-":
            self.screen.remark(Text("Ctrl-C again, or Ctrl-D, leaves", "dim"))
            return
        task = asyncio.create_task(self.conversation.interrupt())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def busy(self) -> bool:
        return self.conversation.reply_id is not None

    async def is_idle(self) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), ENDING_SECONDS)
        return self._idle.is_set()

    def go_over_to(self, session: Session) -> None:
        """Leave this one for that."""
        self.next = session
        if self._typing is not None:
            self._typing.cancel()

    def text_of(self, request_id: str) -> str:
        return self._said.get(request_id, "")

    async def again(self, call_id: str) -> None:
        """Ask once more about what was left for later."""
        self.conversation.ask_again(call_id)
        if (reply_id := (await self.session.status()).reply_id) and not self.busy:
            self._await(reply_id, await newest_event(self.session) + 1)

    async def send(self, text: str, when: When) -> None:
        """Raises Refused."""
        start = await newest_event(self.session) + 1
        busy, request_id = self.busy, uuid.uuid4().hex
        self._said[request_id] = text
        reply_id = await self.session.submit(with_pictures(text), request_id=request_id, when=when)
        if busy:
            self.screen.show(Text(_TAKEN[when], "dim"))
        self._await(reply_id, start, first=when != "queue")

    def _await(self, reply_id: str, start: int, *, first: bool = False) -> None:
        self._replies.put_nowait(_Awaited(not first, next(self._numbers), reply_id, start))

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
        self.screen.show(render.user_said(said))
        try:
            if said.startswith("/"):
                await self._commands.do(said)
                return
            await self.send(said, "queue")
        except Refused as refusal:
            self.screen.show(Text(harmless(str(refusal)), "yellow"))

    async def _see(self) -> None:
        await self.conversation.come_back()
        while True:
            self.conversation.reply_id = None
            if self._replies.empty():
                self._idle.set()
            awaited = await self._replies.get()
            self._idle.clear()
            if reply_id := await self.conversation.of_request(awaited.reply_id):
                await self.conversation.see_through(reply_id, awaited.start)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C while a question is asked, and from elsewhere; else it comes as a key."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.interrupt)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
