"""What can be asked for: schemas that are taken, and the sentence about each other one."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from longhaul.agent.plain.json_schemas import KINDS, why_unusable
from tests.endless_schemas import chain, doubling


class Tide(BaseModel):
    height: float = Field(gt=0, description="In metres.")
    kind: Literal["spring", "neap"]
    harbours: list[str] = []


class Branch(BaseModel):
    name: str = Field(pattern=r"^[a-z]+$", max_length=20)
    branches: "list[Branch]" = []
    tide: Tide | None = None
    place: tuple[int, str] = (0, "")


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"in": schema}}
    return schema


def of(part: Any) -> dict[str, Any]:
    """With one property of this schema."""
    return {"type": "object", "properties": {"x": part}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        Tide.model_json_schema(),
        Branch.model_json_schema(),
        {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]},
        of({"type": ["string", "null"]}),
        of(True),
        of({"$ref": "#"}),
        {"$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}}}, "$ref": "#/$defs/A"},
        nested(29),
        chain(30),
        doubling("properties"),
        *(of({"type": kind}) for kind in KINDS),
    ],
)
def test_it_can_be_asked_for(schema: dict[str, Any]) -> None:
    assert why_unusable(schema) == ""


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (None, "$: None is no JSON schema; send a JSON object"),
        ([], "$: [] is no JSON schema"),
        (True, "$: True is no JSON schema"),
        ({"type": "array"}, "$.type: 'array' can't be answered; ask for an object with a field for it"),
        ({"type": ["object", "null"]}, "$.type: ['object', 'null'] can't be answered"),
        ({"description": "x" * 32_000}, "bytes as JSON, and the most is 32,000"),
        ({"const": float("nan")}, "$: it is no plain JSON"),
        (nested(32), "it nests deeper than 30 levels"),
        (of("string"), "$.properties.x: 'string' is no JSON schema; write an object"),
        (of({"type": "text"}), "$.properties.x.type: 'text' is no type; write one of object, array"),
        (of({"type": []}), "$.properties.x.type: [] is no type"),
        (of({"enum": "red"}), "$.properties.x.enum: 'red' is no list of values"),
        (of({"pattern": 3}), "$.properties.x.pattern: 3 is no text"),
        (of({"minLength": -1}), "$.properties.x.minLength: -1 is no count; write 0 or more"),
        (of({"maximum": "9"}), "$.properties.x.maximum: '9' is no number"),
        (of({"multipleOf": 0}), "$.properties.x.multipleOf: 0 is no number above 0"),
        (of({"anyOf": []}), "$.properties.x.anyOf: [] is no list of schemas"),
        (of({"items": [{"type": "string"}]}), "$.properties.x.items: [{'type': 'string'}] is no JSON schema"),
        (of({"properties": ["a"]}), "$.properties.x.properties: ['a'] is no object of schemas"),
        ({"required": "a"}, "$.required: 'a' is no list of names"),
        (of({"patternProperties": {}}), "$.properties.x.patternProperties: this word can't be used here; name"),
        (of({"$dynamicRef": "#a"}), "$.properties.x.$dynamicRef: this word can't be used here; use $ref"),
        (of({"$id": "b.json"}), "$.properties.x.$id: this word can't be used within a schema"),
        (of({"$ref": "#/$defs/Gone"}), "$.properties.x.$ref: '#/$defs/Gone' is not in this schema; write"),
        (of({"$ref": "http://far.away/b.json"}), "'http://far.away/b.json' is not in this schema"),
        ({"$ref": "#"}, "#: it refers to itself about the same value"),
        ({"$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}}, "#/$defs/A: it refers to itself"),
        *(
            (chain(length, backwards=backwards), "its references lead on more than 30 times about the same value")
            for length in (31, 900)
            for backwards in (False, True)
        ),
        (
            {"$defs": {"A": {"not": {"$ref": "#/$defs/B"}}, "B": {"anyOf": [{"$ref": "#/$defs/A"}]}}},
            "it refers to itself about the same value; put the reference into a property",
        ),
    ],
)
def test_it_is_refused_with_its_place_and_what_to_do(schema: Any, why: str) -> None:
    assert why in why_unusable(schema)
    assert len(why_unusable(schema)) < 500
