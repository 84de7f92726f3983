"""The gist of a call is one line that says what it is about: for lists, for progress, for the Web UI."""

import json
from typing import Any, cast

_TELLING = ("command", "file_path", "pattern", "path", "url", "query")
"""Arguments that say on one line what a call is about; without any, all of them are shown."""


def gist(arguments: str) -> str:
    """The telling argument of a call's JSON arguments, an only one by itself, several as `name: value, name: value`;
    what is not a JSON object comes back as it is."""
    given = parsed(arguments)
    if given is None:
        return arguments
    for name in _TELLING:
        if isinstance(given.get(name), str):
            return str(given[name])
    if len(given) == 1:
        return _in_words(*given.values())
    return ", ".join(f"{name}: {_in_words(value)}" for name, value in given.items())


def _in_words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def parsed(arguments: str) -> dict[str, Any] | None:
    """JSON arguments as a dictionary; None for anything else that a model may write."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], given) if isinstance(given, dict) else None
