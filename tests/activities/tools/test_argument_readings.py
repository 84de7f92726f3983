"""Arguments of another type than the schema wants: read where there is one lossless reading, otherwise told of."""

import json
from typing import Any

import pytest

from longhaul.activities.tools.argument_readings import as_wanted, text_as_wanted
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.function import tool
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.agent.plain.json_schemas import KINDS

OPTIONAL_INT = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
LIST = {"type": "array", "items": {"type": "integer"}}
NESTED = {"type": "object", "properties": {"n": {"type": "integer"}, "word": {"type": "string"}}}

READ: list[tuple[dict[str, Any], Any, Any]] = [
    ({"type": "integer"}, 3.0, 3),
    ({"type": "integer"}, -0.0, 0),
    ({"type": "integer"}, "3", 3),
    ({"type": "integer"}, " 3.0 ", 3),
    ({"type": "number"}, "0.25", 0.25),
    ({"type": "boolean"}, "true", True),
    ({"type": "boolean"}, "False", False),
    ({"type": "null"}, "null", None),
    (LIST, "[1, 2.0]", [1, 2]),
    (LIST, ["1", 2.0], [1, 2]),
    (NESTED, '{"n": "4"}', {"n": 4}),
    (NESTED, {"n": 4.0, "word": "5"}, {"n": 4, "word": "5"}),
    ({"type": "array", "items": NESTED}, '[{"n": 4.0, "word": "5"}]', [{"n": 4, "word": "5"}]),
    (OPTIONAL_INT, "7", 7),
    (OPTIONAL_INT, 7.0, 7),
    ({"type": ["integer", "null"]}, "null", None),
    ({"$ref": "#/$defs/count"}, "3", 3),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "1"}, {"a": 1}),
]  # fmt: skip
"""A schema, what is written, what is read."""

AS_WRITTEN: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string"}, "3"),
    ({"type": "string"}, "null"),
    ({"type": "string"}, '{"n": 1}'),
    ({"type": "string"}, ""),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "3"),
    ({"type": ["string", "boolean"]}, "true"),
    ({"type": ["string", "null"]}, None),
    ({"enum": ["1", 2]}, "1"),
    ({}, "3"),
    ({"type": "number"}, 3.0),
    ({"type": "integer"}, 3),
    ({"type": "array", "items": {"type": "string"}}, ["1", "[2]"]),
    (OPTIONAL_INT, None),
    ({"type": "boolean"}, True),
]
"""What the schema allows."""

REFUSED: list[tuple[dict[str, Any], Any, str]] = [
    ({"type": "integer"}, 3.5, "'x' is 3.5, but has to be a whole number"),
    ({"type": "integer"}, "three", "'x' is the text \"three\", but has to be a whole number"),
    ({"type": "integer"}, "", "'x' is the text \"\", but has to be a whole number"),
    ({"type": "integer"}, "3, \"y\": 4", "'x' is the text \"3, \"y\": 4\", but has to be a whole number"),
    ({"type": "integer"}, True, "'x' is true, but has to be a whole number"),
    ({"type": "number"}, "0.1234567890123456789", "'x' is the text \"0.1234567890123456789\", but has to be a number"),
    ({"type": "number"}, "1e-9999999999999", "'x' is the text \"1e-9999999999999\", but has to be a number"),
    ({"type": "number"}, "NaN", "'x' is the text \"NaN\", but has to be a number"),
    ({"type": "boolean"}, 1, "'x' is 1, but has to be true or false"),
    ({"type": "boolean"}, "yes", "'x' is the text \"yes\", but has to be true or false"),
    ({"type": "string"}, 5, "'x' is 5, but has to be text"),
    ({"type": "string"}, 1.10, "'x' is 1.1, but has to be text"),
    ({"type": "string"}, True, "'x' is true, but has to be text"),
    ({"type": "string"}, ["a"], "'x' is a list, but has to be text"),
    ({"type": "string"}, None, "'x' is null, but has to be text"),
    ({"type": "array"}, "a.py", "'x' is the text \"a.py\", but has to be a list"),
    ({"type": "object"}, '{"a": 1, "a": 2}', "'x' is the text \"{\"a\": 1, \"a\": 2}\", but has to be an object"),
    ({"type": "array"}, "[" * 50_000, "'x' is the text"),
    ({"type": "null"}, 0, "'x' is 0, but has to be null"),
]  # fmt: skip


