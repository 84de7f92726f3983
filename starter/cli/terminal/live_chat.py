"""A conversation in which one may type while the agent works: messages queue up, and Ctrl-C is for the reply.

Above the line that is typed stands what changes; Tab completes commands, modes, and files behind an `@`.
"""

import asyncio
import itertools
import os
import shlex
import signal
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle
from rich.console import Console, RenderableType
from rich.text import Text

from longhaul.agent.entries import When
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter import render, render_session
from longhaul.starter.cli.exit_codes import Exit
from longhaul.starter.cli.session_lookup import flags_of
from longhaul.starter.cli.terminal.conversation import Conversation, newest_event, with_pictures
from longhaul.starter.cli.terminal.key_presses import CTRL_D
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.terminal.slash_commands import NAMES, Commands
from longhaul.starter.cli.terminal.text_layout import draw, rows_of
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.visible import harmless, one_line
from longhaul.workflows.contract import Status


class Completions(Completer):
    def __init__(self, commands: Iterable[str]) -> None:
        """`commands` with their slash."""
        self._commands = sorted(commands)
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Of what stands before the cursor."""
        typed = document.text_before_cursor
        word = typed.split()[-1] if typed and not typed[-1].isspace() else ""
        if typed.startswith("/") and word == typed:
            yield from _beginning(self._commands, word)
        elif typed.startswith("/mode "):
            yield from _beginning([mode.value for mode in PermissionMode], word)
        elif word.startswith("@"):
            path = word[1:]
            yield from self._paths.get_completions(Document(path, len(path)), complete_event)


def _beginning(words: Iterable[str], start: str) -> Iterable[Completion]:
    return (Completion(word, start_position=-len(start)) for word in words if word.startswith(start))


Found = TypeVar("Found")


class PromptScreen(Screen):
    """A screen that renders. It has to be open for anything to stand below."""

    whole_by = "Ctrl-O"

    def __init__(
        self,
        history: Path,
        take: Callable[[str], None],
        interrupt: Callable[[], None],
        *,
        commands: Iterable[str] = (),
        play: bool = False,
    ) -> None:
        """`commands` are completed at Tab."""
        super().__init__(play=play)
        self._take = take
        self._cells: list[int] = []
        """Of each line that stands below."""
        self._drawn_at = 0
        self._rows_more = 0
        """Of what stood there before it was drawn again, and is still to be taken away."""
        self._prompt: PromptSession[str] = PromptSession(
            history=_kept(history),
            key_bindings=_keys(take, interrupt),
            erase_when_done=True,
            completer=Completions(commands),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            reserve_space_for_menu=0,
            output=_output(self.out, self._take_more_rows),
        )

    async def open(self, typed: str = "") -> None:
        """Give each line that is typed to `take`, until Ctrl-D. `typed`: what was typed before. Several lines of it
        may be something pasted: none is given before a person has seen them."""
        *lines, started = typed.split("\n")
        if started.startswith(CTRL_D):
            return
        started = started.partition(CTRL_D)[0]
        if len(lines) > 1:
            started = "\n".join([*lines, started])
        elif lines:
            self._take(lines[0])
        while True:
            try:
                # It returns by keys alone that are not ours: what was typed is not lost by them.
                self._take(await self._prompt.prompt_async(self._message, default=started, handle_sigint=False))
                started = ""
            except EOFError:
                return

    def forget_typed(self) -> bool:
        """Empty the line that is being typed; False when it was empty, or something is asked instead."""
        if self._aside:
            return False
        typed = bool(self._prompt.default_buffer.text)
        self._prompt.default_buffer.reset()
        return typed

    async def aside(self, work: Callable[[], Awaitable[Found]]) -> Found:
        """What was typed so far stays, and is there again afterwards."""
        async with in_terminal():
            self._aside = True
            try:
                return await work()
            finally:
                self._aside = False

    def paint(self) -> None:
        self._prompt.app.invalidate()

    def hide(self) -> None:
        """The prompt takes it away itself."""
        self._prompt.app.invalidate()

    def _print(self, console: Console, line: RenderableType) -> None:
        app = self._prompt.app
        if self._aside or not app.is_running:
            super()._print(console, line)
            return
        # In the terminal's raw mode, which changes nothing in what is printed: else keys that come meanwhile were lost.
        app.renderer.erase()
        super()._print(console, line)
        app.renderer.reset()
        app.invalidate()

    def _message(self) -> ANSI:
        self._rows_more = self._more_rows()
        if not self.below:
            self._cells = []
            return ANSI("> ")
        drawn, self._cells = draw(self.out, self.below)
        self._drawn_at = self.out.width
        return ANSI(drawn + "\n> ")

    def _more_rows(self) -> int:
        """That what stands below takes by now, when the terminal has become narrower since it was drawn."""
        return self._rows_more + rows_of(self._cells, self._drawn_at, self.out.width) - len(self._cells)

    def _take_more_rows(self) -> int:
        """The same, for whoever goes up over them: once."""
        if more := self._more_rows():
            self._cells, self._rows_more = [], 0
        return more


def _keys(take: Callable[[str], None], interrupt: Callable[[], None]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        # The prompt does not end with a line: keys that come before the next one has started would be lost.
        line = event.current_buffer.text
        event.current_buffer.reset(append_to_history=True)
        take(line)

    @keys.add("escape", "enter", filter=~is_searching)
    @keys.add("c-j", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-o")
    def _(event: KeyPressEvent) -> None:
        take("/output")

    @keys.add("c-c", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        interrupt()

    return keys


class _Output(Vt100_Output):
    """Goes up by the rows that stand there now: the prompt counts those that it has drawn."""

    rows_more: Callable[[], int]

    def cursor_up(self, amount: int) -> None:
        super().cursor_up(amount + self.rows_more())


def _output(console: Console, rows_more: Callable[[], int]) -> _Output:
    """One that never asks the terminal where its cursor is: some never answer, and the answer may end as input."""
    output = cast(_Output, _Output.from_pty(cast(TextIO, console.file)))
    output.enable_cpr = False
    output.rows_more = rows_more
    return output


def _kept(file: Path) -> History:
    """What was typed stays with its owner; where it can't be kept, it is forgotten at the end."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(file)


