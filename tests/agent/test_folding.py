"""Events folded back: the recorded message, whatever was shown on the way."""

from typing import Any

import pytest

from agent.event import AgentEvent, Live
from agent.events import EventFold
from agent.folding import ReplyFold
from agent.messages import ErrorInfo, Msg, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, Usage
from agent.settings import ReActConfig
from agent.transcript import reply_message
from tests.agent.play import SPEC, Line, Play, calls, text

REPLY = "reply-of-r1"
SIGNED = ThinkingBlock.model_validate({"thinking": "hm", "signature": "s-1"})


def recorded(play: Play) -> Msg:
    message = reply_message(play.record, REPLY)
    assert message is not None
    return message


def events(play: Play) -> list[AgentEvent]:
    return EventFold().catch_up(play.record.log)


def fold(told: list[AgentEvent]) -> ReplyFold:
    folded = ReplyFold(REPLY)
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

    folded = fold(events(play))

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

    assert fold(events(play)).message() == recorded(play)


def test_a_result_of_parts_with_metadata_is_whole_again() -> None:
    end = AgentEvent(
        type="TOOL_RESULT_END",
        seq=4,
        reply_id=REPLY,
        tool_call_id="a",
        tool_call_name="Look",
        metadata={"diff": "+1"},
        output=(TextBlock(text="one"), TextBlock(text="two")),
    )
    told = [
        AgentEvent(type="TOOL_RESULT_START", seq=2, reply_id=REPLY, tool_call_id="a", tool_call_name="Look"),
        AgentEvent(type="TOOL_RESULT_TEXT_DELTA", seq=3, reply_id=REPLY, tool_call_id="a", delta="one\ntwo"),
        end.model_copy(update={"state": "success"}),
    ]

    (block,) = fold(told).message().content

    assert block == ToolResultBlock(
        id="a", name="Look", output=(TextBlock(text="one"), TextBlock(text="two")), metadata={"diff": "+1"}
    )


def live(
    kind: str, delta: str = "", *, call: str = "model:0", attempt: int = 1, block: str = "0", **more: str
) -> AgentEvent:
    return AgentEvent.model_validate(
        {"type": kind, "reply_id": REPLY, "delta": delta, "block_id": block, "live": Live(call=call, attempt=attempt)}
        | more
    )


def test_live_text_shows_until_the_record_has_it() -> None:
    folded = fold([live("MODEL_CALL_START"), live("TEXT_BLOCK_DELTA", "For"), live("TEXT_BLOCK_DELTA", "ty")])
    assert folded.message().content == (TextBlock(text="Forty"),)

    play = an_answer()
    play.say("How many?")
    play.run()
    for event in events(play):
        folded.take(event)

    assert folded.message() == recorded(play)


def test_what_a_superseded_attempt_has_said_is_forgotten() -> None:
    folded = fold([live("TEXT_BLOCK_DELTA", "Fifty"), live("CUSTOM", name="restarted", attempt=2)])
    assert folded.message().content == ()

    folded.take(live("TEXT_BLOCK_DELTA", "Forty", attempt=2))

    assert folded.message().content == (TextBlock(text="Forty"),)


def test_live_calls_and_their_output_show_beside_each_other() -> None:
    more: Any = {"tool_call_id": "a", "tool_call_name": "Bash"}
    folded = fold(
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

    twice = fold([*told[:9], *other, *told[4:], *told])

    assert twice.message() == recorded(play)
    assert twice.seq == told[-1].seq


def test_tokens_are_added_up() -> None:
    told = [
        AgentEvent(type="MODEL_CALL_END", seq=seq, reply_id=REPLY, input_tokens=10, cache_creation_input_tokens=4)
        for seq in (1, 2)
    ]

    assert fold(told).message().usage == Usage(input_tokens=20, cache_creation_input_tokens=8)
