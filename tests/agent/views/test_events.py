"""Durable events: numbered without gaps, the same for the same log, in the seed's words."""

import pytest

from longhaul.agent.entries import CallUnsettled
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import ErrorInfo, HintBlock, TextBlock, ThinkingBlock, ToolResultState
from longhaul.agent.values.spec.agent_spec import ReActConfig
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, Line, Play, calls, text


def _events(play: Play) -> list[AgentEvent]:
    return EventReducer().catch_up(play.journal.log)


def _types(play: Play) -> list[str]:
    return [event.type for event in _events(play)]


def _of_call(play: Play, call_id: str) -> list[str]:
    return [event.type for event in _events(play) if event.tool_call_id == call_id]


def test_an_answer_with_thought_is_told_block_by_block() -> None:
    line: Line = [ThinkingBlock(thinking="hm"), HintBlock(hint="be brief"), TextBlock(text="Forty.")]
    play = Play([line])
    play.say("How many?")
    play.run()

    assert _types(play) == [
        "REPLY_START",
        "MODEL_CALL_START",
        "THINKING_BLOCK_START",
        "THINKING_BLOCK_DELTA",
        "THINKING_BLOCK_END",
        "HINT_BLOCK",
        "TEXT_BLOCK_START",
        "TEXT_BLOCK_DELTA",
        "TEXT_BLOCK_END",
        "MODEL_CALL_END",
        "REPLY_END",
    ]
    events = _events(play)
    assert [event.seq for event in events] == list(range(1, 12))
    assert [event.id for event in events] == [str(number) for number in range(1, 12)]
    assert {event.reply_id for event in events} == {"reply-of-r1"}
    assert (events[0].session_id, events[0].name, events[0].role) == (
        play.journal.state.session_id,
        "mason",
        "assistant",
    )
    assert (events[5].hint, events[5].block_id) == ("be brief", "5.1")
    assert events[7].delta == "Forty."
    assert events[7].block_id == "5.2"
    assert (events[9].input_tokens, events[9].output_tokens) == (10, 3)
    assert (events[9].created_at, events[9].finished_reason) == ("2025-11-25T12:00:00.004+00:00", "completed")
    assert (events[10].finished_reason, events[10].session_id) == ("completed", play.journal.state.session_id)


def test_an_event_says_nothing_that_it_does_not_know() -> None:
    play = Play([text("Forty.")])
    play.say("How many?")
    play.run()

    assert _events(play)[1].model_dump(mode="json") == {
        "type": "MODEL_CALL_START",
        "seq": 2,
        "created_at": "2025-11-25T12:00:00.004+00:00",
        "reply_id": "reply-of-r1",
        "model_name": "scripted:wall",
    }
    assert _events(play)[1].outside()["id"] == "2"


def test_an_approved_call_is_told_from_question_to_result() -> None:
    play = Play([calls("a Paint", arguments='{"colour": "red"}'), text("Done.")])
    play.say("Paint")
    play.run()
    play.allow("a", input={"colour": "blue"})
    play.run()

    events = _events(play)
    asked = next(event for event in events if event.type == "REQUIRE_USER_CONFIRM")
    assert [(call.id, call.state, call.input) for call in asked.tool_calls] == [("a", "asking", '{"colour": "red"}')]
    answered = next(event for event in events if event.type == "USER_CONFIRM_RESULT")
    assert answered.value == {
        "approver": "ben",
        "decisions": [{"call_id": "a", "allow": True, "edited": True}],
    }
    edited = next(event for event in events if event.name == "arguments_edited")
    assert (edited.tool_call_id, edited.value) == ("a", {"input": '{"colour": "blue"}'})
    assert _of_call(play, "a") == [
        "TOOL_CALL_START",
        "TOOL_CALL_DELTA",
        "TOOL_CALL_END",
        "CUSTOM",
        "TOOL_RESULT_START",
        "TOOL_RESULT_TEXT_DELTA",
        "TOOL_RESULT_END",
    ]


def test_a_second_question_shows_the_edited_arguments() -> None:
    elsewhere = CallUnsettled(call_id="a", analysis=CallAnalysis(cwd="/b"), reason="it had moved")
    play = Play([calls("a Paint"), text("Done.")], outcomes={"a": [elsewhere]})
    play.say("Paint")
    play.run()
    play.allow("a", input={"colour": "blue"})
    play.run()

    asked = [event for event in _events(play) if event.type == "REQUIRE_USER_CONFIRM"]
    assert [event.tool_calls[0].input for event in asked] == ["{}", '{"colour": "blue"}']


