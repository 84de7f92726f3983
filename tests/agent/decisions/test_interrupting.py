"""What an agent says when its reply was interrupted: words of its settings, or of its workers' hooks, asked once."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.model_turn import cut_short, replaced_by
from longhaul.agent.incarnation.continued_state import Carried, carry
from longhaul.agent.incarnation.history import boundary_of
from longhaul.agent.journal import Journal
from longhaul.agent.steps import HandleInterrupt, Idle, Park
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState, problem
from longhaul.agent.views.event_types import AgentEvent, EventsSoFar
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.transcript import ReplyReducer, reply_message
from tests.agent.play import Play, calls, spec_with, spoken, text

HELP = "You have stopped me. What is it?"


def interrupted(*lines: object, message: str = "", **more: object) -> Play:
    """A session whose model has called, interrupted while a person is asked."""
    play = Play([*lines, text("Next.")], **more)  # type: ignore[list-item, arg-type]
    play.say("Paint")
    play.run()
    play.tell("interrupt", {"message": message} if message else {})
    play.run()
    return play


def events(play: Play) -> list[AgentEvent]:
    return EventReducer().catch_up(play.journal.log)


def asked(play: Play) -> int:
    return sum(isinstance(step, HandleInterrupt) for step in play.steps)


def test_without_words_of_its_own_an_agent_says_nothing() -> None:
    play = interrupted(calls("a Paint"))

    assert spoken(play.journal.state.context) == ["Paint", "call a", "result a"]
    assert asked(play) == 0


def test_the_words_of_the_settings_stand_behind_the_results() -> None:
    play = interrupted(calls("a Paint"), message="Blue!", spec=spec_with(interruption_message=HELP))

    assert spoken(play.journal.state.context) == ["Paint", "call a", "result a", HELP, "Blue!", "Next."]
    assert problem(play.journal.state.context) == ""
    message = reply_message(play.journal, "reply-of-r1")
    assert message is not None
    assert message.get_text_content() == HELP
    reducer = ReplyReducer("reply-of-r1")
    for event in events(play):
        reducer.take(event)
    assert reducer.message().content == message.content


def test_a_hook_hears_what_was_cut_short_and_what_is_next_and_its_words_are_recorded() -> None:
    heard: list[tuple[tuple[str, ...], str]] = []

    def handler(journal: Journal) -> e.InterruptHandled:
        heard.append((cut_short(journal), replaced_by(journal)))
        return e.InterruptHandled(reply_id=journal.current.reply_id, said="Brush down.")

    play = interrupted(
        calls("a Measure", "b Measure"), message="Blue!", handler=handler, spec=spec_with(interruption_message=HELP)
    )

    assert heard == [(("Measure", "Measure"), "Blue!")]
    assert spoken(play.journal.state.context)[-4:] == ["result b", "Brush down.", "Blue!", "Next."]
    assert asked(play) == 1
    assert play.journal.requests.parting is None


def test_a_call_that_was_stopped_under_way_was_cut_short() -> None:
    heard: list[tuple[str, ...]] = []

    def handler(journal: Journal) -> e.InterruptHandled:
        heard.append(cut_short(journal))
        return e.InterruptHandled(reply_id=journal.current.reply_id)

    stopped = ToolResultBlock(id="b", name="Look", output="stopped", state=ToolResultState.INTERRUPTED)
    play = Play([calls("a Look", "b Look")], handler=handler, outcomes={"b": [e.ToolReturned(result=stopped)]})
    play.say("Look")
    play.run(hold=True)
    play.tell("interrupt")

    assert play.begin() == Park("running calls")
    assert play.run() == Idle()
    assert heard == [("Look",)]


def test_a_hook_that_fails_leaves_the_words_of_the_settings_and_is_told_of() -> None:
    def handler(journal: Journal) -> e.InterruptHandled:
        return e.InterruptHandled(reply_id=journal.current.reply_id, error="it is broken")

    play = interrupted(calls("a Paint"), handler=handler, spec=spec_with(interruption_message=HELP))

    assert spoken(play.journal.state.context)[-1] == HELP
    assert asked(play) == 1
    told = [event for event in events(play) if event.type == "CUSTOM"]
    assert [(event.name, event.value) for event in told] == [("handle_interrupt_failed", {"reason": "it is broken"})]
    assert play.ends() == [("reply-of-r1", "interrupted")]


def test_a_reply_that_somebody_denied_something_in_was_not_interrupted() -> None:
    play = Play([calls("a Paint")], spec=spec_with(stop_on_reject=True, interruption_message=HELP))
    play.say("Paint")
    play.run()
    play.deny("a")
    play.run()

    assert play.ends() == [("reply-of-r1", "rejected")]
    assert spoken(play.journal.state.context)[-1] == "result a"


def test_a_continue_as_new_between_hook_and_end_asks_nobody_again() -> None:
    def handler(journal: Journal) -> e.InterruptHandled:
        return e.InterruptHandled(reply_id=journal.current.reply_id, said="Brush down.")

    play = Play([calls("a Paint")], handler=handler, keeps=True)
    play.run()
    play.say("Paint")
    play.run()
    play.tell("interrupt")
    while not isinstance(play.begin(), HandleInterrupt):
        play.complete()
    play.complete()
    play.continue_as_new()
    play.run()

    assert spoken(play.journal.state.context)[-1] == "Brush down."
    assert asked(play) == 1


def in_the_midst_of_an_end() -> Play:
    """Interrupted while its call is under way."""
    play = Play([calls("a Look")])
    play.say("Look")
    play.run(hold=True)
    play.tell("interrupt")
    return play


@pytest.mark.proves("A11")
def test_that_somebody_has_interrupted_stands_in_no_state_and_goes_along_all_the_same() -> None:
    play = in_the_midst_of_an_end()

    carried = carry(play.journal, EventsSoFar(), 0, 0)

    assert play.journal.interrupted
    assert "interrupted" not in play.journal.state.model_dump(mode="json")["reply_context"]
    assert Carried.model_validate_json(carried.model_dump_json()).session.interrupted
    assert boundary_of(play.journal)["requests"]["interrupted"] is True


def test_the_next_reply_is_not_interrupted() -> None:
    play = interrupted(calls("a Paint"), calls("b Paint"))

    play.say("Paint again", "r2")
    play.run()

    assert play.journal.current.request_id == "r2"
    assert not play.journal.interrupted
