"""The commands about new versions of the workers, with their flags: rollout check, promote, status."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="New versions of the workers.", no_args_is_help=True)

Limit = Annotated[
    int | None, typer.Option(min=1, help="Replay no more sessions than these: half the longest, half the newest.")
]


@app.command()
def check(*, limit: Limit = None, as_json: options.AsJson = False) -> None:
    """Replay all open sessions and hubs against this installation, and say of each whether it would go on.

    Nothing is changed. Exit 0 all would, 1 something would break.
    Example: longhaul rollout check --limit 200
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import rollout as rolling

    leave_by(lambda: rolling.check(Screen(as_json=as_json), limit))


@app.command()
def promote(
    build: Annotated[str, typer.Argument(help="As `rollout status` names it.")],
    *,
    stay: Annotated[
        bool, typer.Option("--stay", help="Sessions that would break stay with the build that they have.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Without the check.")] = False,
    limit: Limit = None,
    as_json: options.AsJson = False,
) -> None:
    """Check, then send all sessions of LONGHAUL_DEPLOYMENT to this build. Run it from an installation of that build.

    A build that is older is promoted in the same way: what the newer one has written is replayed against it.
    Exit 0 it is the current one now; 1 something would break, and nothing was changed.
    Example: LONGHAUL_DEPLOYMENT=agents longhaul rollout promote 0.1.0-4f1c2ab09d3e
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import rollout as rolling

    leave_by(lambda: rolling.promote(Screen(as_json=as_json), build, limit, stay=stay, force=force))


@app.command()
def status(*, as_json: options.AsJson = False) -> None:
    """List the builds of LONGHAUL_DEPLOYMENT, which one is current, and how many open sessions each has."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import rollout as rolling

    leave_by(lambda: rolling.status(Screen(as_json=as_json)))
