"""What differs for an agent whose replies are code: its steps are kept, and nothing comes between them."""

from longhaul.agent import entries as e
from longhaul.agent.steps import Compress, Join, Remind, Think
from longhaul.agent.values.conversation.messages import AssistantMsg, ErrorInfo, FinishedReason, ThinkingBlock
from longhaul.agent.values.spec.agent_spec import ReActConfig
from longhaul.agent.values.stuck_detection import StuckConfig
from tests.agent.play import SPEC, Play, calls, text
from tests.agent.reducer.test_compaction import OVERFLOW, looking

CUSTOM = SPEC.model_copy(update={"custom_agent": "surveyor"})


def test_a_step_without_calls_is_no_answer_until_the_code_ends() -> None:
    play = Play(spec=CUSTOM)
    play.say("Survey the wall")
    while not isinstance(play.begin(), Think):
        if play.asked:
            play.complete()
    thought = AssistantMsg("mason", [ThinkingBlock(thinking="It leans.")])
    play.asked = None
    play.write(e.ModelSaid(message=thought, goes_on=True))
    assert play.journal.reply is not None
    assert (play.journal.reply.answered, play.journal.reply.cur_iter) == (False, 1)

    play.write(e.ModelSaid(message=AssistantMsg("mason", "It leans by 2 cm.")))
    assert play.journal.reply.answered


def test_at_the_limit_of_rounds_a_step_is_the_last_word_all_the_same() -> None:
    play = Play(spec=CUSTOM.model_copy(update={"react_config": ReActConfig(max_iters=1)}))
    play.say("Survey the wall")
    while not isinstance(play.begin(), Think):
        if play.asked:
            play.complete()
    play.asked = None
    for words in ("one", "two"):
        play.write(e.ModelSaid(message=AssistantMsg("mason", words), goes_on=True))

    assert play.journal.reply is not None
    assert play.journal.reply.answered


def test_a_context_is_cut_before_a_reply_and_never_between_its_steps() -> None:
    play = looking(spec=CUSTOM)
    play.say("Look at the walls")
    play.run()
    before = [step for step in play.steps if isinstance(step, Compress)]
    play.say("And again", "r2")
    play.run()

    made = [type(step) for step in play.steps if isinstance(step, Compress | Think)]
    assert before == []
    assert made.count(Compress) == 1
    assert made[13] is Compress  # before the second reply's first step


def test_a_prompt_of_its_own_that_is_too_long_shortens_nothing() -> None:
    play = Play([OVERFLOW], spec=CUSTOM, window=2_000)
    play.say("Survey the wall")
    play.run()

    finished = play.journal.requests.finished["reply-of-r1"]
    assert (finished.reason, finished.error) == (FinishedReason.ERROR, OVERFLOW)
    assert not any(isinstance(step, Compress) for step in play.steps)


def test_a_message_for_at_once_waits_for_the_next_reply() -> None:
    play = Play([calls("a Look"), text("Straight."), text("So is that one.")], spec=CUSTOM)
    play.say("Survey the wall")
    play.meanwhile = [lambda: play.tell("submit", {"messages": "The tower too", "request_id": "r2", "when": "now"})]
    play.run()

    assert not any(isinstance(step, Join) for step in play.steps)
    assert [each.reason for each in play.journal.requests.finished.values()] == [FinishedReason.COMPLETED] * 2


def test_code_that_polls_goes_in_no_circles_and_is_reminded_of_nothing() -> None:
    watched = CUSTOM.model_copy(update={"stuck": StuckConfig()})
    play = Play([*(calls(f"look{number} Look") for number in range(9)), text("")], spec=watched)
    play.say("Survey the wall")
    play.run()

    assert play.journal.requests.finished["reply-of-r1"].reason is FinishedReason.COMPLETED
    assert not any(isinstance(step, Remind) for step in play.steps)


def test_code_that_fails_ends_the_reply_with_the_reason() -> None:
    failed = ErrorInfo(type="custom_agent", message="The custom agent 'surveyor' failed: LookupError.")
    play = Play([failed, text("Well again.")], spec=CUSTOM)
    play.say("Survey the wall")
    play.run()
    play.say("And now?", "r2")
    play.run()

    reasons = [(each.reason, each.error) for each in play.journal.requests.finished.values()]
    assert reasons == [(FinishedReason.ERROR, failed), (FinishedReason.COMPLETED, None)]
