"""Arguments as the schema wants them, where a model has written another type and exactly one lossless reading exists.

| written | where the schema wants | becomes |
|---|---|---|
| `3.0` | a whole number | `3` |
| `"3"`, `"true"`, `"[1]"`, `"{}"` | another type than text | `3`, `true`, `[1]`, `{}` |
| `null` | something else, in a field that may be left out | nothing |
| all arguments as one JSON text | an object | that object |

What a schema allows is never changed, above all no text that may be text. Everything else stays as it is, for the check
against the schema to say what is wrong with it.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from longhaul.activities.tools.arguments import ArgumentsError, TooManySteps, parse_arguments, words_of

MOST_STEPS = 50_000
MOST_REFERENCES = 20
LONGEST_NUMBER = 40
_EXACT = 2**53
"""Whole numbers up to here are exact as floats too."""
_NOTHING = object()


def as_wanted(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` as far as they can be read as `schema` wants them. Raises TooManySteps, RecursionError."""
    return cast(dict[str, Any], _Reading(schema).of(arguments, schema))


def text_as_wanted(raw_input: str, schema: Mapping[str, Any]) -> str:
    """The same of the JSON text that a model wrote; what can't be read, or needs no change, stays as it is written."""
    try:
        written = parse_arguments(raw_input)
        wanted = json.dumps(as_wanted(written, schema), ensure_ascii=False)
        wanted.encode()
        changed = wanted != json.dumps(written, ensure_ascii=False) or not raw_input.lstrip().startswith("{")
    except (ArgumentsError, TooManySteps, RecursionError, UnicodeEncodeError):
        return raw_input  # half a surrogate pair could not be recorded but in escapes
    return wanted if changed else raw_input


class _Reading:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root, self._steps = root, 0

    def of(self, value: Any, schema: Any) -> Any:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TooManySteps
        kinds = self._kinds(schema)
        if kinds is not None and not _fits(value, kinds):
            value = _read(value, kinds)
        elif kinds is not None and "number" not in kinds and isinstance(value, float) and value.is_integer():
            value = int(value) if abs(value) <= _EXACT else value
        match value:
            case dict():
                return self._object(cast(dict[str, Any], value), self._part(schema, "object"))
            case list():
                items = self._part(schema, "array").get("items")
                return [self.of(item, items) for item in cast(list[object], value)]
            case _:
                return value

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        known, required = words_of(schema.get("properties")), schema.get("required")
        read = dict[str, Any]()
        for name, item in value.items():
            wanted = known.get(name, schema.get("additionalProperties"))
            if item is None and name in known and not (isinstance(required, list) and name in required):
                kinds = self._kinds(wanted)
                if kinds is not None and "null" not in kinds:
                    continue
            read[name] = self.of(item, wanted)
        return read

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        """What a reference leads to, within the same schema."""
        found = words_of(schema)
        for _ in range(MOST_REFERENCES):
            reference = found.get("$ref")
            if not isinstance(reference, str) or "type" in found:
                return found
            place: Any = self._root
            for step in reference.removeprefix("#").split("/")[1:] if reference.startswith("#") else ("",):
                place = words_of(place).get(step)
            found = words_of(place)
        return {}

    def _kinds(self, schema: Any, depth: int = 0) -> frozenset[str] | None:
        """The types of JSON that `schema` allows at most; None where it does not say."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TooManySteps
        found = self._resolved(schema)
        kind = found.get("type")
        if isinstance(kind, str):
            return frozenset((kind,))
        if isinstance(kind, list):
            return frozenset(str(each) for each in cast(list[object], kind))
        parts = found.get("anyOf", found.get("oneOf"))
        if not isinstance(parts, list) or not parts or depth > MOST_REFERENCES:
            return None
        all_kinds = [self._kinds(part, depth + 1) for part in cast(list[object], parts)]
        if any(each is None for each in all_kinds):
            return None
        return frozenset(name for each in all_kinds for name in each or ())

    def _part(self, schema: Any, kind: str) -> Mapping[str, Any]:
        """The one part of `schema` that speaks of values of this type; nothing where there are several."""
        found = self._resolved(schema)
        parts = found.get("anyOf", found.get("oneOf"))
        if not isinstance(parts, list):
            return found
        fitting = [part for part in cast(list[object], parts) if kind in (self._kinds(part) or (kind,))]
        return self._resolved(fitting[0]) if len(fitting) == 1 else {}


def _fits(value: Any, kinds: frozenset[str]) -> bool:
    kind = _kind(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case int():
            return "integer"
        case _:
            return "integer" if isinstance(value, float) and value.is_integer() else "number"


def _read(value: Any, kinds: frozenset[str]) -> Any:
    """`value`, which is of none of `kinds`, as one of them; itself where that would take a guess."""
    if not isinstance(value, str):
        return value
    read = _of_text(value)
    if read is _NOTHING or isinstance(read, str) or not _fits(read, kinds):
        return value
    return int(read) if isinstance(read, float) and "number" not in kinds else read


def _of_text(text: str) -> Any:
    """The value that this JSON text stands for. `True` and `False`, as Python spells them, are clear as well."""
    words = {"True": True, "False": False, "None": None}
    if text.strip() in words:
        return words[text.strip()]
    try:
        # Within an object no key may be repeated, as in the arguments themselves.
        read = parse_arguments(f'{{"value": {text}}}')
    except (ArgumentsError, RecursionError):
        return _NOTHING
    if set(read) != {"value"}:
        return _NOTHING  # text that closes the object and goes on
    found = read["value"]
    if isinstance(found, float) and not _is_exact(found, text.strip()):
        return _NOTHING
    return found


def _is_exact(number: float, text: str) -> bool:
    """Whether no digit is lost between the text and the number."""
    try:
        return abs(number) <= _EXACT and len(text) <= LONGEST_NUMBER and Decimal(text) == Decimal(repr(number))
    except ArithmeticError:
        return False
