"""The commands about keys of encrypted sessions, with their flags: keys new, rewrap."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="Keys that sessions are encrypted with.", no_args_is_help=True)


@app.command()
def new(name: Annotated[str, typer.Argument(help="What it will be called; another name for each key.")] = "1") -> None:
    """Print a new master key, for LONGHAUL_MASTER_KEY. It is kept nowhere: keep it where you keep passwords.

    Example: longhaul keys new 2026
    """
    from longhaul.starter.cli.work import keys

    leave_by(lambda: keys.new(name))


@app.command()
def rewrap(*, as_json: options.AsJson = False) -> None:
    """Wrap the keys of all sessions with the first key of LONGHAUL_MASTER_KEY; then the others may be left out."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import keys

    leave_by(lambda: keys.rewrap(Screen(as_json=as_json)))
