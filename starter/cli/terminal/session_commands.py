"""The commands of a chat about the session as a whole: its model and mode, what it cost and changed, and another one
in its place."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from rich.text import Text

from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter import render, render_session
from longhaul.starter.cli.session_start import fresh_name, located
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.render_calls import MadeCall, calls_in, in_full
from longhaul.starter.visible import one_line

LOOK_BACK_MESSAGES = 400
"""Among which calls are looked for: the whole of a long session would take its time."""
HELP = {
    "/model [NAME]": "ask another model from the next step on; without a name: which one",
    "/mode [MODE]": "what it may do unasked from now on; without a mode: which one",
    "/cost": "the tokens that it took",
    "/diff": "what Edit and Write have changed",
    "/output [N]": "all that the last call has answered, or the Nth last, or the one named (Ctrl-O: the last)",
    "/clear": "go on in a new session of the same agent; this one stays as it is",
    "/undo": "go on in a copy that does not know of the last request; files stay as they are",
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
        self._say(f"from the next step on: model {name}; a call that waits for its provider is made anew with it")

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
            raise Refused("a reply is being made; /interrupt ends it, or wait for its end")
