"""The gist of a call is one line that says what it is about: for lists, for progress, for the Web UI."""

import json
from typing import Any, cast

_TELLING = ("command", "file_path", "pattern", "path", "url", "query")
"""Arguments that say on one line what a call is about; without any, all of them are shown."""


def gist(arguments: str) -> str:
    """The telling argument of a call's JSON arguments, an only text by itself, others as `name: value, name: value`.
    What is not a JSON object comes back as it is."""
    given = parsed(arguments)
    if given is None:
        return arguments
    for name in _TELLING:
        if isinstance(given.get(name), str):
            return str(given[name])
    texts = {name: one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for name, one in given.items()}
    if list(given.values()) == list(texts.values()) and len(texts) == 1:
        return "".join(texts.values())
    return ", ".join(f"{name}: {text}" for name, text in texts.items())


def parsed(arguments: str) -> dict[str, Any] | None:
    """JSON arguments as a dictionary; None for anything else that a model may write."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], given) if isinstance(given, dict) else None
