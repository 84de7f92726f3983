"""Results of outside systems: in pieces, against a schema, too large, too late, and several at once."""

from typing import Any

import pytest

from longhaul.agent.plain.json_schemas import unusable, wrong_places
from longhaul.agent.steps import TakeIn
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.events import EventReducer
from tests.agent.play import TOOLS, Play, calls, text

WEIGHED = {
    "type": "object",
    "properties": {
        "weight": {"type": "number", "minimum": 0},
        "to": {"enum": ["sea", "air"]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "maxItems": 2},
        "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
    },
    "required": ["weight"],
    "additionalProperties": False,
    "$defs": {"part": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
}
TOOLBOX = (*TOOLS, ToolDescriptor(name="Weigh", external=True, read_only=True, result_schema=WEIGHED))


def waiting(*pairs: str, **more: Any) -> Play:
    play = Play([calls(*pairs), text("Done.")], tools=TOOLBOX, **more)
    play.say("Go")
    play.run()
    return play


def hand_in(play: Play, *results: dict[str, Any]) -> dict[str, Any] | str:
    return play.tell("external_result", {"results": list(results)})


def piece(call_id: str, output: Any, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "output": output, "partial": True, **more}


def told(play: Play, call_id: str) -> list[str]:
    """The call's events in short, from its result's beginning."""
    events = EventReducer(play.events_before).catch_up(play.journal.log)
    return [brief(event) for event in events if event.tool_call_id == call_id and "RESULT" in event.type]


def brief(event: AgentEvent) -> str:
    return event.delta if event.type == "TOOL_RESULT_TEXT_DELTA" else event.type


def test_pieces_are_told_as_they_come_and_the_last_one_closes() -> None:
    play = waiting("a Order")

    assert hand_in(play, piece("a", "brick 1\n")) == {"received": [], "pieces": ["a"]}
    assert hand_in(play, piece("a", "brick 2\n")) == {"received": [], "pieces": ["a"]}
    assert play.results() == []
    assert hand_in(play, {"id": "a", "output": "that is all"}) == {"received": ["a"]}
    play.run()

    assert play.results() == [("a", "success", "brick 1\nbrick 2\nthat is all")]
    assert told(play, "a") == [
        "TOOL_RESULT_START", "brick 1\n", "brick 2\n", "EXTERNAL_EXECUTION_RESULT", "that is all", "TOOL_RESULT_END",
    ]  # fmt: skip


def test_pieces_survive_a_continue_as_new_and_stand_before_the_blocks_of_the_last_one() -> None:
    for keeps in (False, True):
        play = waiting("a Order", keeps=keeps)
        hand_in(play, piece("a", "brick "))
        play.continue_as_new()
        hand_in(play, {"id": "a", "output": [{"type": "text", "text": "wall"}], "state": "error"})
        play.run()
        assert play.results() == [("a", "error", "brick \nwall")], keeps


def test_an_interrupted_call_keeps_what_had_come_of_it() -> None:
    play = waiting("a Order")
    hand_in(play, piece("a", "half a wall"))
    play.tell("interrupt", {})
    play.run()

    ((_, state, words),) = play.results()
    assert state == "interrupted"
    assert words.endswith("It had answered so far:\nhalf a wall")
    assert hand_in(play, {"id": "a", "output": "the rest"}) == (
        "this session waits for nothing of the kind: no call needs a result from outside "
        "('a' has its result: interrupted, in reply 'reply-of-r1')"
    )


def test_a_long_result_of_pieces_is_looked_at_by_a_worker() -> None:
    play = waiting("a Order")
    hand_in(play, piece("a", "x" * 2_990))
    hand_in(play, {"id": "a", "output": "y" * 2_990})
    play.run()

    assert [type(step) for step in play.steps].count(TakeIn) == 1
    assert told(play, "a")[-2:] == ["y" * 2_990, "TOOL_RESULT_END"]


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (piece("a", {"brick": 1}), "partial: a piece of 'a' is text, without an error; the last one may be anything"),
        (piece("a", "x", state="error"), "partial: a piece of 'a' is text, without an error; "),
        (
            {"id": "a", "output": "x" * (5_000 * 1000)},
            "results: 'a' would have 5000 kB with all of its pieces, and the most is 5000 kB; put the content where",
        ),
        (
            {"id": "a", "output": [{"type": "text", "text": "x"}] * 101},
            "results: 'a' has 101 blocks, and the most is 100",
        ),
    ],
)
def test_what_can_not_be_taken_is_refused_and_nothing_else_recorded(result: dict[str, Any], sentence: str) -> None:
    play = waiting("a Order")
    before = play.kinds()
    if "5000 kB" in sentence:
        result = {**result, "output": result["output"] + "x" * 1_000}
        sentence = sentence.replace("have 5000", "have 5001")

    assert str(hand_in(play, result)).startswith(sentence)
    assert play.kinds() == [*before, "refused"]


