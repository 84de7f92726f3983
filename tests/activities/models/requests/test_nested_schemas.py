"""Parts of schemas are sent in a form that OpenAI, Gemini and Kimi take, and what a tool takes stays the same."""

from typing import Any

import pytest

from longhaul.activities.models.requests.tool_definitions import sent_schema, with_plain_parts

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


FOLDER = of(name=TEXT, inner={"type": "array", "items": {"$ref": "#/properties/folder"}})
LED = of(name=TEXT, inner={"type": "array", "items": {"$ref": "#/$defs/properties_folder"}})


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (of(folder=FOLDER), {**of(folder=LED), "$defs": {"properties_folder": LED}}),
        (
            {**of(a={"$ref": "#/properties/b"}, b=TEXT), "$defs": {"properties_b": {}}},
            {
                **of(a={"$ref": "#/$defs/properties_b_2"}, b=TEXT),
                "$defs": {"properties_b": {}, "properties_b_2": TEXT},
            },
        ),
        (of(a={"$ref": "#"}), {**of(a={"$ref": "#/$defs/whole"}), "$defs": {"whole": of(a={"$ref": "#/$defs/whole"})}}),
        (of(a={"$ref": "#/$defs/Screen", "title": "A"}), of(a={"title": "A"})),
        (of(a={"$ref": "#/properties/b/anyOf/7"}, b={"anyOf": [TEXT]}), of(a={}, b={"anyOf": [TEXT]})),
        (of(a={"$ref": "#/properties/b/anyOf/0"}, b={"anyOf": [TEXT]}),
         {**of(a={"$ref": "#/$defs/properties_b_anyOf_0"}, b={"anyOf": [TEXT]}),
          "$defs": {"properties_b_anyOf_0": TEXT}}),
        ({**of(a={"$ref": "#/$defs/B"}), "$defs": {"B": TEXT}},) * 2,
        ({**of(a={"$ref": "#/definitions/B"}), "definitions": {"B": TEXT}},) * 2,
        (of(a={"enum": [{"$ref": "#/nowhere"}]}),) * 2,
        (of(**{"$ref": TEXT}),) * 2,
    ],
)  # fmt: skip
def test_references_lead_to_definitions_and_those_that_lead_nowhere_are_left_out(schema: Any, sent: Any) -> None:
    assert sent_schema(schema) == sent
