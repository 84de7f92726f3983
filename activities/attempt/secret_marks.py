"""Arguments of calls without the values of secrets: what is recorded and shown has a mark where each stood.

`[secret NAME]` stands for the value: within the strings of JSON, names included, however they were escaped.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from longhaul.activities.masking.masker import Masker, mark

SPELT_OTHERWISE = "a secret in another spelling: "
"""What arguments begin with that are no JSON because of it: they are refused."""


def marked(arguments: str, masker: Masker) -> str:
    """The same with marks. No JSON any more where a value can't be cut out of a string: a number, broken JSON."""
    if not masker.found(arguments):
        return arguments
    try:
        text = _written(_with(_parsed(arguments), masker.masked))
    except (ValueError, RecursionError):
        text = arguments
    return masker.masked(text)


def kept(arguments: str, masker: Masker, values: Mapping[str, str]) -> str:
    """The same, where nothing else is recorded: `filled` gives back what was meant, or it is no JSON and says why.

    `values`: all that the masker knows.
    """
    text = marked(arguments, masker)
    if text == arguments or _means_the_same(filled(text, values), filled(arguments, values)):
        return text
    return f"{SPELT_OTHERWISE}{text}"


def filled(arguments: str, values: Mapping[str, str]) -> str:
    """JSON with these values in the place of their marks; what is no JSON comes back as it is."""
    marks = {mark(name): value for name, value in values.items()}
    if not any(each in arguments for each in marks):
        return arguments
    pattern = re.compile("|".join(map(re.escape, marks)))
    try:
        return _written(_with(_parsed(arguments), lambda text: pattern.sub(lambda found: marks[found[0]], text)))
    except (ValueError, RecursionError):
        return arguments


def _with(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return _once([(change(name), _with(inner, change)) for name, inner in value.items()])
        case list():
            return [_with(inner, change) for inner in value]
        case _:
            return value


def _parsed(arguments: str) -> Any:
    return json.loads(arguments, object_pairs_hook=_once, parse_constant=_refused)


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can spell
        return json.dumps(value)
    return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(plain := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return plain


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _means_the_same(one: str, other: str) -> bool:
    try:
        return bool(_parsed(one) == _parsed(other))
    except (ValueError, RecursionError):
        return False
