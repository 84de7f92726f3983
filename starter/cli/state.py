"""The commands about a session's state, with their flags: state export, import, edit, fork, delete."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from starter.cli import options
from starter.cli.lazy import leave_by

app = typer.Typer(help="A session's AgentState as JSON.", no_args_is_help=True)

Why = Annotated[str, typer.Option(help="For the record.")]


@app.command("export")
def export_state(
    s: options.SessionName,
    *,
    out: Annotated[str | None, typer.Option(help="Write it to this file; else to stdout.")] = None,
    user: options.User = None,
    agent: options.Agent = None,
) -> None:
    """Write a session's state as JSON, which `state import` takes.

    Example: longhaul state export nightly --out nightly.json
    """
    from starter.cli import moving
    from starter.cli.finding import Name

    leave_by(lambda: moving.export_state(Name(s, user, agent), out))


@app.command("import")
def import_state(  # noqa: PLR0913  one parameter a flag
    s: options.SessionName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="An export, or a state of AgentScope Java; - is stdin.")],
    *,
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
    """Put a state in the place of an idle session's; begins the session when there is none.

    Example: longhaul state import nightly-2 nightly.json --model anthropic:claude-sonnet-4-5
    """
    from starter.cli import moving
    from starter.cli.opening import Wishes
    from starter.cli.screen import Screen

    wishes = Wishes(agent, model, s, user, workspace)
    given = moving.Import(file, why, expect_seq)
    leave_by(lambda: moving.import_state(Screen(as_json=as_json), wishes, given))


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
    """Change places in an idle session's state; recorded with who and why. All of them at once, or none.

    Example: longhaul state edit nightly --set 'context[3].content[0].text="Fifty."' --why "recounted"
    """
    from starter.cli import moving
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    leave_by(lambda: moving.edit_state(Screen(as_json=as_json), Name(s, user, agent), set_, why))


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
    from starter.cli import moving
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    leave_by(lambda: moving.fork_state(Screen(as_json=as_json), Name(s, user, agent), new, at))


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
    """Delete all that is kept of a closed session: histories, stored state, blobs, offloaded content; no workspace.

    Example: longhaul state delete nightly --terminate --yes
    """
    from starter.cli import deleting
    from starter.cli.finding import Name
    from starter.cli.screen import Screen

    leave_by(lambda: deleting.delete(Screen(as_json=as_json), Name(s, user, agent), terminate=terminate, unasked=yes))
