"""The commands about a session as a whole, with their flags: compact, pause, repair, rescue, resume, step."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from collections.abc import Callable
from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import on_session


def add_to(app: typer.Typer) -> None:
    """Make these commands known to `longhaul`."""
    for command in (compact, pause):
        app.command()(command)
    for verb in ("repair", "rescue", "resume", "step"):
        app.command(verb, help=HELP[verb])(_by_somebody(verb))


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
    from longhaul.starter.cli.work import lifecycle as upkeep

    wish = upkeep.Wish(trigger, reserve, instructions)
    on_session(s, user, agent, lambda screen, name: upkeep.compact(screen, name, wish), as_json=as_json)


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
    from longhaul.starter.cli.work import lifecycle as upkeep

    on_session(s, user, agent, lambda screen, name: upkeep.pause(screen, name, why, approver), as_json=as_json)


def _by_somebody(verb: str) -> Callable[..., None]:
    """A command that wants to know nothing but the session, and who sends it."""

    def command(
        s: options.SessionName,
        *,
        approver: options.As = None,
        user: options.User = None,
        agent: options.Agent = None,
        as_json: options.AsJson = False,
    ) -> None:
        from longhaul.starter.cli.work import lifecycle as upkeep

        do = upkeep.BY_SOMEBODY[verb]
        on_session(s, user, agent, lambda screen, name: do(screen, name, approver), as_json=as_json)

    return command


HELP = {
    "step": """Let a paused session take one step: run the calls that may run, make its context shorter, or ask the
    model.

    Example: longhaul step nightly
    """,
    "resume": """Let a session go on that is paused, or held until somebody has looked; `longhaul show S` says why it
    is.

    Example: longhaul resume nightly
    """,
    "repair": """Take all attachments and all thinking out of a session's context, words in their place.

    For a session whose model's provider refuses each request for what stands in it. The transcript keeps everything.
    Example: longhaul repair nightly
    """,
    "rescue": """Bring back a session whose tasks fail for good: it begins again from its last checkpoint, and is held.

    Calls behind that checkpoint, which may have had their effects, are named here and told to the model.
    Example: longhaul rescue nightly
    """,
}
"""Of the commands that are made by `_by_somebody`."""
