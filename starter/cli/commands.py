"""What one can do in a chat beside talking: lines that begin with a slash."""

from collections.abc import Awaitable, Callable

from rich.text import Text

from starter import render_session
from starter.asking import NoSession
from starter.cli.screen import Screen
from starter.session import Session
from starter.visible import one_line

HELP = {
    "/status": "how the session stands, and what it has used",
    "/tasks": "the list of tasks that the agent keeps",
    "/approve": "ask again about what was left for later",
    "/interrupt [TEXT]": "end the reply that is being made; the text becomes the next message",
    "/observe TEXT": "let the agent know, without asking for a reply",
    "/compact": "make the context shorter",
    "/quit": "leave; the session goes on (Ctrl-D too)",
}
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class Commands:
    def __init__(self, session: Session, screen: Screen, again: Callable[[], Awaitable[None]]) -> None:
        self._session = session
        self._screen = screen
        self._again = again

    async def do(self, line: str) -> None:
        """Raises Refused."""
        name, _, rest = line.partition(" ")
        try:
            await self._do(name, rest.strip())
        except NoSession:
            self._screen.show(Text("the session begins with your first message", "dim"))

    async def _do(self, name: str, rest: str) -> None:
        match name:
            case "/status":
                status, pending = await self._session.status(), await self._session.pending()
                self._screen.show(render_session.head(status), *render_session.waiting(self._session.id, pending))
            case "/tasks":
                await self._tasks()
            case "/approve":
                await self._again()
            case "/interrupt":
                await self._session.interrupt(rest or None)
            case "/observe" if rest:
                await self._session.observe(rest)
            case "/compact":
                await self._session.compress_context()
            case _:
                self._help(name)

    async def _tasks(self) -> None:
        tasks = (await self._session.state()).tasks_context.tasks
        for task in tasks:
            self._screen.show(Text(f"{_MARKS[task.state]} {one_line(task.subject)}"))
        if not tasks:
            self._screen.show(Text("no tasks", "dim"))

    def _help(self, name: str) -> None:
        if name not in ("/help", "/?"):
            self._screen.show(Text(f"there is no command {one_line(name)}; there are:", "yellow"))
        for usage, meaning in HELP.items():
            self._screen.show(Text.assemble((f"{usage:<18} ", "bold"), meaning))
        self._screen.show(Text("Ctrl-C empties the line, then interrupts the reply, then leaves.", "dim"))
