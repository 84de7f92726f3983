"""Parts of tools' schemas as OpenAI, Gemini and Kimi take them; Anthropic takes them as they are.

An array says what is in it (OpenAI, Gemini), a type stands in the choices and not beside them, and references lead into
`$defs` (Kimi). One tool of a server that does otherwise makes all requests of its session fail. Sources stand with the
rules in tests/activities/models/published/published_chat.py.
"""

from collections.abc import Mapping
from typing import Any

_BY_NAME = ("properties", "$defs", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_DEEPEST = 40
_OLD, _NEW = "#/definitions/", "#/$defs/"


def with_plain_parts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object, each of its parts so. What it allows of arguments stays: of an array that says nothing
    of its items, texts are asked for."""
    older = schema.get("definitions")
    if isinstance(older, Mapping):
        rest = {word: value for word, value in schema.items() if word != "definitions"}
        schema = {**rest, "$defs": {**older, **_table(schema.get("$defs"))}}
    plain: dict[str, Any] = _plain(schema, _DEEPEST)
    return plain


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _plain(schema: Any, left: int) -> Any:
    if not isinstance(schema, Mapping) or left == 0:
        return schema
    plain = {word: _inner(word, value, left - 1) for word, value in schema.items()}
    if "array" in _kinds(plain) and "items" not in plain:
        plain["items"] = {"type": "string"}
    return _typed_by_choices(plain)


def _inner(word: str, value: Any, left: int) -> Any:
    if word in _BY_NAME and isinstance(value, Mapping):
        return {name: _plain(part, left) for name, part in value.items()}
    if word in _LISTS and isinstance(value, list):
        return [_plain(part, left) for part in value]
    if word == "$ref" and isinstance(value, str) and value.startswith(_OLD):
        return _NEW + value.removeprefix(_OLD)
    return _plain(value, left) if word in _SINGLE else value


def _kinds(schema: Mapping[str, Any]) -> list[Any]:
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def _typed_by_choices(schema: dict[str, Any]) -> dict[str, Any]:
    ways = schema.get("anyOf")
    if not isinstance(ways, list) or "type" not in schema or not all(isinstance(way, Mapping) for way in ways):
        return schema
    kind = schema["type"]
    rest = {word: value for word, value in schema.items() if word != "type"}
    return {**rest, "anyOf": [way if "type" in way or "$ref" in way else {"type": kind, **way} for way in ways]}
