"""Sub-agents in the background: answered at once, heard of once by a message, stopped by name."""

import json

from longhaul.agent.decisions.session_tools.waiting_tools import SEND_TOOL
from longhaul.agent.decisions.subagent_start import lost
from longhaul.agent.entries import CallAnswered
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.steps import Idle
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.spec.agent_spec import AgentSpec
from tests.agent.family import ABOVE, AGENT_TOOL, HOUSE, Family
from tests.agent.play import TOOLS, spoken, text

LEADS = tuple(
    ToolDescriptor(name=name, inside=True, read_only=True, effect=Effect.READ)
    for name in ("AgentList", "AgentSend", "AgentStop")
)


def task(call_id: str, agent: str = "glazier") -> ContentBlock:
    given = {"agent": agent, "task": f"do {call_id}", "run_in_background": True}
    return ToolCallBlock(id=call_id, name="Agent", input=json.dumps(given))


def call(call_id: str, name: str, **arguments: str) -> ContentBlock:
    return ToolCallBlock(id=call_id, name=name, input=json.dumps(arguments))


def lead(*lines: list[ContentBlock], spec: AgentSpec = HOUSE) -> Family:
    play = Family(lines, spec=spec, tools=(*TOOLS, AGENT_TOOL, *LEADS))
    play.say("Build")
    play.run()
    return play


def test_its_call_is_answered_at_once_and_its_end_wakes_the_idle_session_once() -> None:
    play = lead([task("a")], text("I wait."), text("Glazed it is."))

    assert play.run() == Idle()
    assert "works on it in the background; its id is 'a'" in play.results()[0][2]
    assert play.hear_of("a", "Glazed.") == {"recorded": True}
    play.continue_as_new()
    play.run()
    assert play.hear_of("a", "Glazed.") == {"recorded": False}
    play.run()

    assert [why for _, why in play.ends()] == ["completed", "completed"]
    told = "The sub-agent 'glazier' (id 'a') has ended its task in the background: success.\nGlazed."
    assert told in str(play.journal.state.context[-2].content[0].model_dump()["hint"])
    assert spoken(play.journal.state.context)[-1] == "Glazed it is."
    assert play.passed_on == []


def test_an_end_that_comes_in_the_midst_of_a_reply_is_told_at_its_next_step() -> None:
    play = Family([[task("a")], text("Looked."), text("Done.")], spec=HOUSE, tools=(*TOOLS, AGENT_TOOL, *LEADS))
    play.say("Build")
    while not play.started:
        play.begin()
        if play.asked:
            play.complete()
    play.hear_of("a", "Glazed.")
    play.run()

    assert len(play.ends()) == 1
    assert "Glazed." in str(play.journal.state.context)


def test_one_that_is_lost_is_told_of_too() -> None:
    play = lead([task("a")], text("I wait."), text("Sad."))

    for entry in lost(play.journal, play.journal.children["a"], "terminated", "w"):
        play.write(entry)
    play.run()

    assert spoken(play.journal.state.context)[-1] == "Sad."
    assert "in the background: lost." in str(play.journal.state.context[-2])


def test_an_interrupt_of_an_idle_lead_says_how_one_is_stopped() -> None:
    play = lead([task("a")], text("I wait."))

    refused = str(play.tell("interrupt", {}))

    assert refused.endswith(
        "no reply is being made; `stop_background` (`longhaul stop`) is for what works in the background: "
        "'a' (sub-agent 'glazier')"
    )


def test_a_word_goes_down_once_and_a_stop_ends_it_without_a_message() -> None:
    play = lead(
        [task("a"), task("b", "tiler")],
        [call("s", "AgentSend", id="a", message="Mind the frame."), call("l", "AgentList")],
        [call("x", "AgentStop", id="a"), call("y", "AgentStop", id="z")],
        [call("z", "AgentSend", id="a", message="Still there?")],
        text("I wait."),
    )
    play.continue_as_new()
    play.run()

    assert play.passed_on == [("observe", ("a",)), ("interrupt", ("a",))]
    told = {call_id: said for call_id, _, said in play.results()}
    assert "- a: glazier in the background, at work" in told["l"]
    assert "there is no sub-agent 'z' in the background" in told["y"]
    assert "'a' is not at work any more (stopping)" in told["z"]
    play.hear_of("a", "Half a pane.", "interrupted")
    assert play.run() == Idle()
    assert len(play.ends()) == 1
    assert play.journal.children["a"].outcome == "interrupted"


def test_twenty_words_wait_for_one_and_no_more() -> None:
    arguments = '{"id": "a", "message": "Mind the frame."}'
    block = ToolCallBlock(id="s", name="AgentSend", input=arguments)
    send = OpenCall(block=block, input=arguments, analysis=CallAnalysis(), analyzed_at=0)

    def answered(waiting: int) -> str:
        session = lead([task("a")], text("I wait.")).journal
        words = {str(number): "Mind it." for number in range(waiting)}
        session.children["a"] = session.children["a"].model_copy(update={"words": words})
        answer = SEND_TOOL.answer(send, session)
        assert isinstance(answer, CallAnswered)
        return str(answer.result.output)

    assert answered(19) == "'a' reads it at its next step."
    assert answered(20) == "20 messages wait for 'a' already; wait until it has heard them"


def test_an_interrupt_and_an_edit_of_the_state_go_down_to_them() -> None:
    play = lead([task("a")], [*[task("b")]], text("I wait."))
    play.say("More", request_id="r2")
    play.begin()
    play.tell("interrupt")
    play.run()

    assert play.passed_on == [("interrupt", ("a", "b"))]


def test_an_edit_is_told_to_the_model_that_waits_for_its_sub_agents() -> None:
    play = Family([[task("a")], text("I wait.")], tools=(*TOOLS, AGENT_TOOL, *LEADS))
    play.say("Build")
    play.run()

    play.tell("replace_state", {"state": play.journal.state.model_dump(mode="json")})

    assert str(play.journal.state.context).count("No message of theirs comes.") == 1
    assert play.journal.incarnation.note


def test_a_session_does_not_close_while_one_is_at_work() -> None:
    spec = HOUSE.model_copy(update={"idle_close_seconds": 60})
    play = lead([task("a")], text("I wait."), spec=spec)

    play.now += 3_600_000
    play.tell("pause")
    play.tell("resume")
    assert play.run() == Idle()


def test_a_sub_agent_starts_none_in_the_background() -> None:
    play = Family([[task("a")], text("Then not.")], spec=HOUSE, parent=ABOVE)
    play.say("Build", request_id="t1")
    play.run()

    assert play.started == {}
    assert "run_in_background: a sub-agent waits for those that it starts" in play.results()[0][2]
