"""The finish function on a worker: values against the schema that was asked for."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings

from longhaul.activities.tool import Tool, ToolSetupError
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.registry import Toolbox, describe, finishing
from longhaul.activities.tools.session_tools import MOST_FIELDS, MOST_VALUE_BYTES, BadAskedSchema, GenerateResponse
from longhaul.agent.plain.json_schemas import why_unusable
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE
from tests.activities.tools.forms import Form, forms
from tests.limits import usual


@pytest.mark.proves("C7")
@settings(max_examples=200, deadline=None)
@given(forms())
def test_a_value_that_fits_is_taken_and_one_that_does_not_is_told_of(form: Form) -> None:
    schema, valid, invalid = form
    assert why_unusable(schema) == ""
    toolbox = finishing(Toolbox(()), schema)

    assert toolbox.validate(GENERATE_RESPONSE, json.dumps(valid)) == valid
    with pytest.raises(ArgumentsError, match=r"^the answer does not fit:\n- "):
        toolbox.validate(GENERATE_RESPONSE, json.dumps(invalid))


def check(schema: dict[str, Any], value: Any) -> str:
    """What is told of it; empty when it fits."""
    try:
        GenerateResponse(schema).check(value)
    except ArgumentsError as error:
        return str(error)
    return ""


def of(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": part}, **more}


def test_each_field_that_is_wrong_is_named() -> None:
    schema = {
        "type": "object",
        "properties": {
            "height": {"type": "number"},
            "kind": {"enum": ["spring", "neap"]},
            "at": of({"type": "string"}),
        },
        "required": ["height", "kind"],
    }
    assert check(schema, {"height": "low", "kind": "ebb", "at": {"x": 4}}) == (
        "the answer does not fit:\n"
        "- 'at.x' is 4, but has to be text\n"
        "- 'height' is the text \"low\", but has to be a number\n"
        '- \'kind\' is the text "ebb": give one of "spring", "neap"'
    )
    assert check(schema, {}) == (
        "the answer does not fit:\n- 'height' is missing: give a number; 'kind' is missing: give a value"
    )


@pytest.mark.parametrize(
    ("part", "value", "told"),
    [
        ({"pattern": "^a"}, "bc", """'x' is the text "bc", which does not fit pattern "^a\""""),
        ({"multipleOf": 5}, 7, "'x' is 7, which does not fit multipleOf 5"),
        ({"enum": [True]}, 1, "'x' is 1, which does not fit enum [true]"),
        ({"items": {"type": ["string", "null"]}}, ["a", 4], "'x[1]' is 4, but has to be text or null"),
        (False, 3, "3 may not stand where it does: leave it out"),
        ({"properties": {"y": True}, "required": ["y"]}, {}, "'x.y' is missing: give a value"),
    ],
)
def test_each_word_of_a_schema_is_said_with_field_value_and_what_to_give(part: Any, value: Any, told: str) -> None:
    assert check({"type": "object", "properties": {"x": part}}, {"x": value}) == f"the answer does not fit:\n- {told}"


def test_of_many_wrong_fields_the_first_are_named_and_the_rest_counted() -> None:
    told = check(of({"type": "array", "items": {"type": "integer"}}), {"x": ["a"] * 30})
    assert len(told.splitlines()) == MOST_FIELDS + 2
    assert told.endswith("- and 20 more")


def test_a_form_that_holds_itself_is_followed_down_the_value() -> None:
    schema = {"$defs": {"N": of({"$ref": "#/$defs/N"}, additionalProperties=False)}, "$ref": "#/$defs/N"}
    assert check(schema, {"x": {"x": {"x": {}}}}) == ""
    assert check(schema, {"x": {"x": {"y": 1}}}) == (
        "the answer does not fit:\n- 'x.x.y' is not known here: leave it out; known are x"
    )


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param(of({"type": "string", "pattern": "^(a+)+$"}), {"x": "a" * 5_000 + "!"}, id="a pattern"),
        pytest.param(of({"uniqueItems": True}), {"x": [*range(20_000), *map(str, range(9_000)), 0]}, id="a set"),
        pytest.param(
            {"allOf": [of({"$ref": "#"}), of({"$ref": "#"})]},
            json.loads('{"x":' * 40 + "1" + "}" * 40),
            id="references that double",
        ),
        pytest.param(
            of({"items": {"enum": [*range(4_000)]}}), {"x": [-1] * 30_000}, id="long lists of what may stand there"
        ),
    ],
)
def test_no_form_and_no_value_keeps_a_worker_busy(schema: dict[str, Any], value: Any) -> None:
    began = time.process_time()
    assert check(schema, value)
    assert time.process_time() - began < usual(20)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"x": "y" * MOST_VALUE_BYTES}, "bytes, and the most is 200,000; be brief"),
        (json.loads('{"x": 1e999}'), "the arguments hold a number that is too large; give it as a text"),
        (json.loads('{"x": [{"y": -1e999}]}'), "the arguments hold a number that is too large"),
    ],
)
def test_what_could_not_be_recorded_as_it_is_does_not_fit(value: Any, why: str) -> None:
    assert why in check({"type": "object"}, value)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (
            of({"type": "string", "pattern": "(?=x)"}),
            "structured_schema: $.properties.x.pattern: '(?=x)' can't be used",
        ),
        (of({"type": "string", "pattern": "(a"}), "structured_schema: $.properties.x.pattern: '(a' is not"),
        (of({"minLength": 2.5}), "structured_schema: $.properties.x.minLength: "),
        ({"required": ["a", "a"]}, "structured_schema: $.required: ['a', 'a'] has non-unique elements; correct it"),
        ({"type": "array"}, "structured_schema: $.type: 'array' can't be answered"),
    ],
)
def test_a_form_that_is_none_is_told_with_its_place(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(BadAskedSchema) as told:
        GenerateResponse(schema)
    assert str(told.value).startswith(why)


def test_the_model_is_sent_the_form_itself() -> None:
    schema = of({"type": "string"})
    told = describe(GenerateResponse(schema))
    assert (told.name, told.input_schema, told.inside, told.read_only) == (GENERATE_RESPONSE, schema, True, True)


def test_no_other_tool_may_have_its_name() -> None:
    class Pretender(Tool):
        name, description, input_schema = GENERATE_RESPONSE, "Ends it.", {"type": "object"}

    with pytest.raises(ToolSetupError, match="is the name of the function that ends a reply; rename the tool"):
        Toolbox([Pretender()])
