"""The gist of a call is one line that says what it is about: for lists, for progress, for the Web UI."""

import json
from typing import Any, cast

_TELLING = ("command", "file_path", "pattern", "path", "url", "query")
"""Arguments that say on one line what a call is about; without any, all of them are shown."""

_DEEPEST = 4
"""So far may lists and objects stand within each other."""


def gist(arguments: str) -> str:
    """The telling argument of a call's JSON arguments, an only text by itself, others as `name: value, name: value`. Of
    an object within them its first text is told. What is not a JSON object comes back as it is."""
    given = parsed(arguments)
    if given is None:
        return arguments
    for name in _TELLING:
        if isinstance(given.get(name), str):
            return str(given[name])
    if len(given) == 1 and isinstance(only := next(iter(given.values())), str):
        return only
    return _told(given)


def _told(value: Any, depth: int = 0) -> str:
    """A value in words. What nests deeper is not looked at: it could be read, and be too deep to be written."""
    match value:
        case str():
            return value
        case list() if depth < _DEEPEST:
            return ", ".join(_told(one, depth + 1) for one in value)
        case dict() if depth < _DEEPEST:
            named = cast(dict[str, Any], value)
            texts = [one for one in named.values() if isinstance(one, str)] if depth else []
            return texts[0] if texts else ", ".join(f"{name}: {_told(one, depth + 1)}" for name, one in named.items())
        case list() | dict():
            return "…"
        case _:
            return json.dumps(value, ensure_ascii=False)


def parsed(arguments: str) -> dict[str, Any] | None:
    """JSON arguments as a dictionary; None for anything else that a model may write."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], given) if isinstance(given, dict) else None
