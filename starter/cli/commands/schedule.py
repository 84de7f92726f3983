"""The commands about schedules, with their flags: schedule add, apply, list, show, pause, resume, trigger, remove."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="Requests at times that are set.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the schedule.")]


@app.command()
def add(  # noqa: PLR0913  one parameter a flag
    name: Name,
    prompt: Annotated[str, typer.Argument(help="What is asked at each firing.")],
    *,
    cron: Annotated[str, typer.Option(help="When: five fields, or a word as @daily.")] = "",
    zone: Annotated[str, typer.Option(help="Time zone of the cron line, as in Europe/Berlin; else UTC.")] = "",
    every: Annotated[str | None, typer.Option(help="How often: 90s, 30m, 4h, 2d.")] = None,
    session: Annotated[str, typer.Option(help="All firings go to this session; else each begins its own.")] = "",
    overlap: Annotated[
        str | None,
        typer.Option(help="While the one before is at work: skip, or beside; with --session queue, now, interrupt."),
    ] = None,
    catch_up: Annotated[
        str, typer.Option(help="How old a firing may be that is made up for after the server was down.")
    ] = "1d",
    paused: Annotated[bool, typer.Option("--paused", help="It does not fire before it is resumed.")] = False,
    agent: options.Agent = None,
    model: options.Model = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
    as_json: options.AsJson = False,
) -> None:
    """Have something asked at the times of a cron line, or every so often.

    Example: longhaul schedule add morning "What changed since yesterday?" --cron "0 7 * * 1-5" --zone Europe/Berlin
    """
    from longhaul.starter.cli.session_start import Wishes
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import schedule as scheduling

    wishes = Wishes(agent, model, session or None, user, workspace, mode)
    wanted = scheduling.Wanted(name, prompt, cron, zone, every, overlap, catch_up, paused)
    leave_by(lambda: scheduling.add(Screen(as_json=as_json), wanted, wishes))


@app.command()
def apply(  # noqa: PLR0913  one parameter a flag
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Whose file: the agent's name, or the file's path.")],
    *,
    remove: Annotated[
        bool, typer.Option("--remove", help="Schedules that the file does not have any more are removed.")
    ] = False,
    model: options.Model = None,
    user: options.User = None,
    workspace: options.Workspace = None,
    mode: options.Mode = None,
    as_json: options.AsJson = False,
) -> None:
    """Bring the schedules of an agent file into being, as it says now; as often as you like.

    Example: longhaul schedule apply agents/harbour.toml
    """
    from longhaul.starter.cli.session_start import Wishes
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import schedule as scheduling

    wishes = Wishes(agent, model, None, user, workspace, mode)
    leave_by(lambda: scheduling.apply(Screen(as_json=as_json), wishes, remove=remove))


@app.command("list")
def list_all(*, as_json: options.AsJson = False) -> None:
    """List the schedules, with the next time of each."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import schedule as scheduling

    leave_by(lambda: scheduling.list_all(Screen(as_json=as_json)))


@app.command()
def show(name: Name, *, as_json: options.AsJson = False) -> None:
    """Show one schedule, and what its newest firings came to."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import schedule as scheduling

    leave_by(lambda: scheduling.show(Screen(as_json=as_json), name))


@app.command()
def pause(
    name: Name,
    *,
    why: Annotated[str, typer.Option(help="For whoever looks at it.")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Let a schedule fire no more until it is resumed; what it has begun goes on."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import schedule as scheduling

    leave_by(lambda: scheduling.pause(Screen(as_json=as_json), name, why))


@app.command()
def resume(name: Name, *, as_json: options.AsJson = False) -> None:
    """Let a paused schedule fire again; what it has left out meanwhile stays left out."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import schedule as scheduling

    leave_by(lambda: scheduling.resume(Screen(as_json=as_json), name))


@app.command()
def trigger(name: Name, *, as_json: options.AsJson = False) -> None:
    """Let a schedule fire once now."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import schedule as scheduling

    leave_by(lambda: scheduling.trigger(Screen(as_json=as_json), name))


@app.command()
def remove(name: Name, *, as_json: options.AsJson = False) -> None:
    """Take a schedule away; its sessions stay."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import schedule as scheduling

    leave_by(lambda: scheduling.remove(Screen(as_json=as_json), name))
