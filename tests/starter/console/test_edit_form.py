"""Fields made of a schema, and arguments made of fields: what nobody touched stays, and nothing hides."""

import json
from typing import Any

import pytest

from longhaul.starter.console.schema_forms import WHOLE, changes_of, edited, fields_of, form_digest
from longhaul.starter.serve.problems import Problem

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where\u202e"},
        "depth": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "kind": {"$ref": "#/$defs/Kind"},
        "deep": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
    "$defs": {"Kind": {"enum": ["file", "folder"]}, "Loop": {"$ref": "#/$defs/Loop"}},
}
GIVEN = {"path": "a\nb", "depth": 3, "names": ["x"], "more": None}
ARGUMENTS = json.dumps(GIVEN)


def sent(schema: Any = SCHEMA, arguments: str = ARGUMENTS, **changed: str) -> dict[str, Any]:
    fields = fields_of(arguments, schema)
    form = {field.key: changed.get(field.name, field.value) for field in fields}
    return edited(fields, arguments, form)


def test_each_argument_has_a_field_of_its_kind() -> None:
    fields = fields_of(ARGUMENTS, SCHEMA)

    assert [(one.name, one.kind, one.value, one.choices, one.required) for one in fields] == [
        ("path", "text", "a\nb", (), True),
        ("depth", "number", "3", (), False),
        ("kind", "choice", "", ("file", "folder"), False),
        ("deep", "choice", "", ("true", "false"), False),
        ("names", "json", '["x"]', (), False),
        ("more", "json", "null", (), False),
    ]
    assert fields[0].description == "Where⟨U+202E⟩"


def test_what_nobody_touched_stays_as_it_was() -> None:
    assert sent() == GIVEN
    assert list(sent()) == list(GIVEN)


def test_what_was_written_counts_and_what_was_emptied_is_left_out() -> None:
    changed = sent(path="", depth=" 4 ", kind="file", deep="false", names="", more='{"a": 1}')

    assert changed == {"path": "", "depth": 4, "kind": "file", "deep": False, "more": {"a": 1}}


@pytest.mark.parametrize("hidden", ["a\u202eb", "p\u0430th", "a\rb", "\ud800", "a\u200bb"])
def test_text_that_hides_or_deceives_is_shown_by_its_numbers_and_survives(hidden: str) -> None:
    arguments = json.dumps({"path": hidden})
    field = fields_of(arguments, SCHEMA)[0]

    assert (field.kind, field.value) == ("json", json.dumps(hidden))
    assert field.value.isascii()
    assert sent(arguments=arguments, kind="file") == {"path": hidden, "kind": "file"}


@pytest.mark.parametrize(
    ("field", "written", "why"),
    [
        ("depth", "three", "depth: is not JSON"),
        ("depth", "true", "depth: is no number"),
        ("depth", "NaN", "NaN is no number"),
        ("names", "[1", "names: is not JSON"),
        ("names", "[" * 100_000, "names: is not JSON"),
    ],
)
def test_a_slip_names_its_field(field: str, written: str, why: str) -> None:
    with pytest.raises(Problem, match=why):
        sent(**{field: written})


@pytest.mark.parametrize(
    "schema", [{}, {"properties": 3}, {"properties": {"x": 3}}, {"properties": {"x": {"enum": 1}}}]
)
def test_a_schema_that_says_nothing_leaves_json(schema: Any) -> None:
    fields = fields_of('{"x": "y"}', schema)

    assert [(one.kind, one.value) for one in fields] == [("json", '"y"')]


def test_a_schema_that_names_itself_ends() -> None:
    schema = {"properties": {"x": {"$ref": "#/$defs/Loop"}}, "$defs": SCHEMA["$defs"]}

    assert [one.kind for one in fields_of("{}", schema)] == ["json"]


@pytest.mark.parametrize("arguments", ["no json", "[1]", "{}", json.dumps({f"a{number}": 1 for number in range(41)})])
def test_what_has_no_fields_is_one_text_of_json(arguments: str) -> None:
    (field,) = fields_of(arguments, {})

    assert (field.key, field.kind) == (WHOLE, "json")
    assert edited([field], arguments, {WHOLE: '{"a": 2}'}) == {"a": 2}
    with pytest.raises(Problem, match="is no JSON object"):
        edited([field], arguments, {WHOLE: "[2]"})


def test_a_change_shows_both_values_and_what_is_left_out_now_or_was_until_now() -> None:
    fields = fields_of(ARGUMENTS, SCHEMA)
    form = {field.key: field.value for field in fields}
    form |= {fields[0].key: "a\nc\u202e", fields[1].key: "", fields[2].key: "file"}

    assert [(one.label, one.note, "\n".join(line.text for line in one.lines)) for one in changes_of(fields, form)] == [
        ("path", "", " a\n-b\n+c⟨U+202E⟩"),
        ("depth", "now left out", "-3"),
        ("kind", "left out until now", "+file"),
    ]
    assert form_digest(fields, form) != form_digest(fields, {field.key: field.value for field in fields})


def test_values_that_are_too_long_to_be_compared_show_their_ends() -> None:
    lines = "\n".join(f"{number} " * 30 for number in range(3_000))
    fields = fields_of(json.dumps({"path": lines}), SCHEMA)
    (change,) = changes_of(fields, {fields[0].key: lines + "!"})

    shown = "\n".join(line.text for line in change.lines)
    assert shown.startswith("-0 0 0")
    assert shown.rstrip().endswith("!")
    assert shown.count("characters are not shown here") == 2
    assert {line.kind for line in change.lines} == {"added", "removed"}
