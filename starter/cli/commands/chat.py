"""`longhaul chat`: a conversation, line by line."""

import asyncio
import os
import sys
import uuid
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from longhaul.agent.entries import When
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse, Outcome
from longhaul.starter.cli.session_lookup import connected
from longhaul.starter.cli.session_start import Wishes, open_session, whoami
from longhaul.starter.cli.terminal.conversation import Conversation, interrupting, newest_event, with_pictures
from longhaul.starter.cli.terminal.key_presses import read_line, returns_as_typed, typed_before
from longhaul.starter.cli.terminal.past_sessions import Which, found_again
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.terminal.slash_commands import Commands
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.visible import harmless, one_line

if TYPE_CHECKING:
    from longhaul.starter.cli.terminal.live_chat import LiveChat

HISTORY = "chat_history"
"""What was typed, in the data directory."""


commands = options.SubjectCommands()


@commands.command()
async def chat(
    *,
    agent: options.Agent = None,
    model: options.Model = None,
    called: options.Set = None,
    session: options.Session = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
    priority: options.Priority = None,
    newest: Annotated[bool, typer.Option("--continue", "-c", help="Continue the newest session.")] = False,
    pick: Annotated[bool, typer.Option("--pick", help="Continue a session from a list, open or closed.")] = False,
    play: options.Play = False,
) -> int:
    wishes = Wishes(agent, model, session, user, workspace, mode, priority=priority, called=tuple(called or ()))
    screen = Screen(play=play)
    which: Which = "picked" if pick else "newest" if newest else "named"
    if which != "named" and wishes.session is not None:
        raise Misuse("--session names the session; leave out --continue and --pick, or --session")
    if which == "picked" and not screen.answers:
        raise Misuse(
            "--pick asks which session, but there is no terminal to answer; name one with --session, or use --continue"
        )
    screens = [screen]

    def tell(sentence: str) -> None:
        screens[-1].remark(Text(f"longhaul: {one_line(sentence)}", "yellow"))

    async with connected(tell) as app:
        screen.notifications = app.settings.notifications
        first = await (open_session(app, wishes) if which == "named" else found_again(app, screen, wishes, which))
        may_type = screen.renders and screen.answers
        typed = typed_before() if may_type else ""
        with returns_as_typed() if may_type else nullcontext():
            return await _chat_on(app, first, screens, typed, play=play)


async def _chat_on(app: Longhaul, session: Session, screens: list[Screen], typed: str, *, play: bool) -> int:
    """With this session, and with each that is put in its place."""
    screen = screens[0]
    while True:
        chatting = _chat_with(app, session, screen, play=play)
        chatting.screen.notifications = screen.notifications
        screens.append(chatting.screen)  # what is typed there must not be written over
        code = await chatting.run(typed)
        typed = ""
        if chatting.next is None:
            return code
        session = chatting.next


def _chat_with(app: Longhaul, session: Session, screen: Screen, *, play: bool) -> "LiveChat | PlainChat":
    def another(name: str, spec: AgentSpec) -> Session:
        return app.session(name, user=session.user, agent=spec)

    if not (screen.renders and screen.answers):
        return PlainChat(session, screen, another)
    from longhaul.starter.cli.terminal.live_chat import LiveChat  # noqa: PLC0415  nobody else waits for what it is made with

    return LiveChat(session, whoami(), app.settings.data_dir / HISTORY, another, play=play)


class PlainChat:
    """One line, one reply, and then the next: for pipes, and for terminals on which nothing can be painted over."""

    busy = False
    """A line is read when the reply before it has ended."""

    def __init__(self, session: Session, screen: Screen, another: Callable[[str, AgentSpec], Session]) -> None:
        self.screen = screen
        screen.whole_by = "/output"
        self.another = another
        self.next: Session | None = None
        """To talk with after this one."""
        self._session = session
        self._conversation = Conversation(session, screen, whoami(), stays=False)
        self._commands = Commands(session, screen, self, whoami())
        self._outcome: Outcome | None = None

    async def run(self, _: str = "") -> int:
        greeting = f"session {one_line(self._session.id)}; /help says more, Ctrl-D leaves, Ctrl-C interrupts"
        self.screen.remark(Text(greeting, style="dim"))
        async with interrupting(self._conversation):
            coming = self._conversation.come_back() if self.screen.answers else self._conversation.catch_up()
            await self._show(coming)
        while self.next is None and (line := _next_line()) is not None:
            if line:
                await self._turn(line)
            if self._outcome is not None and self._outcome.code == Exit.PARKED and not self.screen.answers:
                break  # Nobody here can answer, so what is said next would only queue up.
        return Exit.DONE if self._outcome is None or self.screen.answers else self._outcome.code

    async def is_idle(self) -> bool:
        return not self.busy

    def go_over_to(self, session: Session) -> None:
        """Leave this one for that."""
        self.next = session

    async def send(self, text: str, when: When) -> None:
        """Raises Refused."""
        start = await newest_event(self._session) + 1
        reply_id = await self._session.submit(with_pictures(text), request_id=uuid.uuid4().hex, when=when)
        await self._show(self._conversation.see_through(reply_id, start))

    async def again(self, call_id: str) -> None:
        """Ask once more about what was left for later."""
        self._conversation.ask_again(call_id)
        await self._show(self._conversation.catch_up(await newest_event(self._session) + 1))

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
                goes_on = line.split(maxsplit=1)[0] in ("/resume", "/step")
                # Asked before: a short reply has ended by the time that the command is done.
                reply_id = await self._conversation.under_way() if goes_on else ""
                await self._commands.do(line)
                await self._commands.ended()
                if reply_id:
                    await self._show(self._conversation.see_through(reply_id, start))
        except Refused as refusal:
            self.screen.show(Text(harmless(str(refusal)), "yellow"))
        except asyncio.CancelledError:
            # The second Ctrl-C, or an interrupted reply that took too long: back to the prompt, not out of the chat.
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
            self._outcome = None

    async def _show(self, seeing: Coroutine[Any, Any, Outcome | None]) -> None:
        self._outcome = await seeing


def _next_line() -> str | None:
    """The next thing to say; None to leave."""
    try:
        line = read_line("> ") if os.isatty(0) else sys.stdin.readline() or None
    except KeyboardInterrupt:
        print()
        return ""
    return None if line is None or line.strip() == "/quit" else line.strip()
