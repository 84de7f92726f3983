"""A folder of a repository in which git may write: all that lies there is its own, and its configuration is plain.

A model, or whoever made the archive, may have put anything there: links to another's branches and objects, hooks in the
configuration (which run whatever `core.hooksPath` says), pipes on which git would wait for ever.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from longhaul.agent.plain.errors import BadInput
from longhaul.stores.regular_files import NotRegular, read_regular
from longhaul.stores.worktrees.plain_git_config import CONFIG_CAP_BYTES, is_plain_config

FOREIGN = ("commondir", "gitdir", "remotes", "config.worktree", "modules", "objects/info/alternates",
           "objects/info/http-alternates", "info/grafts", "info/sparse-checkout")  # fmt: skip
"""None of these is in a plain repository: they lead elsewhere, or change what is read."""
MOST_NAMES = 200_000
"""Of a repository, looked at before git writes there."""
_SHARED = frozenset({"objects", "lfs"})
"""A local clone shares the files there with its origin by hard links; git replaces them and writes into none."""


class GitProblem(BadInput):
    """What was to be done with a repository can't be; the sentence says why, and nothing was changed."""


def require_plain(common: Path) -> None:
    """Of what git keeps for a repository. Raises GitProblem, OSError."""
    if not stat.S_ISDIR(os.lstat(common).st_mode):
        raise GitProblem(f"{str(common)!r} is no folder of its own; such a repository is left alone")
    for name in FOREIGN:
        if os.path.lexists(common / name):
            raise GitProblem(f"{str(common / name)!r} leads elsewhere; such a repository is left alone")
    _require_own(common)
    if not is_plain_config(text_of(common / "config", CONFIG_CAP_BYTES)):
        raise GitProblem(
            f"{str(common / 'config')!r} has settings that may name a program or a file, or that are not known here;"
            " such a repository is left alone. Move them to your own ~/.gitconfig"
        )


def _require_own(common: Path) -> None:
    """Nothing but folders and files, and no file that may lie elsewhere, too."""
    seen, waiting = 0, [str(common)]
    shared = tuple(str(common / name) for name in _SHARED)
    while waiting:
        folder = waiting.pop()
        with suppress(FileNotFoundError), os.scandir(folder) as entries:  # a `git gc` tidies up
            for entry in entries:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_file(follow_symlinks=False) or _has_another_name(entry, folder, shared):
                    raise GitProblem(f"{entry.path!r} is a link or a pipe; such a repository is left alone")
        if seen > MOST_NAMES:
            raise GitProblem(f"{str(common)!r} holds more than {MOST_NAMES} files; run `git gc` there")


def _has_another_name(entry: os.DirEntry[str], folder: str, shared: tuple[str, ...]) -> bool:
    try:
        return not folder.startswith(shared) and entry.stat(follow_symlinks=False).st_nlink > 1
    except FileNotFoundError:
        return False


def text_of(file: Path, cap_bytes: int) -> str:
    """The text of a file that is one, no link and no pipe; empty when there is none. Raises GitProblem."""
    try:
        return read_regular(file, cap_bytes).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except NotRegular as error:
        raise GitProblem(str(error)) from None
    except (OSError, ValueError) as error:
        raise GitProblem(f"{str(file)!r} can't be read: {error}") from None
