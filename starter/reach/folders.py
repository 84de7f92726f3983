"""Tells which folders of this process workers see: all where both stand on one root of a file system, as on one
machine; else the one that the operator has mounted for them under the same path."""

from collections.abc import Set
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError

from longhaul.starter.reach.storage_places import keepers, root_mark


async def roots_of_workers(client: Client, queue: str) -> Set[str]:
    """Marks of the file systems that they stand on; empty where nobody tells: none polled lately, or we may not ask."""
    try:
        return {keeper.root for keeper in await keepers(client, queue)}
    except RPCError:
        return set()


def as_workers_see(folder: Path, roots: Set[str], project: str) -> Path | None:
    """The path under which workers with these roots find an absolute folder of ours; None when they don't see it.

    `project`: the folder that is mounted for them, or nothing. Where nobody tells, we are taken to be on one machine.
    """
    if not roots or root_mark() in roots:
        return folder
    if not project:
        return None
    mounted = Path(project).expanduser().absolute()
    # A shell names a folder behind a link by its real path, and the mount may go by the name of the link.
    real, top = folder.resolve(), mounted.resolve()
    return mounted / real.relative_to(top) if real.is_relative_to(top) else None
