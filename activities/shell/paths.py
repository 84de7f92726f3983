"""Paths that a model names: where they lead at this moment, what is dangerous about going there, and all names under
which one is reached: a rule may speak of any of them, so no link hides what it leads to.

Nothing is granted here. A path outside the workspace is a fact (`inside=False`) on which permission decides. A
search leaves out what a deny or ask rule speaks of, however it was asked for.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from longhaul.activities.repository import Access, danger_by_kind, danger_by_name, danger_to_others, lies_on_path
from longhaul.activities.tool import Place, ToolError
from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse
from longhaul.agent.permission.rule_matching import path_matches, spelt_out

MAX_LINKS = 40
"""On one way, as in Linux."""


Followed = tuple[tuple[str, str], ...]
"""Folders of rules: as each is spelt, and where that leads."""


def followed(ruled: tuple[str, ...]) -> Followed:
    """Where the folders lead now. Good for looking at one call, and not for the next one: links change."""
    home = os.environ.get("HOME") or "/root"
    spelt = (home + folder[1:] if folder.startswith("~") else folder for folder in ruled)
    return tuple((folder, real) for folder in spelt if (real := _real(folder)))


def further_names(raw: str, resolved: Path, place: Place, ruled: Followed | None = None) -> tuple[str, ...]:
    """All but `resolved` itself: as `raw` spells it, at each link on the way, and as a rule of the session spells it.

    `ruled`: `followed(place.ruled)`, for whoever asks about many paths of one call. Raises ToolError for a way over
    more than MAX_LINKS links.
    """
    spelt = list(_on_the_way(os.path.join(place.cwd, raw)))  # noqa: PTH118  Path would take out what links change
    below = spelt_below(followed(place.ruled) if ruled is None else ruled, str(resolved))
    return tuple(name for name in dict.fromkeys((*spelt, *below)) if name not in ("", str(resolved)))


def spelt_below(ruled: Followed, resolved: str) -> Iterator[str]:
    """The resolved path as the rules would spell it whose folders it lies in."""
    yield from (name for pair in ruled if (name := _below(*pair, resolved)))


def _on_the_way(path: str) -> Iterator[str]:
    """The path itself with `..` taken out of the text, and what it becomes before each link is followed."""
    yield _joined("/", path.split("/"))
    done, rest, links = "/", path.split("/"), 0
    while rest:
        part, *rest = rest
        if part in ("", ".", ".."):
            done = os.path.dirname(done) if part == ".." else done  # noqa: PTH120
            continue
        here = _joined(done, [part])
        target = _target(here)
        if target is None:
            done = here
            continue
        links += 1
        if links > MAX_LINKS:
            raise ToolError(f"the path leads over more than {MAX_LINKS} symbolic links; name the file itself")
        yield _joined(here, rest)
        done = "/" if target.startswith("/") else done
        rest = [*target.split("/"), *rest]


def _joined(folder: str, parts: list[str]) -> str:
    return os.path.normpath("/" + "/".join((folder.strip("/"), *parts)).lstrip("/"))


def _target(path: str) -> str | None:
    """Where a link leads; None for what is none. A name that is no text leads nowhere that could be recorded."""
    try:
        target = os.readlink(path)  # noqa: PTH115  Path would take out what links change
        target.encode()
    except (OSError, ValueError):
        return None
    return target


def _real(folder: str) -> str:
    """Empty for what can't be a path."""
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return ""


def _below(spelt: str, real: str, resolved: str) -> str:
    """The resolved path as a rule for the folder would spell it; empty when it does not lie there."""
    if resolved != real and not resolved.startswith(real.rstrip("/") + "/"):
        return ""
    return spelt.rstrip("/") + resolved[len(real.rstrip("/")) :]


KERNEL_ROOMS = ("/proc", "/dev", "/sys")
"""Names in there are not files: reading one may block, leak the worker's secrets or change the machine."""


def resolve(raw: str, place: Place) -> Path:
    """Where `raw` leads now: absolute, symlinks and `..` resolved, relative to the session's working directory.

    The last parts need not exist. Nothing is expanded: `$HOME/x` and `%2e%2e/x` are literal names.
    Raises ToolError for what can't be a path (empty, NUL, not Unicode, too long, a loop of links) and for `~`.
    """
    if not raw:
        raise ToolError("the path is empty; give an absolute path, or one relative to the working directory")
    if "\0" in raw:
        raise ToolError(f"{_quote(raw)} contains a NUL character, which no path can")
    if raw == "~" or raw.startswith("~/"):
        raise ToolError(f"{_quote(raw)}: `~` is not expanded here; write the absolute path")
    try:
        raw.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{_quote(raw)} is not valid Unicode, so it can't name a file") from None
    resolved = os.path.realpath(place.cwd / raw)
    try:
        resolved.encode()
        if Path(resolved).is_symlink():
            raise ToolError(f"{_quote(raw)} is a loop of symbolic links; name the file itself")
        os.lstat(resolved)
    except UnicodeEncodeError:
        raise ToolError(f"{_quote(raw)} leads to a name that is not valid UTF-8; rename it with Bash first") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise ToolError(f"{_quote(raw)} can't be used as a path: {os.strerror(error.errno)}") from None
    return Path(resolved)


