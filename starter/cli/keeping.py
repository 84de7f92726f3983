"""The commands about a session as a whole, with their flags: compact, pause, resume, step."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from starter.cli import options
from starter.cli.lazy import leave_by


def add_to(app: typer.Typer) -> None:
    """Make these commands known to `longhaul`."""
    for command in (compact, pause, resume, step):
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


def pause(
    s: options.SessionName,
    *,
    why: Annotated[str, typer.Option(help="For whoever finds it paused.")] = "",
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Let a session begin nothing new until somebody resumes it; what runs ends by itself.

    Example: longhaul pause nightly --why "The database is being moved."
    """
    from starter.cli import upkeep
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    leave_by(lambda: upkeep.pause(Screen(as_json=as_json), Name(s, user, agent), why, approver))


def step(
    s: options.SessionName,
    *,
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Let a paused session take one step: run the calls that may run, make its context shorter, or ask the model.

    Example: longhaul step nightly
    """
    from starter.cli import upkeep
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    leave_by(lambda: upkeep.step(Screen(as_json=as_json), Name(s, user, agent), approver))


def resume(
    s: options.SessionName,
    *,
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Let a session go on that is paused, or held until somebody has looked; `longhaul show S` says why it is.

    Example: longhaul resume nightly
    """
    from starter.cli import upkeep
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    leave_by(lambda: upkeep.resume(Screen(as_json=as_json), Name(s, user, agent), approver))
