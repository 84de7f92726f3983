"""Path patterns of rules: `*` and `?` stay within one folder, `**` crosses folders, all else is literal.

Matching takes time in proportion to pattern and path at most, whatever the pattern: it runs in workflows, whose every
step has two seconds.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from itertools import takewhile

_HOMES = (("root",), ("home", "?*"), ("Users", "?*"))
_ANY_FOLDERS = "**"


def path_matches(pattern: str, path: str, workspace_root: str) -> bool:
    """Whether a resolved absolute path matches. A relative pattern is meant under the workspace root.

    `**/name` is meant anywhere and `~/name` in any home. `dir/**` matches the folder itself too. `[` and `{` are
    literal, and `..` takes back the part before it.
    """
    if not path.startswith("/"):
        return False
    return any(_fits(parts, path) for parts in _alternatives(pattern, workspace_root.rstrip("/")))


def literal_folder(pattern: str, workspace_root: str) -> str:
    """The beginning of a pattern that has no wildcard, absolute or below `~`; empty when there is none."""
    home = pattern.startswith("~/")
    (parts, *_) = (_parts(pattern[1:]),) if home else _alternatives(pattern, workspace_root.rstrip("/"))
    literal = takewhile(lambda part: "*" not in part and "?" not in part, parts)
    return "/".join(("~" if home else "", *literal))


def any_matches(pattern: str, paths: Iterable[str], workspace_root: str) -> bool:
    """`path_matches` for one of several names."""
    return any(path_matches(pattern, path, workspace_root) for path in paths)


def may_match_below(pattern: str, folders: Iterable[str], workspace_root: str) -> bool:
    """Whether it could match a path in or below one of the folders, or one of these itself. Rather too often."""
    literal = literal_folder(pattern, workspace_root)
    if not literal.startswith("/"):
        return True  # anywhere, or in any home
    ends = (folder.rstrip("/") + "/" for folder in folders)
    return any((literal + "/").startswith(end) or end.startswith(literal.rstrip("/") + "/") for end in ends)


def spelt_out(pattern: str, workspace_root: str) -> tuple[str, ...]:
    """The pattern from `/` on, once for each place that it may mean; `**/name` stays as it is."""
    found = ("/".join(("", *parts)) for parts in _alternatives(pattern, workspace_root.rstrip("/")))
    return tuple(each.removeprefix("/") if each.startswith("/**") else each.replace("?*", "*") for each in found)


@lru_cache(maxsize=512)
def _alternatives(pattern: str, root: str) -> tuple[tuple[str, ...], ...]:
    """The parts between the slashes, once for each thing that the pattern may stand for."""
    if pattern.startswith("~/"):
        return tuple((*home, *_parts(pattern[1:])) for home in _HOMES)
    if pattern == _ANY_FOLDERS or pattern.startswith("**/"):
        return (_parts(f"/{pattern}"),)
    return (_parts(pattern if pattern.startswith("/") else f"{root}/{pattern}"),)


def _parts(pattern: str) -> tuple[str, ...]:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _fits(parts: tuple[str, ...], path: str) -> bool:
    """Each part takes one folder; a part that does not fit lets the last `**` before it take one folder more. To go
    back any further could find nothing else, so nothing is tried twice."""
    folders = path[1:].split("/") if path != "/" else []
    at = place = 0
    crossing, taken = -1, 0
    while place < len(folders):
        if at < len(parts) and parts[at] == _ANY_FOLDERS:
            crossing, taken = at, place
            at += 1
        elif at < len(parts) and _compiled(parts[at]).match(folders[place]):
            at, place = at + 1, place + 1
        elif crossing >= 0:
            taken += 1
            at, place = crossing + 1, taken
        else:
            return False
    return all(part == _ANY_FOLDERS for part in parts[at:])


@lru_cache(maxsize=1024)
def _compiled(part: str) -> re.Pattern[str]:
    """`translate` makes patterns that never go back over what a `*` has taken."""
    return re.compile(translate(part.replace("[", "[[]")))