def resolve_file(raw: str, place: Place) -> Path:
    """As `resolve`, for a path that must name a file: a trailing slash is refused, and so are /proc, /dev and /sys."""
    resolved = resolve(raw, place)
    if raw.endswith(("/", "/.", "/..")) or raw in (".", ".."):
        raise ToolError(f"{_quote(raw)} names a directory; give the path of a file")
    if in_kernel_room(resolved):
        raise ToolError(f"{_quote(raw)} leads to {str(resolved)!r}, which is not a regular file; it was not touched")
    return resolved


def in_kernel_room(resolved: Path) -> bool:
    """Whether the path is under /proc, /dev or /sys."""
    return any(resolved.is_relative_to(room) for room in KERNEL_ROOMS)


def path_use(resolved: Path, access: Access, root: Path, named: tuple[str, ...] = ()) -> PathUse:
    """What permission needs to know of one resolved path. `root` is the resolved workspace root, `named` what
    `further_names` has found."""
    inside = resolved.is_relative_to(root)
    danger = danger_of_name(resolved, access, root) or danger_by_kind(resolved)
    if access == "write" and inside:
        danger = danger or danger_to_others(resolved.relative_to(root).parts)
        danger = danger or (f"{resolved.name} becomes a program on PATH" if lies_on_path(resolved) else "")
    return PathUse(path=str(resolved), named=named, access=access, inside=inside, danger=danger)


def danger_of_name(resolved: Path, access: Access, root: Path) -> str:
    """Why the path's name alone is a reason to ask; empty when it is none. Nothing is looked up."""
    # The workspace itself may lie in a folder with a dangerous name (the data directory's `.longhaul`).
    looked_at = resolved.relative_to(root) if resolved.is_relative_to(root) else resolved
    return danger_by_name(looked_at.parts, access)


def reading_use(raw: str, resolved: Path, place: Place) -> PathUse:
    """As `path_use`, for a tool that reads, and that follows no link below `resolved`: what was offloaded for the
    session is as open to it as the workspace. Raises ToolError, as `further_names` does."""
    named = further_names(raw, resolved, place)
    folder = next((folder for folder in place.offloaded if resolved in (folder, folder / resolved.name)), None)
    if folder is None or not _holds_own_files(resolved):
        return path_use(resolved, "read", place.root, named)
    return path_use(resolved, "read", folder, named)


def is_as_decided(analysis: CallAnalysis, raw: str, resolved: Path, place: Place) -> bool:
    """Whether a reading call still leads to the one path of `analysis`, on the same way, and is as open as it was."""
    now = reading_use(raw, resolved, place)
    return [(fact.path, fact.named, fact.inside) for fact in analysis.paths] == [(now.path, now.named, now.inside)]


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


def _quote(raw: str) -> str:
    """`raw` quoted, and short enough for a sentence."""
    return repr(raw) if len(raw) <= 200 else f"{raw[:100]!r}… ({len(raw)} characters)"


_READING = ("Read", "Grep", "Glob")


def closed_patterns(place: Place, target: Path) -> tuple[str, ...]:
    """Absolute patterns of rules about reading, as the rules write them, and with links followed that lead elsewhere.

    One that speaks of `target` itself is left out: it has been decided whether that is searched.
    """
    root = str(place.root)
    written = [pattern for tool, pattern in place.closed if tool in _READING]
    patterns = dict.fromkeys(each for pattern in written for each in _everywhere(pattern, place))
    return tuple(pattern for pattern in patterns if not path_matches(pattern, str(target), root))


def _everywhere(pattern: str, place: Place) -> Iterator[str]:
    for spelt in spelt_out(pattern, str(place.root)):
        yield spelt
        for folder, real in followed(place.ruled):
            if spelt == folder or spelt.startswith(folder.rstrip("/") + "/"):
                yield real.rstrip("/") + spelt[len(folder.rstrip("/")) :]


def as_search_globs(patterns: tuple[str, ...]) -> list[str]:
    """As ripgrep takes them when it stands in `/`: what a rule means literally and ripgrep does not becomes `?`."""
    return [re.sub(r"[\[\]{}\\]", "?", pattern) for pattern in patterns]


def anchored(glob: str, folder: Path) -> str:
    """A glob that counts from `folder`, for a search that stands in `/`; one of a name alone counts anywhere."""
    sign, body = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    if "/" not in body.rstrip("/"):
        return glob
    start = re.sub(r"[\[\]{}*?!\\]", "?", str(folder)).rstrip("/")
    return f"{sign}{start}/{body.lstrip('/')}"
