"""How a model stopped decides what comes next: it goes on, bounded; another one is asked; or the reply says why not."""

import pytest

from longhaul.agent.decisions.model_turn import config_for
from longhaul.agent.reducer.context_state import UNANSWERED
from longhaul.agent.steps import Compress, Finish, Idle, Prepare, Remind, Think
from longhaul.agent.values.conversation.messages import (
    BROKEN_OFF,
    REFUSALS,
    ContentBlock,
    ErrorInfo,
    FinishedReason,
    HintBlock,
    Msg,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ends_as,
)
from longhaul.agent.values.conversation.prompt import GO_ON, goes_on, hint_message
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.transcript import ReplyReducer, reply_message
from tests.agent.play import SPEC, Line, Play, Stopped, calls, spec_with, text

WATCHED = SPEC.model_copy(update={"stuck": StuckConfig()})
WITH_SPARE = WATCHED.model_copy(update={"llm_config": ModelConfig(fallback_model="scripted:spare")})
THOUGHT: list[ContentBlock] = [ThinkingBlock(thinking="How to begin …")]


def cut(content: list[ContentBlock], stop: StopReason = StopReason.LENGTH) -> Stopped:
    return Stopped(content, stop, "max_tokens" if stop is StopReason.LENGTH else stop.value)


def told(*lines: Line, spec: AgentSpec = WATCHED, **more: object) -> Play:
    play = Play(lines, spec=spec, **more)  # type: ignore[arg-type]
    play.say("Tell me all")
    assert play.run() == Idle()
    return play


def end(play: Play) -> tuple[FinishedReason, str]:
    (finish,) = [step for step in play.steps if isinstance(step, Finish)]
    return finish.reason, f"{finish.error.type}: {finish.error.message}" if finish.error else ""


def asked(play: Play) -> list[str]:
    return [step.model for step in play.steps if isinstance(step, Think)]


def message(play: Play) -> Msg:
    made = reply_message(play.journal, "reply-of-r1")
    assert made is not None
    return made


def ends(play: Play) -> list[FinishedReason]:
    return [step.reason for step in play.steps if isinstance(step, Finish)]


def contents(play: Play) -> list[str]:
    return [message.get_text_content() for message in play.journal.state.context]


def hints(play: Play) -> list[str]:
    return [
        str(block.hint)
        for message in play.journal.state.context
        for block in message.content
        if isinstance(block, HintBlock)
    ]


def test_each_reason_is_one_that_ends_one_that_goes_on_or_a_refusal() -> None:
    assert set(StopReason) == BROKEN_OFF | REFUSALS | {StopReason.END, StopReason.UNKNOWN}
    assert not BROKEN_OFF & REFUSALS
    assert {stop: ends_as(stop).value for stop in StopReason} == {
        "end": "completed",
        "length": "incomplete",
        "paused": "incomplete",
        "window": "incomplete",
        "refused": "refused",
        "filtered": "refused",
        "unknown": "completed",
    }


@pytest.mark.parametrize("stop", sorted(BROKEN_OFF))
def test_a_message_that_broke_off_is_gone_on_with(stop: StopReason) -> None:
    play = told(cut(text("One, two,"), stop), text("three."))

    assert end(play) == (FinishedReason.COMPLETED, "")
    assert [block.text for block in message(play).content if isinstance(block, TextBlock)] == ["One, two,", "three."]
    assert hints(play) == [GO_ON[stop.value]]  # type: ignore[index]
    assert [type(step) for step in play.steps] == [Prepare, Think, Remind, Think, Finish, Idle]


@pytest.mark.parametrize("stop", sorted(BROKEN_OFF))
def test_what_it_is_asked_with_then_says_that_it_goes_on_within_its_text(stop: StopReason) -> None:
    asked_with = told(cut(text("One, two,"), stop), text("three.")).journal.state.context

    assert [goes_on(asked_with[:length]) for length in range(len(asked_with) + 1)] == [False, False, False, True, False]
    assert not goes_on([*asked_with[:3], hint_message("Be quick", "stuck"), asked_with[0]])
    assert goes_on([*asked_with[:3], hint_message("Be quick", "stuck")])


