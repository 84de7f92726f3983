"""The commands about git working trees of sessions, with their flags: worktree list, merge, discard."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from pathlib import Path
from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(
    help="Git working trees that sessions have of their own: merged, or thrown away. On the machine of the repository.",
    no_args_is_help=True,
)

Repository = Annotated[Path, typer.Option("--repository", help="Its top; else the current directory.")]
Branch = Annotated[str, typer.Argument(metavar="BRANCH", help="As `worktree list` shows it.")]


@app.command("list")
def list_(*, repository: Repository = Path(), as_json: options.AsJson = False) -> None:
    """Show the branches on which sessions work in trees of their own, and where those lie."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import worktree

    leave_by(lambda: worktree.show(Screen(as_json=as_json), repository.resolve()))


@app.command()
def merge(
    branch: Branch,
    *,
    repository: Repository = Path(),
    keep: Annotated[bool, typer.Option("--keep", help="Leave the tree and its branch there.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Commit what lies in a session's tree, and merge it into what is checked out here.

    Example: longhaul worktree merge longhaul/3f9a0c1d2e4b
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import worktree

    leave_by(lambda: worktree.merge(Screen(as_json=as_json), repository.resolve(), branch, keep=keep))


@app.command()
def discard(branch: Branch, *, repository: Repository = Path(), as_json: options.AsJson = False) -> None:
    """Throw away a session's tree and its branch, with all that lies in them."""
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import worktree

    leave_by(lambda: worktree.discard(Screen(as_json=as_json), repository.resolve(), branch))
