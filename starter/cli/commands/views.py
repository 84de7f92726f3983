"""The commands that only look, with their flags: sessions, show, watch, inbox."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by


def add_to(app: typer.Typer) -> None:
    """Make these commands known to `longhaul`."""
    for command in (sessions, show, watch, inbox):
        app.command()(command)


def sessions(
    *,
    user: options.User = None,
    status: Annotated[str | None, typer.Option(help="idle, working, waiting or paused.")] = None,
    long: Annotated[bool, typer.Option("--long", "-l", help="Ask each one how full its context is.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the open sessions, newest first."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import views

    leave_by(lambda: views.sessions(Screen(as_json=as_json), user, status, long=long))


def show(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    call: Annotated[str | None, typer.Argument(metavar="[CALL]", help="One call, with all that it answered.")] = None,
    *,
    calls: Annotated[bool, typer.Option("--calls", help="Every call, with all that it answered.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All that was ever said, not what the model reads now.")] = False,
    as_: Annotated[
        str, typer.Option("--as", metavar="FORM", help="messages, or steps: actions, observations, condensations.")
    ] = "messages",
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one session: what the model reads, cost, what it waits for and how to answer; or calls of it in full."""
    from longhaul.starter.cli.session_lookup import Name
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import views

    screen, name = Screen(as_json=as_json), Name(s, user, agent)
    if calls or call is not None:
        leave_by(lambda: views.show_calls(screen, name, call))
    leave_by(lambda: views.show(screen, name, full=full, form=as_))


def watch(
    s: Annotated[list[str], typer.Argument(metavar="S…", help="One session, or several in one feed.")],
    *,
    start: Annotated[
        int, typer.Option("--from", min=1, help="Number of the first event; its first one if not given.")
    ] = 1,
    user: options.User = None,
    agent: options.Agent = None,
    play: options.Play = False,
    as_json: Annotated[bool, typer.Option("--json", help="One event a line as JSON, and nothing else.")] = False,
) -> None:
    """Follow what a session does, with text as it is said. Ctrl-C leaves it alone."""
    from longhaul.starter.cli.session_lookup import Name
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import views

    names = [Name(each, user, agent) for each in s]
    screen = Screen(as_json=as_json, play=play)
    leave_by(lambda: views.watch_all(screen, names, start) if s[1:] else views.watch(screen, names[0], start))


def inbox(
    *,
    user: options.User = None,
    team: Annotated[str | None, typer.Option(help="Of agents with this `team`.")] = None,
    tool: Annotated[str | None, typer.Option(help="Calls of this tool.")] = None,
    overdue: Annotated[bool, typer.Option("--overdue", help="Reminded of, escalated or expired.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List all that waits for a person, oldest first."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import views

    leave_by(lambda: views.inbox(Screen(as_json=as_json), views.InboxFilter(user, team, tool, overdue)))
