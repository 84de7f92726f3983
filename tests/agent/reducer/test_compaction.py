"""When a context is made shorter, and what stays of it: from the journal's numbers alone, without any model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhaul.agent import entries as e
from longhaul.agent.decisions.compaction import next_cut
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.context_state import tokens
from longhaul.agent.steps import Compress, Finish, Idle, Think
from longhaul.agent.values.conversation.messages import ErrorInfo, Msg, TextBlock, ToolResultBlock, problem
from longhaul.agent.values.conversation.prompt import summary_message
from longhaul.agent.values.spec.agent_spec import ContextConfig
from tests.agent.play import SPEC, Line, Play, calls, text

LOOKS = 12
OVERFLOW = ErrorInfo(type="context_overflow", message="The prompt is too long.")


def looked(number: int, size: int) -> e.ToolReturned:
    """A result of about `size` tokens."""
    result = ToolResultBlock(id=f"look{number}", name="Look", output="x" * size * 3)
    return e.ToolReturned(result=result, digest=f"d-look{number}", tokens=size)


def looking(times: int = LOOKS, size: int = 300, window: int = 2_000, **more: Any) -> Play:
    """A mason who looks at `times` walls, one after the other, and then says what he saw."""
    lines = [*(calls(f"look{number} Look") for number in range(times)), text("All seen.")]
    outcomes: Any = {f"look{number}": [looked(number, size)] for number in range(times)}
    return Play(lines, outcomes=outcomes, window=window, **more)


def said(journal: Journal) -> list[str]:
    return [message.get_text_content() for message in journal.state.context if message.get_text_content()]


def compressions(play: Play) -> list[e.ContextCompressed]:
    return [entry for entry in play.journal.log if isinstance(entry, e.ContextCompressed)]


def test_a_context_below_its_threshold_is_left_alone() -> None:
    play = looking(times=3, window=100_000)

    play.say("Look at the walls")
    play.run()

    assert compressions(play) == []
    assert play.journal.context.epoch == 1


@pytest.mark.proves("B3")
def test_a_context_above_its_threshold_is_compressed_before_the_model_is_asked() -> None:
    play = looking()

    play.say("Look at the walls")
    play.run()

    made = [index for index, step in enumerate(play.steps) if isinstance(step, Compress)]
    assert len(made) >= 2
    assert all(isinstance(play.steps[index + 1], Think) for index in made)
    assert play.ends() == [("reply-of-r1", "completed")]
    assert play.journal.context.epoch == 1 + len(made)
    assert tokens(play.journal) <= 1_600


@pytest.mark.proves("S14")
def test_the_first_goal_and_the_newest_request_stay_word_for_word() -> None:
    play = looking()
    play.say("Build me a wall of forty bricks", "r1")
    play.run()
    play.lines = ()
    play._lines = iter([*(calls(f"again{n} Look") for n in range(LOOKS)), text("Again.")])  # noqa: SLF001  a second act
    play.outcomes = {f"again{n}": [looked(n, 300)] for n in range(LOOKS)}
    for n in range(LOOKS):
        result = ToolResultBlock(id=f"again{n}", name="Look", output="y" * 900)
        play.outcomes[f"again{n}"] = [e.ToolReturned(result=result, digest=f"d{n}", tokens=300)]

    play.say("Now paint it", "r2")
    play.run()

    assert len(compressions(play)) >= 3
    assert said(play.journal)[:2] == ["Build me a wall of forty bricks", "Now paint it"]
    assert play.journal.state.summary.startswith("Summary ")


def test_the_newest_turn_stays_even_when_it_is_larger_than_the_reserve() -> None:
    play = looking(size=500, window=2_000)

    play.say("Look at the walls")
    play.run()

    for compressed in compressions(play):
        assert compressed.keep_from > 0
    seen = [step.cut for step in play.steps if isinstance(step, Compress)]
    assert seen
    assert all(cut.keep_from < LOOKS * 2 for cut in seen)


@pytest.mark.proves("B1")
def test_the_model_hears_the_summary_first() -> None:
    play = looking()

    play.say("Look at the walls")
    play.run()

    assert play.journal.context_length == len(play.journal.state.context) + 1
    message = summary_message(play.journal.state.summary)
    assert (message.role, message.name, message.id, message.created_at) == ("user", "summary", "", "")


def test_numbers_of_messages_go_on_over_a_compression() -> None:
    play = looking()

    play.say("Look at the walls")
    play.run()

    journal = play.journal
    numbers = [mark.number for mark in journal.context.marks]
    assert journal.messages_total == 1 + 2 * LOOKS + 1
    assert len(journal.context.transcript) == journal.messages_total
    assert numbers == sorted(set(numbers))
    assert [journal.context.transcript[mark.number] for mark in journal.context.marks] == journal.state.context


def test_a_reply_is_whole_although_its_beginning_was_compressed() -> None:
    from longhaul.agent.views.transcript import reply_message  # noqa: PLC0415  only here

    play = looking()

    play.say("Look at the walls")
    play.run()

    message = reply_message(play.journal, "reply-of-r1")
    assert message is not None
    assert len(message.get_tool_results()) == LOOKS


def test_a_compression_that_fails_changes_nothing_and_is_not_tried_at_every_step() -> None:
    refused = ErrorInfo(type="invalid_answer", message="The model gave no summary.")
    play = looking(times=20, size=100, window=2_000, summaries=[refused] * 50)

    play.say("Look at the walls")
    play.run()

    failed = [entry for entry in play.journal.log if isinstance(entry, e.NotCompressed)]
    assert 1 <= len(failed) <= 3
    assert (play.journal.context.epoch, play.journal.state.summary) == (1, "")
    assert len(play.journal.state.context) == 1 + 2 * 20 + 1
    assert play.ends() == [("reply-of-r1", "completed")]


@pytest.mark.proves("B7")
def test_a_provider_that_finds_the_context_too_long_is_asked_once_more_after_a_compression() -> None:
    lines: list[Line] = [calls("a Look"), calls("b Look"), OVERFLOW, text("Seen.")]
    play = Play(lines, window=100_000)

    play.say("Look at the walls")
    play.run()

    kinds = [type(step).__name__ for step in play.steps]
    assert kinds.count("Compress") == 1
    assert kinds[kinds.index("Compress") - 1] == "Think"
    assert play.ends() == [("reply-of-r1", "completed")]
    assert [result[0] for result in play.results()] == ["b"]


@pytest.mark.proves("B7")
def test_a_provider_that_still_finds_it_too_long_ends_the_reply_with_its_own_words() -> None:
    play = Play([calls("a Look"), OVERFLOW, OVERFLOW, text("never said")], window=100_000)

    play.say("Look at the walls")
    play.run()

    finish = next(step for step in play.steps if isinstance(step, Finish))
    assert finish.error == OVERFLOW
    assert len(compressions(play)) == 1


def test_an_overflow_that_cannot_be_compressed_ends_the_reply() -> None:
    play = Play([calls("a Look"), OVERFLOW], window=100_000, summaries=[ErrorInfo(type="upstream", message="down")])

    play.say("Look at the walls")
    play.run()

    finish = next(step for step in play.steps if isinstance(step, Finish))
    assert finish.reason == "error"
    assert isinstance(play.run(), Idle)


def test_a_system_prompt_that_leaves_no_room_is_said_and_not_compressed_for_ever() -> None:
    play = looking(window=2_000, fixed_tokens=1_700)

    play.say("Look at the walls")
    play.run()

    finish = next(step for step in play.steps if isinstance(step, Finish))
    assert finish.error is not None
    assert "system prompt and the tools alone take 1700 tokens" in finish.error.message
    assert compressions(play) == []


def test_what_is_asked_for_by_hand_happens_in_idleness_with_the_config_of_that_once() -> None:
    play = looking(times=4, window=10_000)
    play.say("Look at the walls")
    play.run()

    answer = play.tell("compact", {"context_config": {"trigger_ratio": 0.1, "reserve_ratio": 0.05}, "by": "ana"})
    play.run()

    assert isinstance(answer, dict)
    assert answer["compacting"] is True
    assert len(compressions(play)) == 1
    assert play.journal.spec.context_config == ContextConfig()


def test_asked_for_by_hand_below_the_threshold_is_a_no_op() -> None:
    play = looking(times=2, window=100_000)
    play.say("Look at the walls")
    play.run()
    before = play.journal.seq

    answer = play.tell("compact", {})

    assert isinstance(answer, dict)
    assert (answer["compacting"], play.journal.seq) == (False, before)


def test_asking_for_it_with_too_large_a_system_prompt_is_refused_in_a_sentence() -> None:
    play = looking(times=1, window=100_000, fixed_tokens=1_000)
    play.say("Look at the wall")
    play.run()

    answer = play.tell("compact", {"context_config": {"trigger_ratio": 0.009, "reserve_ratio": 0.001}})

    assert isinstance(answer, str)
    assert "system prompt and the tools alone take 1000 tokens, more than the 899" in answer


@pytest.mark.proves("D2")
@pytest.mark.parametrize("parallel", [1, 3])
def test_masked_results_keep_their_place(parallel: int) -> None:
    play = Play([calls(*(f"look{n} Look" for n in range(parallel))), text("Seen.")], window=50_000)
    play.say("Look")
    play.run()
    context = play.journal.state.context

    play.write(e.ContextCompressed(epoch=2, keep_from=0, masked=(2,), condenser="mask_observations"))

    masked = play.journal.state.context[2]
    assert masked.get_tool_results()[0].get_text().startswith("[This result was left out")
    assert problem(play.journal.state.context) == ""
    assert [message.id for message in play.journal.state.context] == [message.id for message in context]
    assert play.journal.context.marks[2].digest == ""


def turn(number: int, width: int) -> list[str]:
    return [f"t{number}c{call} Look" for call in range(width)]


@pytest.mark.proves("B3")
@given(
    widths=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    sizes=st.lists(st.integers(1, 900), min_size=1, max_size=6),
    window=st.integers(800, 6_000),
    reserve=st.sampled_from([0.01, 0.1, 0.3, 0.5]),
)
def test_whatever_is_cut_no_call_is_left_without_its_result(
    widths: list[int], sizes: list[int], window: int, reserve: float
) -> None:
    spec = SPEC.model_copy(update={"context_config": ContextConfig(trigger_ratio=0.6, reserve_ratio=reserve)})
    lines = [calls(*turn(number, width)) if width else text("Hm.") for number, width in enumerate(widths)]
    outcomes: Any = {}
    for number, width in enumerate(widths):
        for call in range(width):
            size = sizes[(number + call) % len(sizes)]
            result = ToolResultBlock(id=f"t{number}c{call}", name="Look", output="z" * size)
            outcomes[f"t{number}c{call}"] = [e.ToolReturned(result=result, digest="d", tokens=size)]
    play = Play(lines, spec=spec, outcomes=outcomes, window=window)

    for number in range(len([width for width in widths if not width]) + 1):
        play.say(f"Request {number}", f"r{number}")
        play.run()
        assert problem(play.journal.state.context) == ""
        goal = play.journal.state.context[0]
        assert goal.get_text_content() == "Request 0"
        assert f"Request {number}" in said(play.journal)

    steps = [type(step).__name__ for step in play.steps]
    assert "Compress Compress" not in " ".join(steps)


def test_a_hint_from_outside_is_counted_by_its_bytes() -> None:
    play = Play([text("Ja.")], window=1_000)
    play.say("Mauer " * 100)
    play.run()

    assert play.journal.context.tokens >= 200
    assert next_cut(play.journal) is None
    assert Msg(name="u", role="user", content=(TextBlock(text="a"),)).get_text_content() == "a"


def test_a_compression_that_failed_is_tried_again_when_a_tenth_of_the_window_has_come_in() -> None:
    play = looking(times=40, size=50, summaries=[ErrorInfo(type="upstream", message="gone")] * 9)

    play.say("Look at the walls")
    play.run()

    assert sum(isinstance(entry, e.NotCompressed) for entry in play.journal.log) == 4


def test_a_twentieth_of_the_window_is_worth_a_summary() -> None:
    roomy = SPEC.model_copy(update={"context_config": ContextConfig(trigger_ratio=0.9, reserve_ratio=0.6)})
    play = looking(times=60, size=100, window=4_000, spec=roomy)

    play.say("Look at the walls")
    play.run()

    assert len(compressions(play)) == 3
