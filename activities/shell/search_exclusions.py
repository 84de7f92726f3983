"""Lists what a search leaves out because a deny or ask rule speaks of it, however the search was asked for."""

import re
from collections.abc import Iterator
from pathlib import Path

from longhaul.activities.shell.path_names import followed
from longhaul.activities.tool import Place
from longhaul.agent.permission.rule_matching import path_matches, spelt_out

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
