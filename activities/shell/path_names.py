"""The names under which a path is reached: a rule may speak of any of them, so no link hides what it leads to."""

import os
from collections.abc import Iterator
from pathlib import Path

from longhaul.activities.tool import Place, ToolError

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
