"""Tables of the fields of a model: name, what it may be, what it is when nothing is said, what it means."""

import inspect
import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel

from longhaul.starter.serve.openapi import describe, models_under
from tests.codebase.headings import anchor_of

Json = dict[str, Any]
Way = Literal["validation", "serialization"]

HEAD = "| name | may be | default | means |\n|---|---|---|---|\n"
KINDS = {
    None: "any JSON",
    "array": "list",
    "boolean": "`true`, `false`",
    "integer": "whole number",
    "object": "table",
    "string": "text",
}
BOUNDS = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "maxProperties": "at most {}",
}


def schemas_of(*models: type[BaseModel]) -> dict[str, Json]:
    """The schema of each of them, and of all models that they are made of, by name, every field described."""
    found: dict[str, Json] = {}
    known = models_under(list(models))
    for model in models:
        schema = model.model_json_schema(by_alias=True)
        found |= {model.__name__: schema, **schema.pop("$defs", {})}
    for name, schema in found.items():
        if name in known:
            describe(schema, known[name])
            _take_aliases(schema, known[name])
    return found


def _take_aliases(schema: Json, model: type[BaseModel]) -> None:
    """A field is described under the name that it has in the code; people write its alias."""
    bare: Json = {"properties": {name: {} for name in model.model_fields}}
    describe(bare, model)
    for name, field in model.model_fields.items():
        if field.alias in schema.get("properties", {}):
            schema["properties"][field.alias] |= bare["properties"][name]


def rows(schema: Json, *, leave_out: frozenset[str] = frozenset()) -> str:
    """A table of the properties; empty where there are none."""
    needed = schema.get("required", ())
    lines = [
        f"| `{name}` | {words(each)} | {_default(each, needed=name in needed)} | {meaning(each)} |\n"
        for name, each in schema.get("properties", {}).items()
        if name not in leave_out
    ]
    return HEAD + "".join(lines) if lines else ""


def model(name: str, schema: Json, level: str, before: str = "") -> str:
    """The section of a model: heading, what it says of itself, and its fields."""
    said = cell(str(schema.get("description", "")))
    return f"{level} {name}\n\n{before}{f'{said}{chr(10) * 2}' if said else ''}{table(schema)}\n"


def table(schema: Json) -> str:
    """Its fields, or for what has none, such as a list of values, what it may be."""
    return rows(schema) or f"{words(schema)}\n"


def words(schema: Json) -> str:
    """What a value may be, in a cell of a table."""
    if "$ref" in schema:
        return f"[{_referred(schema)}](#{anchor_of(_referred(schema))})"
    if several := schema.get("anyOf") or schema.get("oneOf"):
        kinds = dict.fromkeys(words(each) for each in several if each.get("type") != "null")
        return " or ".join(kinds)
    if "allOf" in schema:
        return " and ".join(words(each) for each in schema["allOf"])
    return ", ".join(part for part in (_kind(schema), *_bounds(schema)) if part)


def meaning(schema: Json) -> str:
    return cell(str(schema.get("description", "")))


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def docstring(thing: object) -> str:
    """What it says of itself in the code; empty for what pydantic or Python says."""
    said = inspect.getdoc(thing) or ""
    inherited = isinstance(thing, type) and not thing.__dict__.get("__doc__")
    return "" if inherited else said


def referred_by(schema: Json) -> Iterator[str]:
    """Names of the models that stand in it."""
    if "$ref" in schema:
        yield _referred(schema)
    for each in schema.values():
        for inner in each if isinstance(each, list) else [each]:
            if isinstance(inner, dict):
                yield from referred_by(inner)


def _referred(schema: Json) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _kind(schema: Json) -> str:
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]) if each != "")
    kind = schema.get("type")
    if inner := {"array": schema.get("items"), "object": schema.get("additionalProperties")}.get(kind or ""):
        return f"{KINDS[kind]} of {words(inner)}" if isinstance(inner, dict) else KINDS[kind]
    return KINDS.get(kind, str(kind))


def _bounds(schema: Json) -> Iterator[str]:
    for key, said in BOUNDS.items():
        if key in schema:
            yield said.format(f"{schema[key]:,}")


def _default(schema: Json, *, needed: bool) -> str:
    if needed:
        return "needed"
    value = schema.get("default")
    if value in (None, "", [], {}):
        return ""
    written = json.dumps(value, ensure_ascii=False)
    return f"`{cell(written)}`" if len(written) <= 120 else "see the meaning"
