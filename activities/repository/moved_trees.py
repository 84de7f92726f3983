"""Finds what a folder brings along when it is moved: files that others run, and files with secrets."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from longhaul.activities.repository.dangerous_files import danger_by_name, danger_to_others
from longhaul.activities.repository.secret_trees import TooLarge

MOST_NAMES = 2_000


def moved_along(places: Sequence[str], root: Path) -> str:
    """The first path with a dangerous name that comes or goes when those of `places` that are folders are moved to the
    others; empty when there is none. `places` are absolute. Raises TooLarge, OSError."""
    real = [Path(os.path.realpath(place)) for place in places]
    for folder in dict.fromkeys(place for place in real if place.is_dir()):
        for name in _below(folder):
            for place in real:
                path = place / name
                parts = path.relative_to(root).parts if path.is_relative_to(root) else path.parts
                if danger_to_others(parts) or danger_by_name(parts, "write"):
                    return str(path)
    return ""


def _below(start: Path) -> Iterator[str]:
    """Each name below, relative to `start`, links not followed."""
    seen, waiting = 0, [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(start / folder) as entries:
            for entry in entries:
                seen += 1
                if seen > MOST_NAMES:
                    raise TooLarge
                name = f"{folder}{entry.name}"
                yield name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