def test_after_a_message_without_a_word_there_is_no_text_to_go_on_within() -> None:
    play = told(cut(text(" "), StopReason.LENGTH), text("three."))

    assert hints(play) == [GO_ON["wordless"]]
    assert not any(goes_on(play.journal.state.context[:length]) for length in range(5))


@pytest.mark.parametrize("stop", sorted(BROKEN_OFF))
def test_it_is_gone_on_with_three_times_in_a_row_and_then_the_reply_says_that_it_is_not_whole(stop: StopReason) -> None:
    play = told(*(cut(text(f"{number},"), stop) for number in range(9)))

    reason, why = end(play)
    assert (reason, len(asked(play)), len(hints(play))) == (FinishedReason.INCOMPLETE, 4, 3)
    assert "broke off" in why
    assert "4 times in a row" in why
    assert why.startswith("context_overflow:" if stop is StopReason.WINDOW else "incomplete:")
    assert message(play).get_text_content() == "0,\n1,\n2,\n3,"


@pytest.mark.parametrize(("most", "calls_made"), [(0, 1), (1, 2), (6, 7)])
def test_how_often_is_a_setting(most: int, calls_made: int) -> None:
    play = told(*(cut(text("on")) for _ in range(9)), spec=spec_with(max_continuations=most))

    assert (end(play)[0], len(asked(play))) == (FinishedReason.INCOMPLETE, calls_made)


def test_a_whole_message_in_between_begins_the_count_again() -> None:
    lines = [
        line
        for number in range(5)
        for line in (cut(text("a")), cut(text("b")), cut(text("c")), calls(f"{number} Look"))
    ]
    play = told(*lines, text("Done."), spec=SPEC)

    assert end(play) == (FinishedReason.COMPLETED, "")
    assert len(asked(play)) == 21


def test_the_last_call_of_a_message_that_broke_off_is_never_run_and_the_others_are() -> None:
    """Also where nothing of its arguments has come, which would be a call without any."""
    for stop in sorted(BROKEN_OFF):
        play = told(cut(calls("a Look", "b Look"), stop), calls("c Look"), text("Seen."))

        assert [(call_id, state) for call_id, state, _ in play.results()] == [
            ("b", "error"),
            ("a", "success"),
            ("c", "success"),
        ]
        assert "did not run: your message broke off while you were writing it" in play.results()[0][2]
        assert (end(play)[0], hints(play)) == (FinishedReason.COMPLETED, [])


@pytest.mark.parametrize("tool", ["Paint", "Order", "Demolish", "Nothing"])
def test_nobody_is_asked_about_a_call_that_is_not_whole_nor_is_it_handed_out(tool: str) -> None:
    play = told(cut(calls(f"a {tool}")), text("Then not."))

    assert [(call_id, state) for call_id, state, _ in play.results()] == [("a", "error")]
    assert end(play)[0] is FinishedReason.COMPLETED


def test_calls_that_never_come_to_their_end_are_counted_too() -> None:
    play = told(*(cut(calls(f"c{number} Look", arguments=f'{{"at": "{number}')) for number in range(9)), spec=SPEC)

    assert (end(play)[0], len(asked(play))) == (FinishedReason.INCOMPLETE, 4)
    assert [state for _, state, _ in play.results()] == ["error"] * 4


def test_a_model_that_only_thought_gets_twice_the_room_and_is_not_called_stuck() -> None:
    play = Play([cut(THOUGHT), cut(THOUGHT), text("Forty.")], spec=WATCHED)
    play.say("How many?")
    limits = []
    while play.begin() != Idle():
        if isinstance(play.asked, Think):
            limits.append(config_for(play.journal, "scripted:wall").max_output_tokens)
        if play.asked:
            play.complete()

    assert limits == [8192, 16_384, 32_768]
    assert hints(play) == [GO_ON["wordless"]] * 2
    assert end(play) == (FinishedReason.COMPLETED, "")


def test_the_room_never_grows_beyond_what_models_can_say_nor_below_what_was_set() -> None:
    for given, last in ((8192, 128_000), (200_000, 200_000)):
        spec = spec_with(max_continuations=100)
        spec = spec.model_copy(update={"llm_config": ModelConfig(max_output_tokens=given)})
        play = Play([cut(THOUGHT) for _ in range(40)], spec=spec)
        play.say("How many?")
        while len(asked(play)) < 30:
            play.begin()
            if play.asked:
                play.complete()

        assert config_for(play.journal, "scripted:wall").max_output_tokens == last


