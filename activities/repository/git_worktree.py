"""Finds the repository of a linked working tree, if that repository says the same."""

from pathlib import Path

from longhaul.stores.worktrees.linked import own_folder


def repository_of(root: Path) -> Path | None:
    """The folder of the repository that `root` is a working tree of, when it lies elsewhere; None otherwise."""
    own = own_folder(root)
    return None if own is None else own.parent.parent
