"""The command `notify`: tells a session of an event."""

from dataclasses import dataclass

from rich.text import Text

from longhaul.starter.cli.finding import Name, opened
from longhaul.starter.cli.opening import whoami
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.visible import one_line


@dataclass(frozen=True, slots=True)
class EventTold:
    name: str
    payload: str = ""
    request_id: str | None = None


async def notify(screen: Screen, name: Name, told: EventTold) -> int:
    """Tell of an event."""
    async with opened(name) as session:
        woken = await session.notify(told.name, told.payload, request_id=told.request_id, by=whoami())
    what = "has woken up" if woken else "is not waiting for it just now, and is told when it does"
    screen.show(Text(one_line(f"{session.id} {what}")))
    screen.document({"session": session.id, "event": told.name, "woken": woken})
    return 0