def test_a_full_window_is_made_room_in_before_the_model_goes_on() -> None:
    play = told(calls("a Look"), cut(text("Half"), StopReason.WINDOW), text(" and whole."), window=100_000)

    (place,) = [place for place, step in enumerate(play.steps) if isinstance(step, Compress)]
    assert [type(step) for step in play.steps[place - 1 :][:4]] == [Think, Compress, Remind, Think]
    assert end(play) == (FinishedReason.COMPLETED, "")
    assert hints(play) == [GO_ON["window"]]


def test_at_the_limit_of_iterations_a_message_that_broke_off_is_the_last_word() -> None:
    play = told(calls("a Look"), cut(text("So far")), spec=spec_with(max_iters=1))

    assert (end(play)[0], len(asked(play))) == (FinishedReason.EXCEED_MAX_ITERS, 2)


@pytest.mark.parametrize("stop", sorted(REFUSALS))
@pytest.mark.parametrize("words", ["", "I can't help with that."])
def test_a_refusal_is_asked_of_no_model_twice_and_ends_the_reply_with_its_words(stop: StopReason, words: str) -> None:
    play = told(*(Stopped(text(words) if words else [], stop, "no_way") for _ in range(3)), spec=WITH_SPARE)

    reason, why = end(play)
    assert (reason, asked(play)) == (FinishedReason.REFUSED, ["scripted:wall", "scripted:spare"])
    assert why.startswith(f"{stop.value}: scripted:spare ")
    assert (words or "nothing was said why") in why
    assert "no_way" in why
    assert play.journal.spent.usage.output_tokens == 6


def test_what_the_provider_says_of_a_refusal_stands_before_what_the_model_said() -> None:
    play = told(Stopped(text("Sure, first"), StopReason.REFUSED, "refusal", "It could harm somebody."))

    assert end(play)[1].endswith("scripted:wall did not answer (refusal): It could harm somebody.")


@pytest.mark.parametrize("stop", sorted(REFUSALS))
def test_another_model_takes_the_rest_of_the_reply_and_is_not_shown_the_refusal(stop: StopReason) -> None:
    play = told(Stopped(text("No."), stop), calls("a Look"), text("Yes."), spec=WITH_SPARE)

    assert asked(play) == ["scripted:wall", "scripted:spare", "scripted:spare"]
    assert end(play) == (FinishedReason.COMPLETED, "")
    assert "No." not in [message.get_text_content() for message in play.journal.state.context]
    assert [message.get_text_content() for message in play.journal.context.transcript][1] == "No."
    play.say("And again", "r2")
    play.run()
    assert asked(play)[-1] == "scripted:wall"


def test_what_no_model_answers_leaves_the_context_and_stays_in_the_transcript() -> None:
    play = told(calls("a Look", "b Look"), Stopped([], StopReason.REFUSED), text("Fine."))

    assert end(play)[0] is FinishedReason.REFUSED
    context = play.journal.state.context
    assert [str(block.output) for message in context for block in message.get_tool_results()] == [UNANSWERED] * 2
    assert context[0].get_text_content() == "Tell me all"
    assert UNANSWERED not in play.journal.context.transcript[2].model_dump_json()
    assert play.journal.context.tokens == sum(mark.tokens for mark in play.journal.context.marks)

    play.say("Then tell me less", "r2")
    play.run()

    assert ends(play) == [FinishedReason.REFUSED, FinishedReason.COMPLETED]
    assert contents(play)[-2:] == ["Then tell me less", "Fine."]


def test_each_request_that_is_refused_leaves_the_context() -> None:
    refused = Stopped([], StopReason.FILTERED)
    play = Play((text("Hello."), refused, refused), spec=WATCHED)
    for number in range(3):
        play.say(f"Tell me {number}", f"r{number}")
        play.run()

    assert [str(reason) for reason in ends(play)] == ["completed", "refused", "refused"]
    assert contents(play) == ["Tell me 0", "Hello.", UNANSWERED, UNANSWERED]


