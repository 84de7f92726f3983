"""A schema that somebody asks an answer in: whether it can be one at all, from the schema alone.

It is decided where a request is received, and again at each replay: so nothing here compiles a pattern or applies a
schema. Workers and clients, who have a validator, look at the rest.

A schema for what comes from outside, results and edited arguments: the part of JSON Schema that can be checked while
a session decides.

Whether a result is refused is decided inside the workflow, and again at each replay. So the words are few, their
meaning never changes, and none of them takes longer than reading the value (no patterns, no formats). References may
double at each level, and the schema may be a stranger's: each one is followed once, and a value is looked at in so many
steps and no more.

Bounds how much JSON from outside may hold and how deep it may nest. An operation is asked by its bytes, before it is
parsed: parsing malformed input can take minutes too.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from longhaul.agent.plain.errors import cut, short_form
from longhaul.agent.plain.values import canonical_json

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
        return f"$: {short_form(schema)} is no JSON schema; send a JSON object"
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
        return f"$.type: {short_form(given['type'])} can't be answered; ask for an object with a field for it"
    return next((why for why in _wrong_schema(given, given, "$", 0) if why), "") or _circle(given)


def _wrong_schema(schema: object, root: Schema, at: str, level: int) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{at}: {short_form(schema)} is no JSON schema; write an object"
        return
    if level > MOST_LEVELS:
        yield f"{at[:200]}: it nests deeper than {MOST_LEVELS} levels; ask for a flatter object, or use $defs"
        return
    given = cast(Schema, schema)
    yield from _wrong_keywords(given, root, at)
    for place, part in _schema_places(given, at):
        yield from _wrong_schema(part, root, place, level + 1)


def _wrong_keywords(given: Schema, root: Schema, at: str) -> Iterator[str]:
    for word, instead in _NOT_TAKEN.items():
        if word in given:
            yield f"{at}.{word}: this word can't be used here; {instead}"
    if "$id" in given and given is not root:
        yield f"{at}.$id: this word can't be used within a schema; refer to #/$defs/NAME"
    if "$ref" in given and _referred_place(given["$ref"], root) is None:
        yield f"{at}.$ref: {short_form(given['$ref'])} is not in this schema; write #/$defs/NAME, and NAME under $defs"
    for words, fits, what in _FORMS:
        for word in words:
            if word in given and not fits(given[word]):
                yield f"{at}.{word}: {short_form(given[word])} is {what}"


def _schema_places(given: Schema, at: str) -> Iterator[tuple[str, object]]:
    for word in _ONE:
        if word in given:
            yield f"{at}.{word}", given[word]
    for word in _LIST:
        for number, part in enumerate(given[word] if isinstance(given.get(word), list) else ()):
            yield f"{at}.{word}[{number}]", part
    for word in _NAMED:
        for name, part in given[word].items() if isinstance(given.get(word), dict) else ():
            yield f"{at}.{word}.{short_form(name).strip(chr(39))}", part


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
    for _, part in _schema_places(here, ""):
        yield from _refers_here(part)


def _referred_place(reference: object, root: Schema) -> object | None:
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
    parts, reference = [*_subschemas(given)], str(given.get("$ref", ""))
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


def _subschemas(schema: Schema) -> Iterator[object]:
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


MAX_VALUES = 10_000
"""Of JSON, lists and objects counted with what is in them."""
MAX_STATE_VALUES = 40_000
"""Of a state that is to stand in the place of another: all that the session has said."""
MAX_DIGITS = 100
"""Of one number: reading a longer one takes the square of its length."""
MAX_DEPTH = 50
"""JSON within JSON. What nests deeper than about 200 could be recorded, but never be read back."""

_TOKEN = re.compile(rb"""[^"\[\]{},0-9eE.+-]*+("[^"]*+"|[\[\]{},]|[0-9eE.+-]++)?""")


class TooMuch(ValueError):
    """An operation that is not read; the sentence says what there is too much of, and how much may be."""


def check_bounds(name: str, text: bytes) -> None:
    """Raises TooMuch. Text that is not JSON may pass: it is not read further than to where it ends to be JSON."""
    most = MAX_STATE_VALUES if name == "replace_state" else MAX_VALUES
    values, atoms, depth = 1, 0, 0
    # Escaped quotes out of the way, a string ends at the next quote.
    for token in _TOKEN.finditer(text.replace(b"\\\\", b"").replace(b'\\"', b"")):
        match (found := token[1] or b"")[:1]:
            case b"[" | b"{":
                values, depth = values + 1, depth + 1
            case b",":
                values += 1
            case b"]" | b"}":
                depth -= 1
            case b'"' | b"":
                atoms += 1
            case _:
                atoms += 1
                if len(found) > MAX_DIGITS:
                    raise TooMuch(f"it has a number of {len(found)} characters, and the most is {MAX_DIGITS}")
        if depth > MAX_DEPTH:
            raise TooMuch(f"it nests deeper than {MAX_DEPTH} levels; send a flatter JSON object")
        if values > most:
            raise TooMuch(f"it holds more than {most:,} JSON values; send it in several operations, or name a file")
        if atoms > 3 * values:
            return  # each stands behind one of the marks above or a colon, and each colon behind a string: no JSON


def too_deep(body: object) -> bool:
    """Level by level, because a recursion here would end where the one that must be prevented does."""
    level: list[object] = [body]
    for _ in range(MAX_DEPTH):
        level = [part for value in level for part in _members(value)]
    return bool(level)


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast(dict[str, object], value).values()
    return cast(list[object], value) if isinstance(value, list) else ()
