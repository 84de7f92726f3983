"""The commands about permission, with their flags: permission check."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from pathlib import Path
from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="What an agent may do unasked.", no_args_is_help=True)


@app.callback()
def permission() -> None:
    """What an agent may do unasked."""
    # Without a callback the group's only command would take the group's name.


@app.command()
def check(
    *,
    mode: options.Mode = None,
    rules: Annotated[
        Path | None, typer.Option(help="TOML or JSON: an agent file, its table `permission`, or a list of rules.")
    ] = None,
    workspace: options.Workspace = None,
) -> None:
    """Say of each call on stdin what a session would: allow, ask or deny. Nothing is run.

    Reads JSON lines `{"id", "tool", "input"}`, or for Bash `{"id", "command"}`; prints for each, in order, a JSON line
    `{"id", "behavior", "reason", "suggested_rules"}`. A line that is no such object gets `{"id", "error"}`, and the
    exit code is 2 at the end.

    Example: echo '{"id": 1, "command": "git push"}' | longhaul permission check --mode accept_edits
    """
    from longhaul.starter.cli.work import permission as permission_check

    leave_by(lambda: permission_check.check(permission_check.CheckFlags(mode, rules, workspace)))
