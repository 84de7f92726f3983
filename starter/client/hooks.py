"""Hooks of one's own around what clients do: reply, observe, and print, which is each event on its way to a reader."""

from typing import Any

from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.hooks import Hooks
from longhaul.agent.views.event_types import AgentEvent
from longhaul.stores.loading import found_at, names_in

CLIENT_POINTS = ("reply", "observe", "print")


class BadHooks(BadSetup, ValueError):
    """LONGHAUL_CLIENT_HOOKS names something that registers no hooks."""


def hooks_for_all(names: str) -> Hooks:
    """Those that the functions register that are named, as in `shop.screen:hooks`. Raises BadHooks."""
    hooks = Hooks(CLIENT_POINTS)
    for name in names_in(names):
        register = found_at(name, "client_hook", BadHooks, make=False)
        if not callable(register):
            raise BadHooks(f"LONGHAUL_CLIENT_HOOKS: {name!r} is not a function; name a function that registers hooks")
        register(hooks)
    return hooks


class Printing:
    """The events of one reader: before it gets them, and when it has come back for more."""

    def __init__(self, hooks: Hooks | None = None, who: Any = None) -> None:
        self._hooks = hooks
        self._who = who
        self._told: list[AgentEvent] = []

    async def shown(self, events: list[AgentEvent]) -> list[AgentEvent]:
        """As hooks make them. Numbers stay: by them a reader goes on where it was."""
        hooks = self._hooks
        if hooks is None or not hooks.stand_at("print"):
            return events
        for event in events:
            made: AgentEvent = await hooks.before("print", self._who, event)
            self._told.append(made.model_copy(update={"seq": event.seq, "live": event.live}))
        return list(self._told)

    async def printed(self) -> None:
        if self._hooks is None or not self._told:
            return
        told, self._told = self._told, []
        for event in told:
            await self._hooks.after("print", self._who, event, None)
