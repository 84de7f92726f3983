"""A turn of many calls: so many of them are under way together, so many are recorded, and what is dropped is told."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.reducer.all_changes import too_many, without_too_many
from longhaul.agent.steps import Act, ContinueAsNew, Park
from longhaul.agent.values.conversation.messages import AssistantMsg, ContentBlock, HintBlock, TextBlock, ToolCallBlock
from tests.agent.play import Play, calls, text


def looking(count: int) -> Play:
    """A session whose model wants to look so often."""
    play = Play([calls(*(f"c{number} Look" for number in range(count))), text("Seen.")])
    play.say("Look")
    return play


def started(play: Play) -> list[str]:
    return [call_id for step in play.steps if isinstance(step, Act) for call_id in step.call_ids]


def test_the_next_call_starts_when_one_has_ended_in_the_models_order() -> None:
    play = looking(35)

    play.run(hold=True)
    at_first = list(play.running)
    play.end_call("c5")
    play.run(hold=True)

    assert at_first == [f"c{number}" for number in range(32)]
    assert play.running == [call_id for call_id in at_first if call_id != "c5"] + ["c32"]
    play.run()
    assert started(play) == [f"c{number}" for number in range(35)]
    assert len(play.results()) == 35
    assert play.ends() == [("reply-of-r1", "completed")]


def test_a_history_that_has_become_long_is_left_between_the_calls_of_a_turn() -> None:
    play = looking(3 * 32)
    play.run(hold=True)
    play.load = Load(events=2_001)

    play.end_call("c0")
    held = play.run(hold=True)
    step = play.run()
    before = len(started(play))
    play.continue_as_new()
    play.load = Load()
    play.run()

    assert (held, step, before) == (Park("running calls"), ContinueAsNew(), 32)
    assert started(play) == [f"c{number}" for number in range(3 * 32)]
    assert len(play.results()) == 3 * 32
    assert play.ends() == [("reply-of-r1", "completed")]


@pytest.mark.parametrize("count", [0, 1, 256, 257, 5_000])
def test_the_first_calls_of_a_turn_are_kept_and_the_rest_are_counted(count: int) -> None:
    made = calls(*(f"c{number} Look" for number in range(count)))
    said: list[ContentBlock] = [TextBlock(text="I look."), *made, TextBlock(text="That is all.")]

    kept, dropped = without_too_many(said)

    ids = [block.id for block in kept if isinstance(block, ToolCallBlock)]
    assert ids == [f"c{number}" for number in range(min(count, 256))]
    assert dropped == max(count - 256, 0)
    assert (kept[0], kept[-1]) == (said[0], said[-1])


def test_the_model_is_told_of_dropped_calls_behind_the_results_of_those_that_ran() -> None:
    play = Play([text("I see.")])
    play.say("Look")
    while play.kinds()[-1] != "prepared":
        play.begin()
        play.complete()

    message = AssistantMsg("mason", calls("a Look", "b Look"))
    play.write(e.ModelSaid(message=message, dropped_calls=744))
    play.run()

    *_, call, first, second, told, answer = play.journal.state.context
    assert [block.id for block in call.get_tool_calls()] == ["a", "b"]
    assert [result.id for each in (first, second) for result in each.get_tool_results()] == ["a", "b"]
    assert told.content == (HintBlock(hint=too_many(744), source="calls"),)
    assert "1,000 calls" in too_many(744)
    assert answer.get_text_content() == "I see."
