"""The commands about a session as a whole, with their flags: compact, resume."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from starter.cli import options
from starter.cli.lazy import leave_by


def add_to(app: typer.Typer) -> None:
    """Make these commands known to `longhaul`."""
    for command in (compact, resume):
        app.command()(command)


def compact(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    *,
    trigger: Annotated[
        float | None, typer.Option(help="Do it above this share of the window, for this once; else as the agent says.")
    ] = None,
    reserve: Annotated[float | None, typer.Option(help="Keep this share of the newest messages as they are.")] = None,
    instructions: Annotated[str, typer.Option(help="What the summary shall look after.")] = "",
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a session's context shorter, if it is above its threshold.

    Exit 0 shorter, or below the threshold; 3 it happens when the session goes on; 4 it could not be done.
    Example: longhaul compact nightly --trigger 0.3 --reserve 0.05 --instructions "Keep the ticket numbers."
    """
    from starter.cli import upkeep
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    wish = upkeep.Wish(trigger, reserve, instructions)
    leave_by(lambda: upkeep.compact(Screen(as_json=as_json), Name(s, user, agent), wish))


def resume(
    s: options.SessionName,
    *,
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Let a session go on that is held until somebody has looked; `longhaul show S` says why it is.

    Example: longhaul resume nightly
    """
    from starter.cli import upkeep
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    leave_by(lambda: upkeep.resume(Screen(as_json=as_json), Name(s, user, agent), approver))
