"""A schema for what comes from outside, results and edited arguments: the part of JSON Schema that can be checked while
a session decides.

Whether a result is refused is decided inside the workflow, and again at each replay. So the words are few, their
meaning never changes, and none of them takes longer than reading the value (no patterns, no formats).
"""

from collections.abc import Iterator
from typing import Any, cast

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
MOST_PLACES = 10
DEEPEST = 100

Schema = dict[str, Any]


def unusable(schema: object, root: Schema | None = None, depth: int = 0, *, other_words: bool = False) -> str:
    """Why a schema can't be used here, naming the word; empty for one that can.

    `other_words`: it may say more than is understood; then that is not checked by `wrong_places`.
    """
    if schema is True:
        return ""
    if not isinstance(schema, dict):
        return f"{str(schema)[:60]!r} is not a schema; write a JSON object"
    given = cast(Schema, schema)
    root = given if root is None else root
    if depth > DEEPEST:
        return "it refers to itself, or nests deeper than 100 levels"
    if not other_words and (unknown := sorted(set(given) - _WORDS - _ANNOTATIONS)):
        return f"it can't say {unknown[0]!r}; there are {', '.join(sorted(_WORDS))}"
    if "$ref" in given and _referred(given, root) is None:
        return f"$ref: {given['$ref']!r} is not one of its own $defs"
    inner = (unusable(part, root, depth + 1, other_words=other_words) for part in _parts(given, root))
    return next((why for why in inner if why), "")


def wrong_places(value: object, schema: Schema) -> list[str]:
    """Where and how a JSON value does not fit, at most MOST_PLACES; each as `.field[3]: what`."""
    found = _wrong(value, schema, schema, "")
    return [place for place, _ in zip(found, range(MOST_PLACES), strict=False)]


def _parts(schema: Schema, root: Schema) -> Iterator[object]:
    yield from schema.get("properties", {}).values()
    yield from schema.get("anyOf", ())
    if "items" in schema:
        yield schema["items"]
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"]
    if "$ref" in schema:
        yield _referred(schema, root)


def _referred(schema: Schema, root: Schema) -> Schema | None:
    name = str(schema["$ref"]).removeprefix("#/$defs/")
    definitions = cast(dict[str, Schema], root.get("$defs", {}))
    return definitions.get(name)


def _wrong(value: object, schema: Any, root: Schema, at: str) -> Iterator[str]:
    if schema is True:
        return
    place = at or "the result"
    if "$ref" in schema:
        yield from _wrong(value, _referred(schema, root), root, at)
    if "anyOf" in schema and all(any(_wrong(value, part, root, at)) for part in schema["anyOf"]):
        yield f"{place}: {_short(value)} fits none of {len(schema['anyOf'])} alternatives"
    if "type" in schema and not _is_of(value, schema["type"]):
        yield f"{place}: {_short(value)} is not of type {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {_short(value)} is not one of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{place}: {_short(value)} is not {schema['const']!r}"
    yield from _out_of_bounds(value, schema, place)
    if isinstance(value, dict):
        yield from _wrong_object(cast(dict[str, object], value), schema, root, at)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(cast(list[object], value)):
            yield from _wrong(item, schema["items"], root, f"{at}[{number}]")


def _wrong_object(value: dict[str, object], schema: Schema, root: Schema, at: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}.{name}: is missing"
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            yield from _wrong(item, known[name], root, f"{at}.{name}")
        elif others is False:
            yield f"{at}.{_short(name)}: is not known here"
        else:
            yield from _wrong(item, others, root, f"{at}.{_short(name)}")


def _out_of_bounds(value: object, schema: Schema, place: str) -> Iterator[str]:
    for word, told in _BOUNDS.items():
        sized = isinstance(value, str) if word.endswith("Length") else isinstance(value, list)
        if word in schema and sized:
            length, limit = len(cast(str, value)), schema[word]
            if length < limit if word.startswith("min") else length > limit:
                yield f"{place}: has {length}, and {told.format(limit)} are expected"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and not value >= schema["minimum"]:
            yield f"{place}: {value} is below {schema['minimum']}"
        if "maximum" in schema and not value <= schema["maximum"]:
            yield f"{place}: {value} is above {schema['maximum']}"


def _is_of(value: object, kind: str | list[str]) -> bool:
    if isinstance(kind, list):
        return any(_is_of(value, each) for each in kind)
    if kind in ("number", "integer"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (kind == "number" or not isinstance(value, float) or value.is_integer())
    return isinstance(value, _KINDS.get(kind, ()))


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
