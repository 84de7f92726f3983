"""A command in the background runs on while its session goes on: the bounds, and what the session knows of it."""

from typing import Literal

from longhaul.agent.plain.values import OpenValue, sparse

BASH, BASH_OUTPUT, KILL_SHELL = "Bash", "BashOutput", "KillShell"
MOST_COMMANDS = 8
"""That run in the background of one session at a time: each holds a place for calls on its worker."""
MOST_ON_WORKER = 24
"""Of all sessions together. Each holds one of the 100 places for activities that a worker has, which model calls and
other tools need too: without this bound a dozen sessions would take all of them, and nobody could go on."""
LONGEST_SECONDS = 24 * 3_600
"""Then it is killed."""
LONGEST_UNASKED_SECONDS = 600
"""Of one that was proven to be harmless: nobody has agreed that it holds its place for a day."""
KEPT_COMMANDS = 50
"""That have ended and are remembered."""

SOMEBODY = "somebody"
"""Whoever has asked for a stop and gave no name."""

Fate = Literal["", "ended", "stopped", "unknown"]
"""Empty while it runs. `unknown`: nobody could see how it ended, or whether it has."""


class BackgroundCommand(OpenValue):
    """What a session knows of a command that it has begun in the background."""

    call_id: str
    shown: str
    """The beginning of it, as the record shows it."""
    at: int = sparse(0)
    """When it was begun, in milliseconds since 1970."""
    fate: Fate = sparse("")
    unwanted: bool = sparse(False)
    """It is to stop."""
    stopped_by: str = sparse("")
    """Who asked for that from outside."""
