"""Parts of schemas are sent in a form that OpenAI, Gemini and Kimi take, and what a tool takes stays the same."""

from typing import Any

import pytest

from longhaul.activities.models.requests.tool_definitions import with_plain_parts

TEXT: dict[str, Any] = {"type": "string"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (TEXT, TEXT),
        ({"type": "array"}, {"type": "array", "items": TEXT}),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": TEXT}),
        ({"type": "array", "items": {}}, {"type": "array", "items": {}}),
        ({"type": "array", "items": {"type": "array"}}, {"type": "array", "items": {"type": "array", "items": TEXT}}),
        (of(items={"type": "array"}), of(items={"type": "array", "items": TEXT})),
        (of(type=TEXT, anyOf=TEXT), of(type=TEXT, anyOf=TEXT)),
        ({"type": "string", "anyOf": [{"minLength": 2}, TEXT]}, {"anyOf": [{"type": "string", "minLength": 2}, TEXT]}),
        ({"$ref": "#/definitions/A"}, {"$ref": "#/$defs/A"}),
        ({"$ref": "https://x.example"}, {"$ref": "https://x.example"}),
        (True, True),
        ({"anyOf": 7, "type": "string", "items": 3, "properties": []},) * 2,
    ],
)
def test_a_part_is_sent_plainly(part: Any, sent: Any) -> None:
    assert with_plain_parts(of(a=part)) == of(a=sent)


def test_definitions_stand_where_references_lead() -> None:
    schema = {**of(a={"$ref": "#/definitions/A"}), "definitions": {"A": {"type": "array"}}, "$defs": {"B": TEXT}}

    told = with_plain_parts(schema)

    assert told == {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "array", "items": TEXT}, "B": TEXT}}


def test_a_schema_without_an_end_is_left_as_it_is_below_a_depth() -> None:
    deep: dict[str, Any] = {"type": "array"}
    for _ in range(900):
        deep = {"type": "array", "items": deep}

    assert with_plain_parts(of(a=deep))["properties"]["a"]["type"] == "array"
