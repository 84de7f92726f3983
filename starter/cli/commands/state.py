"""The commands about a session's state, with their flags: state export, import, edit, fork, delete."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="A session's AgentState as JSON.", no_args_is_help=True)

MaybeSession = Annotated[str | None, typer.Argument(metavar="[S]", help="Session id, as it was given to run or chat.")]
All = Annotated[str | None, typer.Option("--all", metavar="FOLDER", help="All sessions, one file each in this folder.")]
Why = Annotated[str, typer.Option(help="For the record.")]


@app.command("export")
def export_state(
    s: MaybeSession = None,
    *,
    all_: All = None,
    out: Annotated[str | None, typer.Option(help="Write it to this file; else to stdout.")] = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a session's state as JSON, which `state import` takes; or the states of all sessions into a folder.

    Example: longhaul state export nightly --out nightly.json
    """
    from longhaul.starter.cli.session_lookup import Name
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import state

    if all_ is not None and s is None:
        leave_by(lambda: state.export_all(Screen(as_json=as_json), all_, user, agent))
    if s is None or all_ is not None:
        raise typer.BadParameter("name one session, or a folder with --all")
    leave_by(lambda: state.export_state(Name(s, user, agent), out))


@app.command("import")
def import_state(  # noqa: PLR0913  one parameter a flag
    s: MaybeSession = None,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="An export, or a state of AgentScope Java; - is stdin.")
    ] = None,
    *,
    all_: All = None,
    why: Why = "",
    expect_seq: Annotated[
        int | None, typer.Option(help="Only if nothing was recorded since `show --json` said this `seq`.")
    ] = None,
    user: options.User = None,
    agent: options.Agent = None,
    model: options.Model = None,
    workspace: options.Workspace = None,
    as_json: options.AsJson = False,
) -> None:
    """Put a state in the place of a session's that is idle or waits; begins one when there is none. With --all each
    export in a folder goes into the session that it names.

    Example: longhaul state import nightly-2 nightly.json --model anthropic:claude-sonnet-4-5
    """
    from longhaul.starter.cli.session_start import Wishes
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import state

    wishes = Wishes(agent, model, s, user, workspace)
    if all_ is not None and s is None:
        leave_by(lambda: state.import_all(Screen(as_json=as_json), all_, wishes, why))
    if s is None or file is None or all_ is not None:
        raise typer.BadParameter("name a session and a file, or a folder with --all")
    given = state.Import(file, why, expect_seq)
    leave_by(lambda: state.import_state(Screen(as_json=as_json), wishes, given))


@app.command("edit")
def edit_state(
    s: options.SessionName,
    *,
    set_: Annotated[list[str], typer.Option("--set", metavar="PATH=JSON", help="A place, and what shall stand there.")],
    why: Why = "",
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Change places in the state of a session that is idle or waits; recorded with who and why. All at once, or none.

    Example: longhaul state edit nightly --set 'context[3].content[0].text="Fifty."' --why "recounted"
    """
    from longhaul.starter.cli.session_lookup import Name
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import state

    leave_by(lambda: state.edit_state(Screen(as_json=as_json), Name(s, user, agent), set_, why))


@app.command("fork")
def fork_state(
    s: options.SessionName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The id of the session to begin.")],
    *,
    at: Annotated[int | None, typer.Option(help="After this model call and its results; else from now.")] = None,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Begin another session from a session's state, now or as it was. Nothing is done a second time.

    Example: longhaul state fork nightly nightly-retry --at 12
    """
    from longhaul.starter.cli.session_lookup import Name
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import state

    leave_by(lambda: state.fork_state(Screen(as_json=as_json), Name(s, user, agent), new, at))


@app.command("delete")
def delete_state(
    s: options.SessionName,
    *,
    terminate: Annotated[bool, typer.Option("--terminate", help="End it at once if it is open.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    user: options.User = None,
    agent: options.Agent = None,
    as_json: options.AsJson = False,
) -> None:
    """Delete all that is kept of a closed session and its sub-agents: histories, states, blobs, offloaded content.

    Folders that they worked in stay, and are named.

    Example: longhaul state delete nightly --terminate --yes
    """
    from longhaul.starter.cli.session_lookup import Name
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import state

    leave_by(lambda: state.delete(Screen(as_json=as_json), Name(s, user, agent), terminate=terminate, unasked=yes))
