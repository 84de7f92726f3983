"""Arguments that an approver gives instead of the model's: held against the tool's schema before that decides."""

import time
from typing import Any

import pytest

from longhaul.agent.values.conversation.tools import ToolDescriptor
from tests.agent.play import Play, calls
from tests.endless_schemas import chain, doubling
from tests.limits import usual

SHAPED = ToolDescriptor(
    name="Paint",
    input_schema={
        "type": "object",
        "properties": {
            "colour": {"enum": ["red", "blue"]},
            "coats": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
            "note": {"type": "string", "pattern": "^[a-z]*$"},
        },
        "required": ["colour"],
        "additionalProperties": False,
    },
)


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        ({}, "'colour' is missing: give"),
        ({"colour": "green"}, 'is the text "green": give one of'),
        ({"colour": "red", "coats": "two"}, "'coats' is the text \"two\", but has to be a whole number"),
        ({"colour": "red", "coats": 0}, "'coats' is 0: give 1 or more"),
        ({"colour": "red", "file_path": "/x"}, "'file_path' is not known here: leave it out"),
    ],
)
def test_an_edit_that_does_not_fit_the_tool_is_refused_and_the_decision_is_not_spent(
    edit: dict[str, object], where: str
) -> None:
    play = Play([calls("a Paint", arguments='{"colour": "red"}')], tools=(SHAPED,))
    play.say("Paint")
    play.run()

    refused = str(play.allow("a", input=edit))
    waiting = play.journal.current.calls["a"].waits_for
    taken = play.allow("a", input={"colour": "blue", "coats": 2, "note": "N"})

    assert "input: it does not fit 'Paint': " in refused
    assert where in refused
    assert waiting == "person"
    assert taken == {"decided": ["a"]}


@pytest.mark.parametrize("schema", [{}, {"$ref": "#/elsewhere"}, {"properties": {"colour": False}}, {"items": 3}])
def test_an_edit_is_left_to_the_worker_where_the_schema_can_not_be_read_here(schema: dict[str, object]) -> None:
    play = Play(
        [calls("a Paint", arguments='{"colour": "red"}')], tools=(SHAPED.model_copy(update={"input_schema": schema}),)
    )
    play.say("Paint")
    play.run()

    assert play.allow("a", input={"colour": 3}) == {"decided": ["a"]}


@pytest.mark.parametrize(
    ("schema", "value", "answer"),
    [
        pytest.param(doubling("properties"), "high", {"decided": ["a"]}, id="properties"),
        pytest.param(doubling("allOf"), "high", {"decided": ["a"]}, id="allOf"),
        pytest.param(doubling("anyOf"), "high", {"decided": ["a"]}, id="anyOf"),
        pytest.param(
            doubling("anyOf"), "neap", "the whole value takes too long to check", id="anyOf, none of which fits"
        ),
        pytest.param(chain(900), "high", {"decided": ["a"]}, id="a chain"),
        pytest.param(chain(900, backwards=True), "high", {"decided": ["a"]}, id="a chain from its end"),
    ],
)
def test_a_schema_of_a_stranger_keeps_no_session_busy(schema: dict[str, Any], value: str, answer: object) -> None:
    shaped = SHAPED.model_copy(update={"input_schema": schema})
    play = Play([calls("a Paint", arguments='{"x": "low"}')], tools=(shaped,))
    play.say("Paint")
    play.run()

    began = time.process_time()
    told = play.allow("a", input={"x": value})

    assert time.process_time() - began < usual(1)
    assert answer == told or str(answer) in str(told)