def wanting(schema: dict[str, Any], *, required: bool = True) -> Toolbox:
    made = tool(name="measure")(lambda: "")
    made.input_schema = {
        "type": "object", "properties": {"x": schema}, "required": ["x"] if required else [],
        "additionalProperties": False, "$defs": {"count": {"type": "integer"}},
    }  # fmt: skip
    return Toolbox([made])


def exactly(value: object) -> str:
    return json.dumps(value)


@pytest.mark.parametrize(("schema", "written", "read"), READ)
def test_another_type_is_read_where_one_lossless_reading_exists(schema: Any, written: Any, read: Any) -> None:
    sandbox = wanting(schema)

    once = sandbox.validate("measure", json.dumps({"x": written}))

    assert exactly(once) == exactly({"x": read})
    assert exactly(sandbox.validate("measure", json.dumps(once))) == exactly(once)


@pytest.mark.parametrize(("schema", "written"), AS_WRITTEN)
def test_what_the_schema_allows_is_never_changed(schema: Any, written: Any) -> None:
    raw = json.dumps({"x": written}, indent=1)
    whole = {"type": "object", "properties": {"x": schema}}

    assert exactly(wanting(schema).validate("measure", raw)) == exactly({"x": written})
    assert text_as_wanted(raw, whole) == raw


@pytest.mark.parametrize(("schema", "written", "sentence"), REFUSED)
def test_the_rest_is_told_in_a_sentence(schema: Any, written: Any, sentence: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        wanting(schema).validate("measure", json.dumps({"x": written}))

    assert str(caught.value).startswith(sentence)


def test_every_type_of_json_stands_in_each_table() -> None:
    kinds = [
        {schema["type"] for schema, *_ in table if isinstance(schema.get("type"), str)} for table in (READ, REFUSED)
    ]

    assert kinds == [set(KINDS) - {"string"}, set(KINDS)]


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"null"}))
def test_null_in_a_field_that_may_be_left_out_is_none(kind: str) -> None:
    raw = '{"x": null}'

    assert wanting({"type": kind}, required=False).validate("measure", raw) == {}
    with pytest.raises(ArgumentsError, match="'x' is null, but has to be"):
        wanting({"type": kind}).validate("measure", raw)


def test_arguments_within_a_json_text_are_read_out_of_it() -> None:
    sandbox, raw = Toolbox(default_tools()), json.dumps('{"file_path": "log.txt", "offset": 2.0, "limit": "3"}')

    assert exactly(sandbox.validate("Read", raw)) == exactly({"file_path": "log.txt", "offset": 2, "limit": 3})
    with pytest.raises(ArgumentsError, match='name "a" twice'):
        sandbox.validate("Read", json.dumps('{"a": 1, "a": 2}'))
    with pytest.raises(ArgumentsError, match="the arguments are a string; a JSON object"):
        sandbox.validate("Read", json.dumps("log.txt"))


def test_half_a_surrogate_pair_is_recorded_as_it_was_written() -> None:
    raw = '{"x": "3", "y": "\\ud800"}'

    assert text_as_wanted(raw, {"properties": {"x": {"type": "integer"}}}) == raw


def test_a_schema_that_refers_to_itself_ends() -> None:
    endless: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    wide: dict[str, Any] = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 9}}, "$ref": "#/$defs/a"}

    assert as_wanted({"x": "3"}, endless) == {"x": "3"}
    assert text_as_wanted('{"x": "3"}', {**wide, "properties": {"x": wide}}) == '{"x": "3"}'