def test_a_call_that_is_allowed_twice_starts_its_result_once() -> None:
    elsewhere = CallUnsettled(call_id="a", analysis=CallAnalysis(cwd="/b"), reason="it had moved")
    play = Play([calls("a Look"), text("Done.")], outcomes={"a": [elsewhere]})
    play.say("Look")
    play.run()

    assert _of_call(play, "a")[3:] == ["TOOL_RESULT_START", "CUSTOM", "TOOL_RESULT_TEXT_DELTA", "TOOL_RESULT_END"]
    custom = next(event for event in _events(play) if event.type == "CUSTOM")
    assert (custom.name, custom.value) == ("call_unsettled", {"reason": "it had moved"})


def test_calls_that_did_not_run_end_with_the_state_that_says_why() -> None:
    play = Play([calls("a Demolish", "b Fly", "c Paint"), text("Then not.")])
    play.say("Go")
    play.run()
    play.deny("c", reason="wet")
    play.run()

    ends = {e.tool_call_id: (e.tool_call_name, e.state) for e in _events(play) if e.type == "TOOL_RESULT_END"}
    assert ends == {
        "a": ("Demolish", ToolResultState.DENIED),
        "b": ("Fly", ToolResultState.ERROR),
        "c": ("Paint", ToolResultState.DENIED),
    }


def test_an_external_call_is_handed_out_and_its_result_told() -> None:
    play = Play([calls("a Order", "b Order"), text("Done.")])
    play.say("Order")
    play.run()
    play.tell("external_result", {"results": [{"id": "a", "output": "40"}, {"id": "b", "output": "2"}]})
    play.run()

    handed = [event for event in _events(play) if event.type == "REQUIRE_EXTERNAL_EXECUTION"]
    assert [[call.id for call in event.tool_calls] for event in handed] == [["a", "b"]]
    assert _of_call(play, "a")[3:] == [
        "EXTERNAL_EXECUTION_RESULT",
        "TOOL_RESULT_START",
        "TOOL_RESULT_TEXT_DELTA",
        "TOOL_RESULT_END",
    ]


def test_an_interrupt_closes_what_is_open() -> None:
    play = Play([calls("a Paint")])
    play.say("Paint")
    play.run()
    play.tell("interrupt")
    play.run()

    assert _types(play)[-5:] == [
        "USER_INTERRUPT",
        "TOOL_RESULT_START",
        "TOOL_RESULT_TEXT_DELTA",
        "TOOL_RESULT_END",
        "REPLY_END",
    ]


@pytest.mark.proves("C10")
def test_failures_and_the_limit_of_rounds_are_told() -> None:
    gone = ErrorInfo(type="upstream", message="gone")
    failed = Play([gone])
    failed.say("Go")
    failed.run()
    spec = SPEC.model_copy(update={"react_config": ReActConfig(max_iters=1)})
    limited = Play([calls("a Look")], spec=spec)
    limited.say("Go")
    limited.run()

    assert [(event.name, event.model_name, event.error) for event in _events(failed)[1:2]] == [
        ("model_failed", "scripted:wall", gone)
    ]
    assert _events(failed)[-1].error == gone
    assert _types(limited)[-2:] == ["EXCEED_MAX_ITERS", "REPLY_END"]
    assert _events(limited)[-2].name == "mason"


def test_a_fold_that_follows_a_growing_log_tells_the_same_as_one_that_reads_it_at_once() -> None:
    play = Play([calls("a Paint"), text("Done.")])
    following = EventReducer()
    play.say("Paint")
    play.run()
    first = len(following.catch_up(play.journal.log))
    assert following.catch_up(play.journal.log)[first:] == []
    play.allow("a")
    play.run()

    assert following.catch_up(play.journal.log) == _events(play)


def test_refusals_and_a_continue_as_new_move_no_number() -> None:
    play = Play([calls("a Paint"), text("Done.")])
    play.say("Paint")
    for number in range(150):
        play.tell(f"nonsense-{number}")
    play.run()
    before = _events(play)

    play.continue_as_new()

    assert _events(play) == before
    play.allow("a")
    play.run()
    assert [event.seq for event in _events(play)] == list(range(1, len(_events(play)) + 1))


def test_of_the_calls_of_a_long_reply_only_open_ones_are_remembered() -> None:
    play = Play([*(calls(f"c{number} Look") for number in range(20)), calls("last Paint")])
    play.say("Look around, then paint")
    play.run()

    told, left = _events(play), EventReducer().pass_over(play.journal.log)

    assert [event.tool_call_id for event in told if event.type == "TOOL_RESULT_END"] == [f"c{n}" for n in range(20)]
    assert list(left.calls) == ["last"]
    assert (left.started, left.count) == ((), len(told))
