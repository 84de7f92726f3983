"""Finds the git repository of a folder, where both say so of each other."""

from dataclasses import dataclass
from pathlib import Path

from longhaul.agent.plain.errors import BadInput

CAP_CHARS = 4_096


class GitProblem(BadInput):
    """What was to be done with a repository can't be; the sentence says why, and nothing was changed."""


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
    repository: only one that names this tree as its own counts, and none that sends git on elsewhere."""
    inside = root / ".git"
    if inside.is_dir() and not inside.is_symlink():
        for name in ("commondir", "objects", "refs"):
            if (inside / name).is_symlink() or (name == "commondir" and (inside / name).exists()):
                raise GitProblem(f"{str(inside / name)!r} leads elsewhere; such a repository is left alone")
        return Repository(root, inside, inside)
    if (own := own_folder(root)) is not None:
        return Repository(root, own, own.parent.parent)
    raise GitProblem(
        f"{str(root)!r} is not the top of a git repository; run `git init` and commit there, or name the top"
    )


def own_folder(root: Path) -> Path | None:
    """Of a linked working tree: the folder that its repository keeps for it; None for any other one."""
    link = root / ".git"
    said = _line(link)
    if not said.startswith("gitdir: "):
        return None
    folder = (root / said.removeprefix("gitdir: ")).resolve()
    claims = folder.parent.name == "worktrees" and _line(folder / "gitdir") == str(link)
    return folder if claims and (folder.parent.parent / "HEAD").is_file() else None


def _line(file: Path) -> str:
    try:
        if not file.is_file() or file.is_symlink():
            return ""
        with file.open(encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read(CAP_CHARS).removesuffix("\n")
    except (OSError, ValueError):
        return ""
