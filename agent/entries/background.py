"""Entries about commands in the background, and about a stop that somebody asks for. What commands have printed comes
as a message."""

from typing import Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.background import BackgroundCommand, Fate


class CommandBegun(Entry):
    """A call of Bash runs on while the session goes on; the result of the call is another entry."""

    kind: Literal["command_begun"] = "command_begun"
    command: BackgroundCommand


class CommandEnded(Entry):
    """It is over, as far as the session can know."""

    kind: Literal["command_ended"] = "command_ended"
    call_id: str
    fate: Fate
    snapshot: str = sparse("")
    """As of `ToolReturned`: the files as they were before the command began. Empty where its worker was lost."""


class StopAsked(Entry):
    """Somebody wants these to stop: commands and sub-agents in the background, by the call that began each."""

    kind: Literal["stop_asked"] = "stop_asked"
    call_ids: tuple[str, ...]
    by: str = sparse("")


BackgroundEntry = CommandBegun | CommandEnded | StopAsked
