"""A session that stands still because somebody has paused it, or has to look at it first: said once, and to whom."""

from rich.text import Text

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter import render_session
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.session import Session
from longhaul.starter.visible import one_line

_TURNS = ("paused", "step_asked", "resumed")
"""Names of the events after which it may stand still, or go on."""


class PausedSession:
    """Of one session at one terminal."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen
        self._unsure = True
        self._still = False
        self._told = False

    def hear(self, event: AgentEvent) -> bool:
        """Whether the event is about this; the session is asked again after it."""
        if event.type != "CUSTOM" or event.name not in _TURNS:
            return False
        if event.name == "resumed" and self._told:
            by = one_line(str(event.value["by"]))
            self._screen.show(Text(f"it goes on{f': resumed by {by}' if by else ''}", "magenta"))
            self._still = self._told = False
        self._unsure = True
        return True

    async def still(self) -> bool:
        """Whether nothing moves until somebody lets it; says so, with the command for it, when that is news."""
        if not self._unsure:
            return self._still
        status = await self._session.status()
        before, self._unsure = self._still, status.stepping
        self._still = bool(status.hold or status.paused_since) and not status.stepping
        if self._still and not before:
            self._told = True
            self._screen.show(*render_session.standing_still(status))
        return self._still
