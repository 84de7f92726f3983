"""Events folded back: the recorded message, whatever was shown on the way."""

from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.values.conversation.messages import (
    Base64Source,
    DataBlock,
    ErrorInfo,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    URLSource,
    Usage,
)
from longhaul.agent.values.spec.agent_spec import ReActConfig
from longhaul.agent.views.event_types import AgentEvent, Live
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.transcript import ReplyReducer, reply_message
from tests.agent.play import SPEC, Line, Play, calls, text

REPLY = "reply-of-r1"
PICTURE = DataBlock(source=Base64Source(data="AAAA", media_type="image/png"), name="wall.png")
ELSEWHERE = DataBlock(source=URLSource(url="https://pier.example/x.wav", media_type="audio/wav"))
SIGNED = ThinkingBlock.model_validate({"thinking": "hm", "signature": "s-1"})


def recorded(play: Play) -> Msg:
    message = reply_message(play.journal, REPLY)
    assert message is not None
    return message


def events(play: Play) -> list[AgentEvent]:
    return EventReducer().catch_up(play.journal.log)


def reducer(told: list[AgentEvent]) -> ReplyReducer:
    folded = ReplyReducer(REPLY)
    for event in told:
        folded.take(event)
    return folded


def an_answer() -> Play:
    line: Line = [SIGNED, TextBlock(text="Forty.")]
    return Play([line])


def several_calls() -> Play:
    return Play([calls("a Look", "b Look", "c Demolish"), [TextBlock(text="Hm."), *calls("d Look")], text("Done.")])


def a_failure() -> Play:
    return Play([ErrorInfo(type="upstream", message="gone")])


def a_limit() -> Play:
    return Play([calls("a Look")], spec=SPEC.model_copy(update={"react_config": ReActConfig(max_iters=1)}))


@pytest.mark.parametrize("make", [an_answer, several_calls, a_failure, a_limit])
def test_the_events_of_a_reply_fold_into_its_message(make: object) -> None:
    play: Play = make()  # type: ignore[operator]
    play.say("Go")
    play.run()

    folded = reducer(events(play))

    assert folded.ended
    assert folded.message() == recorded(play)


def test_denied_edited_and_interrupted_calls_fold_too() -> None:
    play = Play([calls("a Paint", "b Paint", "c Paint"), text("Never said.")])
    play.say("Paint")
    play.run()
    play.deny("a", reason="wet")
    play.allow("b", input={"colour": "blue"})
    play.run()
    play.tell("interrupt")
    play.run()

    assert reducer(events(play)).message() == recorded(play)


def test_a_result_of_parts_with_metadata_is_whole_again() -> None:
    output = (TextBlock(text="one"), PICTURE, TextBlock(text="two"), ELSEWHERE)
    result = ToolResultBlock(id="a", name="Look", output=output, metadata={"diff": "+1"})
    play = Play([calls("a Look"), text("Done.")], outcomes={"a": [e.ToolReturned(result=result)]})
    play.say("Look")
    play.run()

    folded = reducer(events(play)).message()

    assert folded == recorded(play)
    assert folded.content[1] == result


def test_parts_behind_pieces_fold_into_the_recorded_result() -> None:
    play = Play([calls("a Order"), text("Done.")])
    play.say("Order")
    play.run()
    play.tell("external_result", {"results": [{"id": "a", "output": "fo", "partial": True}]})
    play.tell("external_result", {"results": [{"id": "a", "output": "rt", "partial": True}]})
    play.tell("external_result", {"results": [{"id": "a", "output": [PICTURE.model_dump(mode="json")]}]})
    play.run()

    folded = reducer(events(play)).message()

    assert folded == recorded(play)
    (result,) = folded.get_tool_results()
    assert result.output == (TextBlock(text="fort"), PICTURE)


def test_data_and_hints_of_a_model_fold_into_its_message() -> None:
    line: Line = [PICTURE, HintBlock(hint="be brief", source="a middleware"), TextBlock(text="There.")]
    play = Play([line])
    play.say("Draw")
    play.run()

    assert reducer(events(play)).message() == recorded(play)


def test_hints_behind_the_request_stand_beside_the_message() -> None:
    told = [AgentEvent(type="HINT_BLOCK", seq=2, reply_id=REPLY, hint="it is noon", source="clock")]

    folded = reducer(told)

    assert folded.hints == [HintBlock(hint="it is noon", source="clock")]
    assert folded.message().content == ()


def live(
    kind: str, delta: str = "", *, call: str = "model:0", attempt: int = 1, block: str = "0", **more: str
) -> AgentEvent:
    return AgentEvent.model_validate(
        {"type": kind, "reply_id": REPLY, "delta": delta, "block_id": block, "live": Live(call=call, attempt=attempt)}
        | more
    )


def test_live_text_shows_until_the_record_has_it() -> None:
    folded = reducer([live("MODEL_CALL_START"), live("TEXT_BLOCK_DELTA", "For"), live("TEXT_BLOCK_DELTA", "ty")])
    assert folded.message().content == (TextBlock(text="Forty"),)

    play = an_answer()
    play.say("How many?")
    play.run()
    for event in events(play):
        folded.take(event)

    assert folded.message() == recorded(play)


def test_what_a_superseded_attempt_has_said_is_forgotten() -> None:
    folded = reducer([live("TEXT_BLOCK_DELTA", "Fifty"), live("CUSTOM", name="restarted", attempt=2)])
    assert folded.message().content == ()

    folded.take(live("TEXT_BLOCK_DELTA", "Forty", attempt=2))

    assert folded.message().content == (TextBlock(text="Forty"),)


def test_live_calls_and_their_output_show_beside_each_other() -> None:
    more: Any = {"tool_call_id": "a", "tool_call_name": "Bash"}
    folded = reducer(
        [
            live("TOOL_CALL_DELTA", '{"command"', block="1", **more),
            live("TOOL_CALL_DELTA", ': "ls"}', block="1", **more),
            live("TOOL_RESULT_TEXT_DELTA", "one\n", call="tool:a", **more),
            live("TOOL_RESULT_TEXT_DELTA", "two\n", call="tool:a", **more),
        ]
    )

    called, result = folded.message().content
    assert called == ToolCallBlock(id="a", name="Bash", input='{"command": "ls"}')
    assert isinstance(result, ToolResultBlock)
    assert (result.output, result.state) == ("one\ntwo\n", "running")


def test_events_told_again_and_those_of_other_replies_change_nothing() -> None:
    play = several_calls()
    play.say("Go")
    play.run()
    told = events(play)
    other = [event.model_copy(update={"reply_id": "another"}) for event in told]

    twice = reducer([*told[:9], *other, *told[4:], *told])

    assert twice.message() == recorded(play)
    assert twice.seq == told[-1].seq


def test_tokens_are_added_up() -> None:
    told = [
        AgentEvent(type="MODEL_CALL_END", seq=seq, reply_id=REPLY, input_tokens=10, cache_creation_input_tokens=4)
        for seq in (1, 2)
    ]

    assert reducer(told).message().usage == Usage(input_tokens=20, cache_creation_input_tokens=8)
