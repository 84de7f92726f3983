"""The command `trust` with its flags."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from pathlib import Path
from typing import Annotated

import typer

from longhaul.starter.cli.options import leave_by


def add_to(app: typer.Typer) -> None:
    """Make it known to `longhaul`."""
    app.command()(trust)


def trust(
    folder: Annotated[Path, typer.Argument(help="Else the current one.")] = Path(),
    *,
    forget: Annotated[bool, typer.Option("--forget", help="Take it back.")] = False,
) -> None:
    """Let a folder's longhaul.toml and agents/ count, as they are now; when they change, it is asked again.

    Example: longhaul trust ~/src/shop
    """
    from longhaul.starter.cli.work import trust as deciding

    leave_by(lambda: deciding.decide(folder, forget=forget))
