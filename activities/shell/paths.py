"""Paths that a model names: where they lead at this moment, and what is dangerous about going there.

Nothing is granted here. A path outside the workspace is a fact (`inside=False`) on which permission decides.
"""

import errno
import os
import stat
from pathlib import Path

from longhaul.activities.repository.dangerous_files import (
    Access,
    danger_by_kind,
    danger_by_name,
    danger_to_others,
    lies_on_path,
)
from longhaul.activities.shell.path_names import further_names
from longhaul.activities.tool import Place, ToolError
from longhaul.agent.permission.call_facts import CallFacts, PathFact

KERNEL_ROOMS = ("/proc", "/dev", "/sys")
"""Names in there are not files: reading one may block, leak the worker's secrets or change the machine."""


def resolve(raw: str, place: Place) -> Path:
    """Where `raw` leads now: absolute, symlinks and `..` resolved, relative to the session's working directory.

    The last parts need not exist. Nothing is expanded: `$HOME/x` and `%2e%2e/x` are literal names.
    Raises ToolError for what can't be a path (empty, NUL, not Unicode, too long, a loop of links) and for `~`.
    """
    _refuse_impossible(raw)
    resolved = os.path.realpath(place.cwd / raw)
    try:
        resolved.encode()
        if Path(resolved).is_symlink():
            raise ToolError(f"{_shown(raw)} is a loop of symbolic links; name the file itself")
        os.lstat(resolved)
    except UnicodeEncodeError:
        raise ToolError(f"{_shown(raw)} leads to a name that is not valid UTF-8; rename it with Bash first") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise ToolError(f"{_shown(raw)} can't be used as a path: {os.strerror(error.errno)}") from None
    return Path(resolved)


def resolve_file(raw: str, place: Place) -> Path:
    """As `resolve`, for a path that must name a file: a trailing slash is refused, and so are /proc, /dev and /sys."""
    resolved = resolve(raw, place)
    if raw.endswith(("/", "/.", "/..")) or raw in (".", ".."):
        raise ToolError(f"{_shown(raw)} names a directory; give the path of a file")
    if in_kernel_room(resolved):
        raise ToolError(f"{_shown(raw)} leads to {str(resolved)!r}, which is not a regular file; it was not touched")
    return resolved


def in_kernel_room(resolved: Path) -> bool:
    """Whether the path is under /proc, /dev or /sys."""
    return any(resolved.is_relative_to(room) for room in KERNEL_ROOMS)


def path_fact(resolved: Path, access: Access, root: Path, named: tuple[str, ...] = ()) -> PathFact:
    """What permission needs to know of one resolved path. `root` is the resolved workspace root, `named` what
    `further_names` has found."""
    inside = resolved.is_relative_to(root)
    danger = danger_of_name(resolved, access, root) or danger_by_kind(resolved)
    if access == "write" and inside:
        danger = danger or danger_to_others(resolved.relative_to(root).parts)
        danger = danger or (f"{resolved.name} becomes a program on PATH" if lies_on_path(resolved) else "")
    return PathFact(path=str(resolved), named=named, access=access, inside=inside, danger=danger)


def danger_of_name(resolved: Path, access: Access, root: Path) -> str:
    """Why the path's name alone is a reason to ask; empty when it is none. Nothing is looked up."""
    # The workspace itself may lie in a folder with a dangerous name (the data directory's `.longhaul`).
    looked_at = resolved.relative_to(root) if resolved.is_relative_to(root) else resolved
    return danger_by_name(looked_at.parts, access)


def reading_fact(raw: str, resolved: Path, place: Place) -> PathFact:
    """As `path_fact`, for a tool that reads, and that follows no link below `resolved`: what was offloaded for the
    session is as open to it as the workspace. Raises ToolError, as `further_names` does."""
    named = further_names(raw, resolved, place)
    folder = next((folder for folder in place.offloaded if resolved in (folder, folder / resolved.name)), None)
    if folder is None or not _holds_own_files(resolved):
        return path_fact(resolved, "read", place.root, named)
    return path_fact(resolved, "read", folder, named)


def is_as_decided(facts: CallFacts, raw: str, resolved: Path, place: Place) -> bool:
    """Whether a reading call still leads to the one path of `facts`, on the same way, and is as open as it was."""
    now = reading_fact(raw, resolved, place)
    return [(fact.path, fact.named, fact.inside) for fact in facts.paths] == [(now.path, now.named, now.inside)]


def is_offloaded(resolved: Path, place: Place) -> bool:
    """Whether the path is, or lies below, a folder with what was offloaded for the session."""
    return any(resolved.is_relative_to(folder) for folder in place.offloaded)


def _holds_own_files(resolved: Path) -> bool:
    """Whether nothing was planted there: a file with a second name may be a secret from elsewhere, and offloading makes
    no folders in its folders. Links count for nothing: a search does not follow them."""
    try:
        status = resolved.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        with os.scandir(resolved) as entries:
            return all(entry.is_symlink() or _is_own_file(entry) for entry in entries)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _is_own_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_nlink == 1
    except FileNotFoundError:
        return True  # a draft that has just got its name


def _refuse_impossible(raw: str) -> None:
    if not raw:
        raise ToolError("the path is empty; give an absolute path, or one relative to the working directory")
    if "\0" in raw:
        raise ToolError(f"{_shown(raw)} contains a NUL character, which no path can")
    if raw == "~" or raw.startswith("~/"):
        raise ToolError(f"{_shown(raw)}: `~` is not expanded here; write the absolute path")
    try:
        raw.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{_shown(raw)} is not valid Unicode, so it can't name a file") from None


def _shown(raw: str) -> str:
    """`raw` quoted, and short enough for a sentence."""
    return repr(raw) if len(raw) <= 200 else f"{raw[:100]!r}… ({len(raw)} characters)"
