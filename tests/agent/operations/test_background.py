"""The operation that stops what works in the background: known once, told of truly, and refused with what works
there."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.background_commands import ended, lost
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.decisions.subagent_start import lost as lost_child
from longhaul.agent.steps import Idle
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState
from longhaul.agent.values.subagents import BackgroundCommand
from tests.agent.decisions.test_background import call, lead, task
from tests.agent.family import Family, tasks
from tests.agent.play import text


def busy() -> Family:
    """An idle lead with a command and a sub-agent at work."""
    play = lead([task("a")], text("I wait."), text("I see."))
    play.load = Load(background=frozenset({"b1"}))
    play.write(e.CommandStarted(command=BackgroundCommand(call_id="b1", shown="make paint")))
    assert play.run() == Idle()
    return play


def over(play: Family, call_id: str, outcome: e.CallOutcome | None = None) -> None:
    for entry in ended(play.journal, call_id, outcome, "w"):
        play.write(entry)


def hints(play: Family) -> list[str]:
    blocks = [block for message in play.journal.state.context for block in message.content if block.type == "hint"]
    return [str(block.hint) for block in blocks]


def test_all_that_works_is_stopped_and_the_agent_hears_so_at_its_next_reply() -> None:
    play = busy()

    assert play.tell("stop_background", {"by": "ana"}) == {"call_ids": ["b1", "a"], "already": []}
    assert play.run() == Idle()
    assert play.passed_on == [("interrupt", ("a",))]
    assert play.journal.commands["b1"].unwanted
    over(play, "b1")
    play.hear_of("a", "Half a pane.", "interrupted", tainted="a page")
    assert play.run() == Idle()

    assert [why for _, why in play.ends()] == ["completed"], "nobody has asked for a reply"
    assert play.journal.commands["b1"].fate == "stopped"
    assert play.journal.children["a"].outcome == "interrupted"
    assert play.journal.state.tainted == "a page"
    assert [one.stopped_by for one in (play.journal.commands["b1"], play.journal.children["a"])] == ["ana", "ana"]
    command, agent = hints(play)
    assert "'b1' is over: stopped. It was to stop: 'ana' asked for that." in command
    assert "(id 'a') has ended its task in the background: interrupted. It was to stop: 'ana' asked" in agent
    assert "Half a pane." in agent
    play.say("And now?", request_id="r2")
    play.run()
    assert [why for _, why in play.ends()] == ["completed", "completed"]


def test_one_is_stopped_by_its_id_and_the_other_works_on() -> None:
    play = busy()

    assert play.tell("stop_background", {"call_id": "a"}) == {"call_ids": ["a"], "already": []}
    play.run()

    assert play.passed_on == [("interrupt", ("a",))]
    assert not play.journal.commands["b1"].unwanted
    assert play.journal.children["a"].stopped_by == "somebody"


@pytest.mark.parametrize("named", ["b1", "a", None])
def test_twice_is_as_good_as_once_also_when_it_is_over(named: str | None) -> None:
    play = busy()
    first = play.tell("stop_background", {"call_id": named, "by": "ana"})
    seq = play.journal.seq
    assert isinstance(first, dict)
    assert play.tell("stop_background", {"call_id": named, "by": "ben"}) == {**first, "already": first["call_ids"]}
    assert play.journal.seq == seq
    play.run()
    over(play, "b1")
    play.hear_of("a", "Half a pane.", "interrupted")
    seq = play.journal.seq

    again = play.tell("stop_background", {"call_id": named, "by": "ben"})

    assert again == {"call_ids": [named] if named else [], "already": [named] if named else []}
    assert play.journal.seq == seq
    assert play.journal.children["a"].stopped_by in ("ana", "")


def test_what_the_model_has_stopped_is_stopped_already_and_told_of_no_further() -> None:
    play = lead([task("a")], [call("x", "AgentStop", id="a")], text("I wait."))

    assert play.tell("stop_background", {"by": "ana"}) == {"call_ids": ["a"], "already": ["a"]}
    play.hear_of("a", "Half a pane.", "interrupted")

    assert hints(play) == []
    assert play.tell("stop_background", {"call_id": "a"}) == (
        "call_id: 'a' is over (interrupted) and works no more in the background; nothing works there now"
    )


def test_an_unknown_call_and_one_that_is_over_are_refused_with_what_works() -> None:
    play = busy()
    works = "at work there: 'b1' (command), 'a' (sub-agent 'glazier')"

    assert play.tell("stop_background", {"call_id": "b9"}) == (
        f"call_id: nothing in the background has the id 'b9'; {works}"
    )
    over(
        play, "b1", e.ToolReturned(result=ToolResultBlock(id="b1", name="Bash", output="", state=ToolResultState.ERROR))
    )
    assert play.tell("stop_background", {"call_id": "b1"}) == (
        "call_id: 'b1' is over (ended) and works no more in the background; at work there: 'a' (sub-agent 'glazier')"
    )
    play.hear_of("a", "Glazed.")
    assert "'a' is over (success)" in str(play.tell("stop_background", {"call_id": "a"}))
    assert play.tell("stop_background") == {"call_ids": [], "already": []}


def test_a_task_that_the_reply_waits_for_is_not_in_the_background() -> None:
    play = Family([tasks("a glazier"), text("Done.")])
    play.say("Build")
    play.run()

    refused = str(play.tell("stop_background", {"call_id": "a"}))

    assert refused.startswith("call_id: 'a' is a task that the reply being made waits for; `interrupt` ends that reply")
    assert "session 'wall-7.a'" in refused
    assert play.tell("stop_background") == {"call_ids": [], "already": []}


def test_what_is_lost_before_it_has_stopped_is_told_as_that() -> None:
    play = busy()
    play.tell("stop_background", {"by": "ana"})
    play.run()

    for entry in (*lost(play.journal, "b1", "w"), *lost_child(play.journal, play.journal.children["a"], "terminated")):
        play.write(entry)
    assert play.run() == Idle()

    command, agent = hints(play)
    assert "'b1' is over: unknown. It was to stop: 'ana' asked for that." in command
    assert "Outcome unknown" in command
    assert "in the background: lost. It was to stop: 'ana' asked for that." in agent


def test_a_stop_is_carried_over_and_passed_on_there() -> None:
    play = busy()
    play.tell("stop_background", {"by": "ana"})
    play.continue_as_new()
    play.run()

    assert play.passed_on == [("interrupt", ("a",))]
    over(play, "b1")
    assert "'ana' asked for that" in hints(play)[-1]


def test_an_end_that_comes_before_the_stop_begins_no_reply_either() -> None:
    play = busy()
    play.tell("stop_background", {"by": "ana"})

    play.hear_of("a", "Glazed.")
    play.run()

    assert len(play.ends()) == 1
    assert "success. It was to stop: 'ana' asked for that.\nGlazed." in hints(play)[-1]


def test_of_whoever_asks_a_hundred_characters_are_told() -> None:
    play = busy()
    play.tell("stop_background", {"by": f"{'x' * 99}yz"})
    over(play, "b1")

    assert f"It was to stop: '{'x' * 99}y' asked for that." in hints(play)[-1]
