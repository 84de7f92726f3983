"""The commands of a chat, lines that begin with a slash: about the conversation, and about the session as a whole."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from rich.text import Text

from longhaul.agent.entries import When
from longhaul.agent.plain.text import did_you_mean, nearest
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter import render, render_session
from longhaul.starter.cli.session_lookup import flags_of
from longhaul.starter.cli.session_start import fresh_name, located
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.client.session_requests import CompressionFailed, CompressionPending
from longhaul.starter.client.wire import Refused
from longhaul.starter.render import MadeCall, calls_in, in_full
from longhaul.starter.visible import harmless, one_line
from longhaul.workflows.contract import WaitingRequest

LOOK_BACK_MESSAGES = 400
"""Among which calls are looked for: the whole of a long session would take its time."""
SESSION_HELP = {
    "/model [NAME]": "use another model from the next step on; without a name: show the model",
    "/mode [MODE]": "what it may do without approval from now on; without a mode: show the mode",
    "/cost": "the tokens and cost",
    "/diff": "what Edit and Write have changed",
    "/output [N]": "the whole output of the last call, of the Nth last, or of the named call (Ctrl-O: the last)",
    "/clear": "continue in a new session of the same agent; this one stays as it is",
    "/undo": "continue in a copy without the last request; files stay as they are",
}


class Change(Protocol):
    """What puts another session in the place of the one that one talks with."""

    def another(self, name: str, spec: AgentSpec) -> Session:
        """A new one of the same user."""
        ...

    def go_over_to(self, session: Session) -> None:
        """LiveChat with that one from now on."""

    async def is_idle(self) -> bool:
        """Whether no reply is being made. One that has said its last word may end yet."""
        ...


class SessionCommands:
    def __init__(self, session: Session, screen: Screen, chat: Change, by: str) -> None:
        self._session = session
        self._screen = screen
        self._chat = chat
        self._by = by
        self.known: dict[str, Callable[[str], Awaitable[None]]] = {
            "/model": self._model,
            "/mode": self._mode,
            "/cost": self._cost,
            "/diff": self._diff,
            "/output": self._output,
            "/clear": self._clear,
            "/undo": self._undo,
        }

    def _say(self, text: str, style: str = "dim") -> None:
        self._screen.show(Text(one_line(text), style))

    async def _model(self, name: str) -> None:
        if not name:
            self._say(f"model {(await self._session.status()).model}")
            return
        await self._session.configure(model=located(name), by=self._by)
        self._say(f"from the next step on: model {name}; a call that waits for its provider is sent again with it")

    async def _mode(self, name: str) -> None:
        if not name:
            self._say(f"mode {(await self._session.status()).mode}")
            return
        modes = [mode.value for mode in PermissionMode]
        if name not in modes:
            raise Refused(f"there is no mode {name!r}; {did_you_mean(name, modes)}")
        await self._session.configure(mode=name, by=self._by)
        self._say(f"from now on: mode {name}")

    async def _cost(self, _: str) -> None:
        status = await self._session.status()
        self._screen.show_folded(Text(render_session.cost(status)), *render_session.keeping(status))

    async def _diff(self, _: str) -> None:
        changes = [call for call in await self._calls() if call.change]
        for call in changes:
            self._screen.show(render.call_line(call.tool, call.input), render.diff(call.change))
        count = f"{len(changes)} change{'' if len(changes) == 1 else 's'}"
        self._say(f"{count} by Edit and Write; what commands have changed is not among them")

    async def _output(self, which: str) -> None:
        answered = [call for call in await self._calls() if call.state is not None]
        number = int(which) if which.isascii() and which.isdigit() else 0 if which else 1
        if named := [call for call in answered if call.call_id == which]:
            self._screen.show(*in_full(named[-1]))
        elif not answered:
            self._say("no call has answered yet")
        elif not 1 <= number <= len(answered):
            raise Refused(f"there is no such call; /output 1 is the last one, /output {len(answered)} the first")
        else:
            self._screen.show(*in_full(answered[-number]))

    async def _calls(self) -> list[MadeCall]:
        start = max((await self._session.status()).messages - LOOK_BACK_MESSAGES, 0)
        return calls_in([message async for message in self._session.transcript(start)])

    async def _clear(self, _: str) -> None:
        await self._check_idle()
        self._chat.go_over_to(self._chat.another(fresh_name(), await self._session.settings()))

    async def _undo(self, _: str) -> None:
        await self._check_idle()
        made = (await self._session.status()).model_calls
        undone = await self._calls_of_last_reply()
        if undone is None:
            raise Refused("nothing was asked in this session yet, so there is nothing to take back")
        if made > undone:
            copy = await self._session.stored.fork(fresh_name(), made - undone, by=self._by)
            self._say((await copy.status()).note)
            self._chat.go_over_to(copy)
        else:
            await self._clear("")

    async def _calls_of_last_reply(self) -> int | None:
        """How often the model was asked in it; None where there was none."""
        counted, start, last = None, 1, 0
        while start <= max(last, 1):
            page = await self._session.events(start)
            for event in page.events:
                if event.type == "REPLY_START":
                    counted = 0
                elif event.type == "MODEL_CALL_END" and counted is not None:
                    counted += 1
            if not page.events:
                break
            start, last = page.events[-1].seq + 1, page.last
        return counted

    async def _check_idle(self) -> None:
        if not await self._chat.is_idle():
            raise Refused("a reply is running; wait for its end, or /interrupt it")


HELP = {
    "/now TEXT": "send it to the agent at its next step, during its reply",
    "/interrupt [TEXT]": "end the current reply; the text becomes the next message",
    "/stop [CALL]": "stop background work: the command or sub-agent of that call, or all (see /tasks)",
    "/queue": "the queued messages",
    "/drop [N]": "remove a queued message: the last, or number N",
    "/pause [WHY]": "start nothing new until /resume; running calls end",
    "/step": "take one step, and pause again",
    "/resume": "continue",
    "/approve [CALL]": "ask again about calls that you left waiting",
    "/observe TEXT": "let the agent know, without asking for a reply",
    "/status": "the session's status, and what it has used",
    "/tasks": "the agent's list of tasks, and background work",
    "/compact": "compress the context",
    **SESSION_HELP,
    "/quit": "leave; the session continues (Ctrl-D too)",
}
NAMES = tuple(dict.fromkeys([*(usage.partition(" ")[0] for usage in HELP), "/help"]))
_KEYS = (
    "Alt+Enter and Ctrl-J start a new line, Ctrl-R searches what you typed before, Tab completes commands, modes, and "
    "files behind an @."
)
_NEEDS_TEXT = ("/now", "/observe")


class Chat(Change, Protocol):
    """Where the commands are typed."""

    async def send(self, text: str, when: When) -> None:
        """Ask for a reply, and show it in its turn."""

    async def again(self, call_id: str) -> None:
        """Ask once more about the call, or about all that was left for later."""

    @property
    def busy(self) -> bool:
        """Whether a reply is shown that is being made: it tells of what happens to it."""
        ...

    def text_of(self, request_id: str) -> str:
        """What was said here under that id; empty for what somebody else has said."""
        ...


class Commands:
    def __init__(self, session: Session, screen: Screen, chat: Chat, by: str) -> None:
        self._session = session
        self._screen = screen
        self._chat = chat
        self._by = by
        self._beside: list[asyncio.Task[None]] = []
        """What waits for something, while more is typed."""
        self._known: dict[str, Callable[[str], Awaitable[None]]] = {
            "/now": lambda rest: chat.send(rest, "now"),
            "/interrupt": self._interrupt,
            "/stop": self._stop,
            "/queue": self._queue,
            "/drop": self._drop,
            "/pause": self._pause,
            "/step": self._step,
            "/resume": self._resume,
            "/approve": chat.again,
            "/observe": session.observe,
            "/status": self._status,
            "/tasks": self._tasks,
            "/compact": self._compact,
            **SessionCommands(session, screen, chat, by).known,
        }

    async def do(self, line: str) -> None:
        """Raises Refused."""
        name, _, rest = line.partition(" ")
        work, rest = self._known.get(name), rest.strip()
        if work is None or (name in _NEEDS_TEXT and not rest):
            self._help(name)
            return
        try:
            await work(rest)
        except NoSession:
            self._say("the session starts with your first message")

    async def ended(self) -> None:
        """Until what a command has left running ends: for a chat that can't show it while a line is read."""
        await asyncio.gather(*self._beside)

    def _say(self, text: str, style: str = "dim") -> None:
        self._screen.show_folded(Text(text, style))

    async def _interrupt(self, text: str) -> None:
        if text:
            await self._chat.send(text, "interrupt")
        else:
            await self._session.interrupt()

    async def _stop(self, call_id: str) -> None:
        self._do_beside(self._stopped(call_id))

    async def _stopped(self, call_id: str) -> None:
        ends = await self._session.stop_background(call_id or None, by=self._by)
        self._screen.show_folded(*render.stopped_lines(ends))

    async def _queue(self, _: str) -> None:
        waiting = await self._waiting()
        for number, request in enumerate(waiting, start=1):
            text = self._chat.text_of(request.request_id) or f"(of somebody else: {request.request_id})"
            line = Text.assemble((f"{number:>3} ", "bold"), one_line(text))
            self._screen.show(line.append(" (read at the next step)" if request.joins else "", "dim"))
        if not waiting:
            self._say("no message is queued")

    async def _drop(self, which: str) -> None:
        waiting = await self._waiting()
        number = int(which) if which.isascii() and which.isdigit() else 0 if which else len(waiting)
        if not 1 <= number <= len(waiting):
            self._say("there is no such message in the queue; /queue shows what waits", "yellow")
            return
        await self._session.interrupt(request_id=waiting[number - 1].request_id)
        self._say(f"dropped number {number}")

    async def _waiting(self) -> tuple[WaitingRequest, ...]:
        return (await self._session.status()).requests

    async def _pause(self, why: str) -> None:
        changed = await self._session.pause(why=why, by=self._by)
        if not changed:
            self._say("it was paused already; /resume continues it, /step takes one step")
        elif not self._chat.busy:
            self._say("paused: what you say waits until /resume, or /step by step", "magenta")

    async def _step(self, _: str) -> None:
        await self._session.step(by=self._by)
        self._say("one step, and then it pauses again")

    async def _resume(self, _: str) -> None:
        await self._session.resume(by=self._by)
        if not self._chat.busy:
            self._say("it continues", "magenta")

    async def _status(self, _: str) -> None:
        status, pending = await self._session.status(), await self._session.own_pending()
        flags = flags_of(self._session)
        self._screen.show_folded(render_session.head(status), *render_session.waiting(self._session.id, pending, flags))

    async def _compact(self, _: str) -> None:
        self._do_beside(self._compacted())

    async def _compacted(self) -> None:
        shorter = await self._session.compress_context(by=self._by)
        self._say("the context is shorter now" if shorter else "the context is short enough")

    def _do_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """It takes its time, and what is typed meanwhile must not wait with it."""
        self._beside = [
            *(task for task in self._beside if not task.done()),
            asyncio.create_task(self._report_refusal(work)),
        ]

    async def _report_refusal(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (NoSession, Refused, CompressionFailed, CompressionPending) as error:
            self._say(harmless(str(error)), "yellow")

    async def _tasks(self, _: str) -> None:
        known = (await self._session.state()).tasks_context
        tasks = known.tasks
        if known.current_plan is not None:
            self._say(f"plan {one_line(known.current_plan.name)}")
        if tasks:
            self._screen.show_folded(render.task_list((task.state, task.subject) for task in tasks))
        else:
            self._say("no tasks")
        self._screen.show_folded(*render.at_work(await self._session.status()))

    def _help(self, name: str) -> None:
        if name in self._known:
            self._say(f"{name}: say what, as in {name} TEXT", "yellow")
            return
        meant = nearest(name, NAMES)
        if name not in ("/help", "/?"):
            hint = f"did you mean {meant}?" if meant else "there are:"
            self._say(f"there is no command {one_line(name)}; {hint}", "yellow")
            if meant:
                return
        for usage, meaning in HELP.items():
            self._screen.show_folded(Text.assemble((f"{usage:<18} ", "bold"), meaning))
        if self._screen.renders:
            self._screen.show_folded(Text(_KEYS, "dim"))
        self._say("What you type while it works is queued.")
        self._say("Ctrl-C empties the line, then interrupts the reply, then leaves.")
