"""Path patterns of rules: `*` and `?` stay within one folder, `**` crosses folders, all else is literal."""

import re
from functools import lru_cache

_HOMES = "(?:/root|/home/[^/]+|/Users/[^/]+)"


def path_matches(pattern: str, path: str, workspace_root: str) -> bool:
    """Whether a resolved absolute path matches. A relative pattern is meant under the workspace root.

    `**/name` is meant anywhere and `~/name` in any home. `dir/**` matches the folder itself too. `[` and `{` are
    literal, and `..` takes back the part before it.
    """
    return _compiled(pattern, workspace_root.rstrip("/")).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str, root: str) -> re.Pattern[str]:
    if pattern.startswith("~/"):
        return re.compile(_HOMES + _translated(pattern[1:]), re.DOTALL)
    if pattern == "**" or pattern.startswith("**/"):
        return re.compile(_translated("/" + pattern), re.DOTALL)
    anchored = pattern if pattern.startswith("/") else f"{root}/{pattern.removeprefix('./')}"
    return re.compile(_translated(anchored), re.DOTALL)


def _translated(pattern: str) -> str:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    last = len(parts) - 1
    return "".join(_part(part, is_last=at == last) for at, part in enumerate(parts)) or "/"


def _part(part: str, *, is_last: bool) -> str:
    if part == "**":
        return "(?:/.*)?" if is_last else "(?:/[^/]+)*"
    return "/" + "".join(_character(char) for char in part)


def _character(char: str) -> str:
    return {"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char)
