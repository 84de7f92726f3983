"""The commands about hubs, with their flags: hub start, apply, list, add, remove, say, show, end."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="Rooms of agents: what one answers, the others are told.", no_args_is_help=True)

HubName = Annotated[str, typer.Argument(metavar="NAME", help="Of the hub.")]
Sessions = Annotated[list[str], typer.Argument(metavar="S...", help="Sessions; each is called by its id in the hub.")]


@app.command()
def start(  # noqa: PLR0913  one parameter a flag
    name: HubName,
    sessions: Sessions,
    *,
    announce: Annotated[str, typer.Option(help="What all members are told at the beginning.")] = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="What members answer is not told to the others.")] = False,
    agent: options.Agent = None,
    user: options.User = None,
    as_json: options.AsJson = False,
) -> None:
    """Begin a hub with sessions that there are.

    Example: longhaul hub start jury ana-1 ben-1 --announce "Is the bridge safe? Speak in turn."
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import hub as hubs

    members = hubs.Named(name, user, agent, tuple(sessions))
    leave_by(lambda: hubs.start(Screen(as_json=as_json), members, announce, quiet=quiet))


@app.command()
def apply(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Whose file: the agent's name, or the file's path.")],
    *,
    remove: Annotated[
        bool, typer.Option("--remove", help="Members that the file does not have any more are let go.")
    ] = False,
    user: options.User = None,
    as_json: options.AsJson = False,
) -> None:
    """Begin the hubs of an agent file, with sessions of their own, or bring them up to it; as often as you like.

    Example: longhaul hub apply agents/jury.toml
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import hub as hubs

    leave_by(lambda: hubs.apply(Screen(as_json=as_json), agent, user, remove=remove))


@app.command("list")
def list_all(*, user: options.User = None, as_json: options.AsJson = False) -> None:
    """List the hubs that are open; of all users where none is named."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import hub as hubs

    leave_by(lambda: hubs.list_all(Screen(as_json=as_json), user))


@app.command()
def add(
    name: HubName,
    sessions: Sessions,
    *,
    agent: options.Agent = None,
    user: options.User = None,
    as_json: options.AsJson = False,
) -> None:
    """Let sessions into a hub: they hear what is said from now on."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import hub as hubs

    members = hubs.Named(name, user, agent, tuple(sessions))
    leave_by(lambda: hubs.add(Screen(as_json=as_json), members))


@app.command()
def remove(
    name: HubName,
    members: Annotated[list[str], typer.Argument(metavar="MEMBER...", help="As `hub show` names them.")],
    *,
    user: options.User = None,
    as_json: options.AsJson = False,
) -> None:
    """Let members of a hub go: they hear what was said before, and nothing after."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import hub as hubs

    leave_by(lambda: hubs.remove(Screen(as_json=as_json), hubs.Named(name, user, None, tuple(members))))


@app.command()
def say(
    name: HubName,
    text: Annotated[str, typer.Argument(help="What all members are told, in the user's name.")],
    *,
    user: options.User = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell all members of a hub something, without asking any of them for a reply."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import hub as hubs

    leave_by(lambda: hubs.say(Screen(as_json=as_json), hubs.Named(name, user), text))


@app.command()
def show(name: HubName, *, user: options.User = None, as_json: options.AsJson = False) -> None:
    """Show a hub: its members, and what was said last."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import hub as hubs

    leave_by(lambda: hubs.show(Screen(as_json=as_json), hubs.Named(name, user)))


@app.command()
def end(
    name: HubName,
    *,
    delete: Annotated[
        bool,
        typer.Option("--delete", help="When it is over, delete what is kept of it, its key too; also of an ended one."),
    ] = False,
    user: options.User = None,
    as_json: options.AsJson = False,
) -> None:
    """End a hub; its members' sessions stay."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import hub as hubs

    leave_by(lambda: hubs.end(Screen(as_json=as_json), hubs.Named(name, user), delete=delete))
