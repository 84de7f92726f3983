"""Finds the repository of a linked working tree, if that repository says the same."""

from pathlib import Path

CAP_CHARS = 4_096


def repository_of(root: Path) -> Path | None:
    """The folder of the repository that `root` is a working tree of, when it lies elsewhere; None otherwise.

    A file in the workspace may claim any folder to be its repository; only one that names this tree as its own counts.
    """
    link = root / ".git"
    said = _line(link)
    if not said.startswith("gitdir: "):
        return None
    folder = (root / said.removeprefix("gitdir: ")).resolve()
    repository = folder.parent.parent
    claims = folder.parent.name == "worktrees" and _line(folder / "gitdir") == str(link)
    return repository if claims and (repository / "HEAD").is_file() else None


def _line(file: Path) -> str:
    try:
        if not file.is_file() or file.is_symlink():
            return ""
        with file.open(encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read(CAP_CHARS).removesuffix("\n")
    except (OSError, ValueError):
        return ""
