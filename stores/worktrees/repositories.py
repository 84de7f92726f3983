"""Finds the git repository of a folder, where both say so of each other."""

from dataclasses import dataclass
from pathlib import Path

from longhaul.stores.worktrees.plain_git_folder import GitProblem, text_of

CAP_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree, and where git keeps what belongs to it."""

    root: Path
    """Of the working tree, links resolved."""
    own: Path
    """What git keeps of this tree alone: its HEAD and its index."""
    common: Path
    """What all trees of the repository share: objects and branches."""


def repository_at(root: Path) -> Repository:
    """Of the folder at whose top `.git` lies. Raises GitProblem. A file in the workspace may claim any folder to be its
    repository: only one that names this tree as its own counts. Before git writes there, `git_for` looks through it."""
    inside = root / ".git"
    if inside.is_dir() and not inside.is_symlink():
        return Repository(root, inside, inside)
    if (own := own_folder(root)) is not None:
        return Repository(root, own, own.parent.parent)
    raise GitProblem(
        f"{str(root)!r} is not the top of a git repository; run `git init` and commit there, or name the top"
    )


def own_folder(root: Path) -> Path | None:
    """Of a linked working tree: the folder that its repository keeps for it; None for any other one."""
    link = root / ".git"
    said = line_of(link)
    if not said.startswith("gitdir: "):
        return None
    try:
        folder = (root / said.removeprefix("gitdir: ")).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    # Otherwise git takes for the repository what lies anywhere.
    claims = line_of(folder / "commondir") == "../.." and line_of(folder / "gitdir") == str(link)
    beside = folder.parent.name == "worktrees" and folder.parent.parent.name == ".git"
    return folder if claims and beside and line_of(folder.parent.parent / "HEAD") else None


def line_of(file: Path) -> str:
    """What a file of one line says; empty where there is none."""
    try:
        return text_of(file, CAP_BYTES).removesuffix("\n")
    except GitProblem:
        return ""


def repository_of(root: Path) -> Path | None:
    """The folder of the repository that `root` is a working tree of, when it lies elsewhere; None otherwise."""
    own = own_folder(root)
    return None if own is None else own.parent.parent
