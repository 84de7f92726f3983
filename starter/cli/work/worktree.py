"""Lists, merges and drops working trees for `longhaul worktree`: they lie on this machine, and no session is asked."""

import asyncio
from pathlib import Path

from rich.text import Text

from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line
from longhaul.stores.worktrees import worktrees
from longhaul.stores.worktrees.git import repository_at


async def show(screen: Screen, repository: Path) -> int:
    found = await asyncio.to_thread(lambda: worktrees.listed(repository_at(repository)))
    screen.document([{"branch": one.branch, "root": str(one.root), "workflow": one.session_key} for one in found])
    for one in found:
        screen.show_fields(*(Text(one_line(str(each))) for each in (one.branch, one.root, one.session_key)))
    if not found:
        screen.show(Text("no session has a working tree of this repository"))
    return 0


async def merge(screen: Screen, repository: Path, branch: str, *, keep: bool) -> int:
    data_dir = Settings().data_dir
    commit = await asyncio.to_thread(worktrees.merge, repository, data_dir, branch)
    if not keep:
        await asyncio.to_thread(worktrees.discard, repository, data_dir, branch)
    screen.show(Text(one_line(f"merged {branch} as {commit[:12]}" if commit else f"{branch} holds nothing new")))
    screen.document({"branch": branch, "merged": commit, "kept": keep})
    return 0


async def discard(screen: Screen, repository: Path, branch: str) -> int:
    gone = await asyncio.to_thread(worktrees.discard, repository, Settings().data_dir, branch)
    screen.show(Text(one_line(f"threw away {gone.branch} and {gone.root}")))
    screen.document({"branch": gone.branch, "root": str(gone.root)})
    return 0