def test_pieces_are_counted() -> None:
    play = waiting("a Order")
    call = play.journal.reply.calls["a"] if play.journal.reply else None
    assert call is not None
    call.pieces = ("x",) * 1_000

    assert hand_in(play, piece("a", "y")) == (
        "partial: 'a' has 1000 pieces, and that is the most; hand in the last one"
    )


def test_of_several_results_in_one_operation_all_are_taken_or_none() -> None:
    play = waiting("a Order", "b Weigh")
    assert play.journal.reply is not None
    play.journal.reply.calls["b"].state = play.journal.reply.calls["a"].state

    refused = hand_in(play, {"id": "a", "output": "built"}, {"id": "b", "output": {"weight": -1}})

    assert refused == "results: 'b' does not fit what Weigh answers with: 'weight' is -1: give 0 or more"
    assert play.journal.reply.calls["a"].waits_for == "outside"
    taken = hand_in(play, {"id": "a", "output": "built"}, {"id": "b", "output": {"weight": 1}})
    assert taken == {"received": ["a", "b"]}


def test_a_result_of_another_reply_is_told_apart() -> None:
    play = Play([calls("a Order"), text("One."), calls("b Order"), text("Two.")])
    play.say("Go")
    play.run()
    hand_in(play, {"id": "a", "output": "x"})
    play.run()
    play.say("Again", "r2")
    play.run()

    assert hand_in(play, {"id": "a", "output": "x"}) == (
        "call 'a' does not wait for a result from outside ('a' has its result: success, in reply 'reply-of-r1'); "
        "waiting: ['b']"
    )


@pytest.mark.parametrize(
    ("output", "places"),
    [
        ({"weight": 2, "to": "sea", "parts": [{"id": 1}], "note": None}, ""),
        ('{"weight": 2.5}', ""),
        ({}, "'weight' is missing: give a number"),
        ("heavy", 'the whole value is the text "heavy", but has to be an object'),
        ('{"weight": "heavy"}', "'weight' is the text \"heavy\", but has to be a number"),
        ({"weight": True}, "'weight' is true, but has to be a number"),
        ({"weight": 1, "to": "rail"}, '\'to\' is the text "rail": give one of "sea", "air"'),
        ({"weight": 1, "parts": [{"id": 1}, {"id": 1.5}]}, "'parts[1].id' is 1.5, but has to be a whole number"),
        (
            {"weight": 1, "parts": [{}] * 3},
            "'parts' has 3: give at most 2 items; 'parts[0].id'",
        ),
        ({"weight": 1, "note": "longer"}, "'note' is the text \"longer\", which is none of what it may be"),
        ({"weight": 1, "colour": "red"}, "'colour' is not known here: leave it out; known are"),
    ],
)
def test_a_result_has_to_fit_its_schema(output: object, places: str) -> None:
    play = waiting("b Weigh")

    answer = hand_in(play, {"id": "b", "output": output})

    if places:
        assert str(answer).startswith(f"results: 'b' does not fit what Weigh answers with: {places}")
    else:
        assert answer == {"received": ["b"]}


def test_a_failure_needs_no_schema_and_a_piece_is_refused_where_there_is_one() -> None:
    play = waiting("b Weigh")

    assert str(hand_in(play, piece("b", "half"))).startswith("partial: results of 'Weigh' have a schema")
    assert hand_in(play, {"id": "b", "output": "the scales broke", "state": "error"}) == {"received": ["b"]}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string", "pattern": "(a+)+"}, "it can't say 'pattern'; there are "),
        ({"items": {"$ref": "#/$defs/gone"}}, "$ref: '#/$defs/gone' is not one of its own $defs"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "it refers to itself, or nests deeper"),
        ("string", "'string' is not a schema"),
        ({"properties": {"a": 7}}, "'7' is not a schema"),
    ],
)
def test_a_schema_that_can_not_be_checked_is_refused(schema: object, why: str) -> None:
    assert unusable(schema).startswith(why)


def test_many_wrong_places_are_told_in_part() -> None:
    assert len(wrong_places([1] * 1_000, {"items": {"type": "string"}})) == 10
