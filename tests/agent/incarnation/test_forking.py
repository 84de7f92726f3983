"""Going back to a step of a session, and what a copy begins with."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.incarnation.history import (
    KeptFiles,
    NoSuchStep,
    StepReducer,
    files_of_copy,
    spec_of_copy,
    state_of_copy,
)
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock, problem
from longhaul.agent.values.spec.workspace import Seal, Workspace
from longhaul.agent.values.subagents import BackgroundCommand
from tests.agent.play import Line, Play, calls, text


def played(*lines: Line) -> Play:
    play = Play(lines)
    play.say("Go", "r1")
    play.run()
    return play


def after_step(play: Play, step: int) -> SessionState:
    """The session after its `step`-th model call and all of its results."""
    reducer = StepReducer(step)
    next((entry for entry in play.journal.log if reducer.take(entry)), None)
    return reducer.session


def shown(context: list[Msg]) -> list[str]:
    return [
        message.get_text_content()
        or ",".join(f"call {call.id}" for call in message.get_tool_calls())
        or ",".join(f"{result.id}: {result.state.value}" for result in message.get_tool_results())
        for message in context
    ]


@pytest.mark.proves("X10")
def test_a_step_is_a_model_call_with_all_of_its_results() -> None:
    play = played(calls("a Look", "b Look"), calls("c Look"), text("Seen."))

    first, second, third = (state_of_copy(after_step(play, step)).context for step in (1, 2, 3))

    assert shown(first) == ["Go", "call a,call b", "a: success", "b: success"]
    assert shown(second) == [*shown(first), "call c", "c: success"]
    assert shown(third) == [*shown(second), "Seen."]


def test_the_last_step_is_the_state_that_was_lived() -> None:
    play = played(calls("a Look"), text("Seen."))

    assert state_of_copy(after_step(play, 2)).context == play.journal.state.context


@pytest.mark.parametrize(
    ("step", "sentence"), [(0, "steps count from 1"), (-2, "steps count"), (3, "made 2 model calls")]
)
def test_a_step_that_was_not_made_is_a_sentence(step: int, sentence: str) -> None:
    play = played(calls("a Look"), text("Seen."))

    with pytest.raises(NoSuchStep, match=sentence):
        after_step(play, step)


@pytest.mark.proves("X10")
def test_what_waits_is_cancelled_in_the_copy_and_stays_open_here() -> None:
    play = played(calls("p Paint", "o Order"), text("Done."))
    play.tell("observe", {"messages": "It rains."})

    state = state_of_copy(play.journal)

    assert shown(state.context) == ["Go", "call p,call o", "p: interrupted", "o: interrupted", "It rains."]
    assert problem(state.context) == ""
    assert state.reply_context is None
    assert play.journal.reply is not None
    assert list(play.journal.reply.calls) == ["p", "o"]


def test_a_later_edit_is_not_in_an_earlier_step() -> None:
    play = played(text("Forty."))
    state = play.journal.state.model_dump(mode="json")
    state["context"][1]["content"][0]["text"] = "Fifty."
    play.tell("replace_state", {"state": state})

    assert shown(state_of_copy(after_step(play, 1)).context) == ["Go", "Forty."]
    assert shown(state_of_copy(play.journal).context) == ["Go", "Fifty."]


def test_a_copy_of_a_sandboxed_session_stays_in_the_sandbox() -> None:
    session = played(text("Seen.")).journal
    sandbox = Workspace(root="/site", place="sandbox", seal=Seal(file_mb=5))
    # Refused where an agent is made; a copy does not rest on that.
    kept = sandbox.model_copy(update={"snapshots": True})
    session.spec = session.spec.model_copy(update={"workspace": kept})
    session.provided.workspace_root = "/site"

    copy = spec_of_copy(session, "a" * 40)

    assert (copy.workspace, copy.seal) == (kept, Seal(file_mb=5))
    assert files_of_copy(copy, "/site").startswith("it works in a sandbox too, in the same files")


def test_a_sandbox_with_snapshots_is_refused() -> None:
    with pytest.raises(ValueError, match="snapshots: there are none of a sandbox"):
        Workspace(root="/site", place="sandbox", snapshots=True)


def kept_in(*entries: e.AnyEntry) -> str:
    """The files as of before all of these."""
    files = KeptFiles()
    next((entry for entry in entries if files.take(entry)), None)
    return files.snapshot


def returned(snapshot: str) -> e.ToolReturned:
    return e.ToolReturned(result=ToolResultBlock(id=snapshot, name="Bash", output=""), snapshot=snapshot)


def test_the_files_of_a_step_are_those_from_before_the_first_call_behind_it() -> None:
    started = e.CommandStarted(command=BackgroundCommand(call_id="bg", shown="make"))
    later = e.CommandStarted(command=BackgroundCommand(call_id="b2", shown="make"))
    older = e.CommandEnded(call_id="b0", fate="ended", snapshot="older")

    assert kept_in(returned(""), returned("one"), returned("two")) == "one"
    assert (
        kept_in(started, returned("one"), older, e.CommandEnded(call_id="bg", fate="ended", snapshot="first"))
        == "first"
    )
    assert kept_in(started, returned("one"), e.CommandEnded(call_id="bg", fate="unknown"), returned("two")) == "one"
    assert kept_in(started, returned("one")) == "one"
    assert kept_in(returned("one"), later) == "one"
    assert kept_in(older) == ""
