"""Places in a state's JSON, as people write them: `context[3].content[0].text`, `metadata["odd.name"]`."""

import json
import re
from copy import deepcopy
from typing import Any, cast

from longhaul.agent.plain.errors import BadInput
from longhaul.agent.plain.text import did_you_mean

FIXED = ("session_id", "user_id", "agent", "behaviour", "reply_context", "tool_context.cwd")
"""What is the session's own: it would keep it whatever was sent."""

_STEP = re.compile(r'\.?([^.\[\]"\s]+)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]')


class BadPath(BadInput, ValueError):
    """A path that leads nowhere; the sentence names the part and what there is instead."""


def steps_of(path: str) -> list[str | int]:
    """The names and indexes of a path. Raises BadPath."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (at == 0 and path[0] in ".["):
            raise BadPath(
                f"{path!r} is no path from {path[at : at + 20]!r} on; write it like context[3].content[0].text"
            )
        name, index, quoted = found.groups()
        steps.append(int(index) if index is not None else json.loads(quoted) if quoted is not None else name)
        at = found.end()
    if not steps:
        raise BadPath("the path is empty; write it like summary or context[3].content[0].text")
    return steps


def with_value(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of the document with another value at the path. An index just past the end adds to the list.

    Raises BadPath for a place that the document does not have, but for the last name: whether a field of that name may
    stand there is known only to who reads the document.
    """
    steps = steps_of(path)
    if steps[0] in FIXED or _named(steps) in FIXED:
        raise BadPath(f"{path}: this is the session's own and stays as it is")
    changed = deepcopy(document)
    place: Any = changed
    for at, step in enumerate(steps[:-1]):
        place = _inside(place, step, _spelled(steps[: at + 1]))
    _put(place, steps[-1], value, path)
    return changed


def _inside(place: Any, step: str | int, path: str) -> Any:
    match place:
        case dict():
            fields = cast(dict[str, Any], place)
            if step not in fields:
                raise BadPath(f"{path}: there is nothing of that name; {did_you_mean(str(step), fields)}")
            return fields[str(step)]
        case list():
            if not isinstance(step, int) or step >= len(place):
                raise BadPath(f"{path}: that is a list of {len(place)} items; they count from [0]")
            return place[step]
        case _:
            raise BadPath(f"{path}: there is a plain value before it, with nothing inside")


def _put(place: Any, step: str | int, value: Any, path: str) -> None:
    match place:
        case dict() if isinstance(step, str):
            place[step] = value
        case list() if isinstance(step, int) and step < len(place):
            place[step] = value
        case list() if isinstance(step, int) and step == len(place):
            place.append(value)
        case dict():
            raise BadPath(f"{path}: {step!r} is no name of a field; names stand after a dot, or in quotes in brackets")
        case _:
            _inside(place, step, path)


def _named(steps: list[str | int]) -> str:
    return ".".join(str(step) for step in steps)


def _spelled(steps: list[str | int]) -> str:
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]
    return "".join(parts).lstrip(".")
