"""Commands in the background, in memory: what may begin, and what is said of one that ended with another run."""

import json

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.background_commands import at_work, ended, is_wanted, lost, started, to_take_over, why_not
from longhaul.agent.decisions.continue_as_new import Load, history_is_long
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.steps import TakeOver
from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolResultBlock, ToolResultState
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.subagents import BackgroundCommand
from tests.agent.family import ABOVE, HOUSE, Family
from tests.agent.play import text

BASH = ToolDescriptor(name="Bash")


def open_call(call_id: str, **given: object) -> OpenCall:
    raw = json.dumps(given)
    return OpenCall(
        block=ToolCallBlock(id=call_id, name="Bash", input=raw), input=raw, analysis=CallAnalysis(), analyzed_at=0
    )


def running(*call_ids: str, sub_agent: bool = False) -> Journal:
    play = Family([text("Hm.")], spec=HOUSE, parent=ABOVE if sub_agent else None)
    play.say("Build")
    for call_id in call_ids:
        play.write(e.CommandStarted(command=BackgroundCommand(call_id=call_id, shown="make")))
    return play.journal


def test_only_a_true_word_of_bash_begins_one() -> None:
    assert is_wanted(open_call("a", command="make", run_in_background=True))
    assert not is_wanted(open_call("a", command="make", run_in_background=False))
    assert not is_wanted(open_call("a", command="make"))
    assert not is_wanted(
        OpenCall(block=ToolCallBlock(id="a", name="Bash", input="{"), input="{", analysis=CallAnalysis(), analyzed_at=0)
    )


def test_their_number_is_bounded_and_a_sub_agent_begins_none() -> None:
    call = open_call("z", command="make", run_in_background=True)
    below = running(sub_agent=True)

    play = Family([text("Hm.")], spec=HOUSE)
    play.say("Build")
    play.begin()
    for number in range(8):
        play.write(e.CommandStarted(command=BackgroundCommand(call_id=str(number), shown="make")))
    assert "8 commands are the most at a time" in why_not(call, BASH, play.journal)
    play.write(e.CommandEnded(call_id="3", fate="ended"))
    assert why_not(call, BASH, play.journal) == ""
    assert "a sub-agent's task is over" in why_not(call, BASH, below)


@pytest.mark.parametrize("offered", [(), ("BashOutput",), ("KillShell",), ("BashOutput", "KillShell")])
def test_a_model_is_told_of_the_tools_that_it_has(offered: tuple[str, ...]) -> None:
    play = Family([text("Hm.")], spec=HOUSE)
    play.say("Build")
    play.begin()
    play.journal.provided.tools = {name: ToolDescriptor(name=name) for name in offered}

    _, answer = started(play.journal, open_call("a", command="make", run_in_background=True))

    assert isinstance(answer, e.ToolReturned)
    assert {name for name in ("BashOutput", "KillShell") if name in answer.result.get_text()} == set(offered)


def test_what_an_earlier_run_has_started_is_lost_and_said_once() -> None:
    journal = running("a", "b")
    assert to_take_over(journal, Load(background=frozenset({"a", "b"}))) is None
    assert to_take_over(journal, Load(background=frozenset({"b"}))) == TakeOver("a")

    over, woken = lost(journal, "a", "longhaul/wall-7")
    assert over == e.CommandEnded(call_id="a", fate="unknown")
    assert isinstance(woken, e.RequestAccepted)
    assert "Outcome unknown" in str(woken.messages)


def test_one_that_was_to_stop_is_told_of_without_a_new_reply() -> None:
    journal = running("a", "b")
    result = ToolResultBlock(id="a", name="Bash", output="half", state=ToolResultState.ERROR)
    woken = ended(journal, "a", e.ToolReturned(result=result), "w")[1]
    journal.write(e.InterruptAsked(reply_id="r"), 5)
    quiet = ended(journal, "a", e.ToolReturned(result=result), "w")

    assert isinstance(woken, e.RequestAccepted)
    assert [type(entry) for entry in quiet] == [e.CommandEnded, e.Observed]
    assert quiet[0] == e.CommandEnded(call_id="a", fate="stopped")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (ToolResultState.ERROR, "stopped"),
        (ToolResultState.SUCCESS, "success"),
        (ToolResultState.UNKNOWN, "unknown"),
        (None, "stopped"),
    ],
)
def test_one_that_was_to_stop_is_told_by_what_became_of_it(state: ToolResultState | None, told: str) -> None:
    """One that had ended well by itself was not stopped, and of one that nobody saw stop nobody says so."""
    journal = running("a")
    journal.write(e.InterruptAsked(reply_id="r"), 5)
    outcome = None
    if state is not None:
        outcome = e.ToolReturned(result=ToolResultBlock(id="a", name="Bash", output="half", state=state))

    over, heard = ended(journal, "a", outcome, "w")

    assert isinstance(over, e.CommandEnded)
    assert over.fate == ("unknown" if told == "unknown" else "stopped")
    assert isinstance(heard, e.Observed)
    assert f"'a' is over: {told}. What follows" in str(heard.messages)


def test_one_whose_arguments_were_changed_is_told_with_which_ones_to_call_it() -> None:
    journal = running("a")
    unsettled = e.CallUnsettled(call_id="a", analysis=CallAnalysis(), reason="a middleware has changed the arguments")
    wanted = '{"command": "make -j2", "run_in_background": true}'

    def told(arguments: str | None) -> str:
        woken = ended(journal, "a", unsettled.model_copy(update={"input": arguments}), "w")[1]
        assert isinstance(woken, e.RequestAccepted)
        return str(woken.messages[0].content[0].model_dump()["hint"]).strip()

    assert told(wanted).endswith(f"Call it again with these arguments: {wanted}")
    assert told(None).endswith("Call it again.")
    assert told("x" * 10_001).endswith("call it again without run_in_background.")


def test_a_command_keeps_no_run_from_its_end() -> None:
    journal = running("a")

    assert history_is_long(journal, Load(events=5_000, background=frozenset({"a"})))
    assert [command.call_id for command in at_work(journal)] == ["a"]