def test_a_refusal_at_the_limit_of_iterations_leaves_the_context_too() -> None:
    play = told(calls("a Look"), Stopped([], StopReason.REFUSED), spec=spec_with(max_iters=1))

    assert ends(play) == [FinishedReason.EXCEED_MAX_ITERS]
    assert [str(block.output) for message in play.journal.state.context for block in message.get_tool_results()] == [
        UNANSWERED
    ]
    assert hints(play) == [UNANSWERED]


def test_what_another_model_answered_stays() -> None:
    play = told(Stopped(text("No."), StopReason.REFUSED), text("Yes."), spec=WITH_SPARE)

    assert UNANSWERED not in "".join(message.model_dump_json() for message in play.journal.state.context)


def test_what_another_model_has_done_stays_whatever_the_reply_ends_with() -> None:
    spec = WITH_SPARE.model_copy(update={"react_config": spec_with(max_iters=1).react_config})
    away = ErrorInfo(type="http_500", message="the server is away")
    play = told(Stopped([], StopReason.REFUSED), calls("a Look"), away, spec=spec)

    assert ends(play) == [FinishedReason.EXCEED_MAX_ITERS]
    assert UNANSWERED not in "".join(message.model_dump_json() for message in play.journal.state.context)


def test_a_refusal_at_the_limit_of_iterations_asks_nobody_else() -> None:
    spec = WITH_SPARE.model_copy(update={"react_config": spec_with(max_iters=1).react_config})
    play = told(calls("a Look"), Stopped([], StopReason.REFUSED), spec=spec)

    assert (end(play)[0], len(asked(play))) == (FinishedReason.EXCEED_MAX_ITERS, 2)


def test_a_call_beside_a_refusal_is_not_run() -> None:
    play = told(Stopped(calls("a Look"), StopReason.REFUSED))

    assert (end(play)[0], play.results()) == (FinishedReason.REFUSED, [])


def test_a_reason_that_nobody_knows_is_an_end_and_is_told_as_it_came() -> None:
    play = told(Stopped(text("Well."), StopReason.UNKNOWN, "novel_reason"))

    assert end(play) == (FinishedReason.COMPLETED, "")
    events = EventReducer().catch_up(play.journal.log)
    assert [event.value for event in events if event.name == "unknown_stop"] == [
        {"stop": "unknown", "stop_reason": "novel_reason"}
    ]


def test_the_events_make_the_message_that_is_recorded() -> None:
    lines: list[Line] = [
        Stopped(text("No."), StopReason.REFUSED),
        cut(text("One,")),
        cut(calls("a Look")),
        text("two."),
    ]
    play = told(*lines, spec=WITH_SPARE)
    reducer = ReplyReducer("reply-of-r1")
    events = EventReducer().catch_up(play.journal.log)
    for event in events:
        reducer.take(event)

    assert reducer.message() == message(play)
    ends = [event.finished_reason for event in events if event.type == "MODEL_CALL_END"]
    assert [reason.value for reason in ends if reason] == ["refused", "incomplete", "incomplete", "completed"]
    assert [event.value["stop"] for event in events if event.name == "broken_off"] == ["length", "length"]


def test_an_interrupt_between_two_parts_ends_the_reply_with_what_was_said() -> None:
    play = Play([cut(text("One,")), text("two.")], spec=WATCHED)
    play.say("Count")
    while not isinstance(play.begin(), Remind):
        if play.asked:
            play.complete()
    play.tell("interrupt")
    play.run()
    play.say("And now?", "r2")
    play.run()

    assert play.ends() == [("reply-of-r1", "interrupted"), ("reply-of-r2", "completed")]
    assert message(play).get_text_content() == "One,"


def test_a_continue_as_new_in_the_midst_goes_on_with_the_same_count() -> None:
    play = Play([cut(text("a")) for _ in range(9)], spec=WATCHED)
    play.say("Count")
    for _ in range(60):
        if isinstance(play.begin(), Finish):
            break
        if play.asked:
            play.complete()
            play.continue_as_new()

    assert (end(play)[0], len(asked(play))) == (FinishedReason.INCOMPLETE, 4)


def test_of_a_refusal_400_characters_stand_in_the_error() -> None:
    play = told(Stopped(text("x" * 401), StopReason.REFUSED))

    assert end(play)[1].split(": ")[-1] == "x" * 400
