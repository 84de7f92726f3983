"""A schema that somebody asks an answer in: whether it can be one at all, from the schema alone.

It is decided where a request is received, and again at each replay: so nothing here compiles a pattern or applies a
schema. Workers and clients, who have a validator, look at the rest.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from longhaul.agent.plain.canonical import canonical_json
from longhaul.agent.plain.mistakes import shown

MOST_BYTES = 32_000
"""As JSON: it is recorded with its request, and sent with each model call of the reply."""
MOST_LEVELS = 30
KINDS = ("object", "array", "string", "number", "integer", "boolean", "null")

_ONE = ("additionalProperties", "items", "contains", "propertyNames", "not", "if", "then", "else")
_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "dependentSchemas")
_HERE = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas", "$ref")
"""Words whose schemas are about the same value; the others are about parts of it."""
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_NOT_TAKEN = {
    "patternProperties": "name the properties, or use additionalProperties",
    "unevaluatedProperties": "use additionalProperties",
    "unevaluatedItems": "use items",
    "$dynamicRef": "use $ref",
    "$recursiveRef": "use $ref",
    "$anchor": "refer to #/$defs/NAME",
    "$dynamicAnchor": "refer to #/$defs/NAME",
}

Schema = dict[str, Any]


def why_unusable(schema: object) -> str:
    """`place: what (and what to do)`; empty for one that can be asked for. Places are as `$.properties.color`."""
    if not isinstance(schema, dict):
        return f"$: {shown(schema)} is no JSON schema; send a JSON object"
    given = cast(Schema, schema)
    try:
        size = len(canonical_json(given))
    except (TypeError, ValueError, RecursionError):
        return "$: it is no plain JSON; send a JSON object of texts, numbers, lists and objects"
    if size > MOST_BYTES:
        return (
            f"$: it has {size:,} bytes as JSON, and the most is {MOST_BYTES:,}; ask for less, or leave descriptions out"
        )
    if given.get("type", "object") != "object":
        return f"$.type: {shown(given['type'])} can't be answered; ask for an object with a field for it"
    return next((why for why in _wrong(given, given, "$", 0) if why), "") or _circle(given)


def _wrong(schema: object, root: Schema, at: str, level: int) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{at}: {shown(schema)} is no JSON schema; write an object"
        return
    if level > MOST_LEVELS:
        yield f"{at[:200]}: it nests deeper than {MOST_LEVELS} levels; ask for a flatter object, or use $defs"
        return
    given = cast(Schema, schema)
    yield from _wrong_words(given, root, at)
    for place, part in _parts(given, at):
        yield from _wrong(part, root, place, level + 1)


def _wrong_words(given: Schema, root: Schema, at: str) -> Iterator[str]:
    for word, instead in _NOT_TAKEN.items():
        if word in given:
            yield f"{at}.{word}: this word can't be used here; {instead}"
    if "$id" in given and given is not root:
        yield f"{at}.$id: this word can't be used within a schema; refer to #/$defs/NAME"
    if "$ref" in given and _referred(given["$ref"], root) is None:
        yield f"{at}.$ref: {shown(given['$ref'])} is not in this schema; write #/$defs/NAME, and NAME under $defs"
    for words, fits, what in _FORMS:
        for word in words:
            if word in given and not fits(given[word]):
                yield f"{at}.{word}: {shown(given[word])} is {what}"


def _parts(given: Schema, at: str) -> Iterator[tuple[str, object]]:
    for word in _ONE:
        if word in given:
            yield f"{at}.{word}", given[word]
    for word in _LIST:
        for number, part in enumerate(given[word] if isinstance(given.get(word), list) else ()):
            yield f"{at}.{word}[{number}]", part
    for word in _NAMED:
        for name, part in given[word].items() if isinstance(given.get(word), dict) else ():
            yield f"{at}.{word}.{shown(name).strip(chr(39))}", part


def _circle(root: Schema) -> str:
    """A schema that is about a value by way of itself alone has no end. One that comes back for a part of the value
    ends with the value."""
    starts = {"#": root, **{f"#/{word}/{name}": part for word in _DEFS for name, part in root.get(word, {}).items()}}
    lengths = dict[str, int]()
    for name in starts:
        if why := _endless(name, starts, (), lengths):
            return why
    return ""


_DEFS = ("$defs", "definitions")


def _endless(name: str, starts: dict[str, Any], way: tuple[str, ...], lengths: dict[str, int]) -> str:
    """Of the place `name`, to which the references of `way` have led. `lengths`: how far those that end lead."""
    if name in way:
        return f"{way[0]}: it refers to itself about the same value; put the reference into a property"
    if len(way) + lengths.get(name, 0) > MOST_LEVELS:
        return f"{way[0]}: its references lead on more than {MOST_LEVELS} times about the same value; refer to the last"
    if name in lengths:
        return ""
    onwards = [*_refers_here(starts.get(name))]
    for each in onwards:
        if why := _endless(each, starts, (*way, name), lengths):
            return why
    lengths[name] = max((1 + lengths[each] for each in onwards), default=0)
    return ""


def _refers_here(schema: object) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    given = cast(Schema, schema)
    if isinstance(given.get("$ref"), str):
        yield given["$ref"]
    here = {word: given[word] for word in _HERE if word in given and word != "$ref"}
    for _, part in _parts(here, ""):
        yield from _refers_here(part)


def _referred(reference: object, root: Schema) -> object | None:
    if reference == "#":
        return root
    for word in _DEFS:
        beginning = f"#/{word}/"
        if isinstance(reference, str) and reference.startswith(beginning) and isinstance(root.get(word), dict):
            return cast(Schema, root[word]).get(reference.removeprefix(beginning))
    return None


def _is_type(value: object) -> bool:
    names = cast(list[object], value) if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in KINDS for name in names)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast(list[object], value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_number(value) and cast(float, value) >= 0


_FORMS: tuple[tuple[tuple[str, ...], Callable[[object], bool], str], ...] = (
    (("type",), _is_type, f"no type; write one of {', '.join(KINDS)}"),
    (("required",), _is_texts, "no list of names"),
    (("enum",), lambda value: isinstance(value, list) and bool(cast(list[object], value)), "no list of values"),
    (("pattern",), lambda value: isinstance(value, str), "no text"),
    (_COUNTS, _is_count, "no count; write 0 or more"),
    (_NUMBERS, _is_number, "no number"),
    (("multipleOf",), lambda value: _is_count(value) and value != 0, "no number above 0"),
    (_LIST, lambda value: isinstance(value, list) and bool(cast(list[object], value)), "no list of schemas"),
    (_NAMED, lambda value: isinstance(value, dict), "no object of schemas"),
)
"""Words, what has to stand there, and what is wrong otherwise."""
