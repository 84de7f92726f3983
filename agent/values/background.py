"""A command in the background runs on while its session goes on: the bounds, and what the session knows of it."""

from typing import Literal

from longhaul.agent.plain.values import OpenValue, sparse

BASH, BASH_OUTPUT, KILL_SHELL = "Bash", "BashOutput", "KillShell"
MOST_COMMANDS = 8
"""That run in the background of one session at a time: each holds a place for calls on its worker."""
LONGEST_SECONDS = 24 * 3_600
"""Then it is killed."""
KEPT_COMMANDS = 50
"""That have ended and are remembered."""

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
