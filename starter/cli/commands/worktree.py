"""Lists, merges and drops working trees for `longhaul worktree`: they lie on this machine, and no session is asked."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from longhaul.starter.cli import options
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line
from longhaul.stores.worktrees import worktrees
from longhaul.stores.worktrees.git import repository_at

group = options.SubjectCommands(no_args_is_help=True)

Repository = Annotated[
    Path, typer.Option("--repository", help="Top of the repository; default: the current directory.")
]
Branch = Annotated[str, typer.Argument(metavar="BRANCH", help="As `worktree list` shows it.")]


@group.command("list")
async def list_worktrees(screen: Screen, *, repository: Repository = Path()) -> int:
    """List the working trees of sessions: branch, folder, session."""
    found = await asyncio.to_thread(lambda: worktrees.list_worktrees(repository_at(repository.resolve())))
    screen.document([{"branch": one.branch, "root": str(one.root), "workflow": one.session_key} for one in found])
    for one in found:
        screen.show_fields(*(Text(one_line(str(each))) for each in (one.branch, one.root, one.session_key)))
    if not found:
        screen.show(Text("no session has a working tree of this repository"))
    return 0


@group.command()
async def merge(
    screen: Screen,
    branch: Branch,
    *,
    repository: Repository = Path(),
    keep: Annotated[bool, typer.Option("--keep", help="Keep the tree and its branch.")] = False,
) -> int:
    """Commit the changes in a session's tree, and merge them into the current branch here.

    Example: longhaul worktree merge longhaul/3f9a0c1d2e4b
    """
    data_dir, repository = Settings().data_dir, repository.resolve()
    commit = await asyncio.to_thread(worktrees.merge, repository, data_dir, branch)
    if not keep:
        await asyncio.to_thread(worktrees.discard, repository, data_dir, branch)
    screen.show(Text(one_line(f"merged {branch} as {commit[:12]}" if commit else f"{branch} contains nothing new")))
    screen.document({"branch": branch, "merged": commit, "kept": keep})
    return 0


@group.command()
async def discard(screen: Screen, branch: Branch, *, repository: Repository = Path()) -> int:
    """Delete a session's tree and its branch, with everything in them."""
    gone = await asyncio.to_thread(worktrees.discard, repository.resolve(), Settings().data_dir, branch)
    screen.show(Text(one_line(f"deleted {gone.branch} and {gone.root}")))
    screen.document({"branch": gone.branch, "root": str(gone.root)})
    return 0
