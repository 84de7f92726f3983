"""A schema for what comes from outside, results and edited arguments: the part of JSON Schema that can be checked while
a session decides.

Whether a result is refused is decided inside the workflow, and again at each replay. So the words are few, their
meaning never changes, and none of them takes longer than reading the value (no patterns, no formats). References may
double at each level, and the schema may be a stranger's: each one is followed once, and a value is looked at in so many
steps and no more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from longhaul.agent.plain.mistakes import cut

_ANNOTATIONS = {"title", "description", "default", "examples", "$schema", "$defs"}
_WORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
}
_BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "boolean": (bool,),
    "null": (type(None),),
}
_KIND_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_TEXT = "the text "
MOST_PLACES = 10
DEEPEST = 100
MOST_STEPS = 100_000
"""Parts of a schema that are held against parts of one value."""

Schema = dict[str, Any]


class _TooMuch(Exception):
    """A value that takes too long to check."""


@dataclass(slots=True)
class _Look:
    """One value that is held against one schema."""

    root: Schema
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise _TooMuch


def unusable(schema: object, *, other_words: bool = False) -> str:
    """Why a schema can't be used here, naming the word; empty for one that can.

    `other_words`: it may say more than is understood; then that is not checked by `wrong_places`.
    """
    root = cast(Schema, schema) if isinstance(schema, dict) else {}
    return _unusable(schema, root, set(), 0, other_words=other_words)


def _unusable(schema: object, root: Schema, done: set[str], depth: int, *, other_words: bool) -> str:
    """`done`: references that have been followed to their end."""
    if schema is True:
        return ""
    if not isinstance(schema, dict):
        return f"{str(schema)[:60]!r} is not a schema; write a JSON object"
    given = cast(Schema, schema)
    if depth > DEEPEST:
        return "it refers to itself, or nests deeper than 100 levels"
    if not other_words and (unknown := sorted(set(given) - _WORDS - _ANNOTATIONS)):
        return f"it can't say {unknown[0]!r}; there are {', '.join(sorted(_WORDS))}"
    parts, reference = [*_parts(given)], str(given.get("$ref", ""))
    if "$ref" in given and reference not in done:
        if (referred := _referred(given, root)) is None:
            return f"$ref: {given['$ref']!r} is not one of its own $defs"
        parts.append(referred)
    inner = (_unusable(part, root, done, depth + 1, other_words=other_words) for part in parts)
    why = next((why for why in inner if why), "")
    done.add(reference)
    return why


def wrong_places(value: object, schema: Schema, at: str = "") -> list[str]:
    """Where and how a JSON value does not fit, at most MOST_PLACES; each says the field, its value and what to do.
    `at`: where the value stands, as `berths[2].name`."""
    found = _wrong(value, schema, _Look(schema), at)
    try:
        return [place for place, _ in zip(found, range(MOST_PLACES), strict=False)]
    except (_TooMuch, RecursionError):
        return [f"{_field(at)} takes too long to check: give a simpler one"]


def _parts(schema: Schema) -> Iterator[object]:
    yield from schema.get("properties", {}).values()
    yield from schema.get("anyOf", ())
    if "items" in schema:
        yield schema["items"]
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"]


def _referred(schema: Schema, root: Schema) -> Schema | None:
    name = str(schema["$ref"]).removeprefix("#/$defs/")
    definitions = cast(dict[str, Schema], root.get("$defs", {}))
    return definitions.get(name)


def _wrong(value: object, schema: Any, look: _Look, at: str) -> Iterator[str]:
    look.step()
    if schema is True:
        return
    if "$ref" in schema:
        yield from _wrong(value, _referred(schema, look.root), look, at)
    if "anyOf" in schema and all(any(_wrong(value, part, look, at)) for part in schema["anyOf"]):
        wanted = [_kinds_of(part.get("type")) for part in schema["anyOf"] if isinstance(part, dict)]
        yield f"{value_at(value, at)}, which is none of what it may be: give {' or '.join(wanted)}"
    if "type" in schema and not _is_of(value, schema["type"]):
        yield f"{value_at(value, at)}, but has to be {_kinds_of(schema['type'])}"
        return
    if "enum" in schema and value not in schema["enum"]:
        words = (_short(each).removeprefix(_TEXT) for each in schema["enum"])
        yield f"{value_at(value, at)}: give one of {', '.join(words)}"
    if "const" in schema and value != schema["const"]:
        yield f"{value_at(value, at)}: give {_short(schema['const']).removeprefix(_TEXT)}"
    yield from _out_of_bounds(value, schema, at)
    if isinstance(value, dict):
        yield from _wrong_object(cast(dict[str, object], value), schema, look, at)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(cast(list[object], value)):
            yield from _wrong(item, schema["items"], look, f"{at}[{number}]")


def _wrong_object(value: dict[str, object], schema: Schema, look: _Look, at: str) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            kind = known[name].get("type") if isinstance(known.get(name), dict) else None
            yield f"{_field(_below(at, name))} is missing: give {_kinds_of(kind)}"
    for name, item in value.items():
        place = _below(at, cut(name))
        if name in known:
            yield from _wrong(item, known[name], look, place)
        elif others is False:
            names = ", ".join(map(cut, known)) or "none"
            yield f"{_field(place)} is not known here: leave it out; known are {names}"
        else:
            yield from _wrong(item, others, look, place)


def _out_of_bounds(value: object, schema: Schema, at: str) -> Iterator[str]:
    for word, told in _BOUNDS.items():
        sized = isinstance(value, str) if word.endswith("Length") else isinstance(value, list)
        if word in schema and sized:
            length, limit = len(cast(str, value)), schema[word]
            if length < limit if word.startswith("min") else length > limit:
                yield f"{_field(at)} has {length}: give {told.format(limit)}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and not value >= schema["minimum"]:
            yield f"{value_at(value, at)}: give {schema['minimum']} or more"
        if "maximum" in schema and not value <= schema["maximum"]:
            yield f"{value_at(value, at)}: give {schema['maximum']} or less"


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _field(at: str) -> str:
    return f"'{at}'" if at else "the whole value"


def value_at(value: object, at: str) -> str:
    """`'nights' is 40`, `'berth' is the text "north"`, for a value that stands there."""
    return f"{_field(at)} is {_short(value)}"


def _kinds_of(kind: object) -> str:
    kinds = cast(list[object], kind) if isinstance(kind, list) else [kind]
    return " or ".join(_KIND_WORDS.get(str(each), "a value") for each in kinds)


def _short(value: object) -> str:
    match value:
        case str():
            return f'{_TEXT}"{cut(value)}"'
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return cut(str(value))


def _is_of(value: object, kind: str | list[str]) -> bool:
    if isinstance(kind, list):
        return any(_is_of(value, each) for each in kind)
    if kind in ("number", "integer"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (kind == "number" or not isinstance(value, float) or value.is_integer())
    return isinstance(value, _KINDS.get(kind, ()))