Another = Callable[[str, AgentSpec], Session]
"""A session of the same user, by its name and the agent's settings."""
SEND_SECONDS = 5.0
"""For what was typed before one left to reach the session."""
ENDING_SECONDS = 1.0
"""So long after its last word a reply may take to end: what is typed at once must not be refused for it."""

_TAKEN: Mapping[When, str] = {
    "queue": "queued until this reply has ended; /drop removes it",
    "now": "the agent reads it at its next step",
    "interrupt": "the reply ends, and this request is next",
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
        self._has_looked = asyncio.Event()
        """It is known what was there before: what is sent sooner would count as that, and be shown twice."""
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
        if self.conversation.has_started:
            how = shlex.join(["longhaul", "chat", "--session", self.session.id, *flags_of(self.session)])
            word = "the session continues" if self.conversation.reply_id is not None else "to come back"
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
        await self._has_looked.wait()
        while True:
            await self._take(await self._lines.get())
            self._lines.task_done()

    async def _take(self, said: str) -> None:
        self.screen.show(render.user_said(said))
        try:
            if said.startswith("/"):
                await self._commands.do(said)
                await self._show_status()
                return
            await self.send(said, "queue")
        except Refused as refusal:
            self.screen.show(Text(harmless(str(refusal)), "yellow"))

    async def _show_status(self) -> None:
        """Above the line that is typed: what the session is now, or what it will begin with."""
        spec = self.session.spec
        try:
            status = await self.session.status()
        except NoSession:
            status = Status(
                session_id=self.session.id,
                user_id=self.session.user,
                agent=spec.name,
                model=spec.model,
                status="idle",
                mode=spec.permission.mode.value,
                workspace_root=spec.workspace.root if spec.workspace else "",
            )
        self.screen.below.put("status", render_session.status_line(status))
        self.screen.paint()

    async def _see(self) -> None:
        under_way = await self.conversation.show_last()
        self._has_looked.set()
        if under_way:
            await self._show_status()
            await self.conversation.see_through(under_way, 1)
        while True:
            self.conversation.reply_id = None
            await self._show_status()
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
