"""What an MCP server says of its tools with a call: which connection it came through, and that they have changed."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decision import BEHAVIOUR
from longhaul.agent.decisions.model_turn import with_tools_from_before
from longhaul.agent.steps import Prepare, Think
from longhaul.agent.values.conversation.messages import HintBlock, ToolResultBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.spec.mcp import CONNECTION, TOOLS_CHANGED, holder_of
from tests.agent.play import TOOLS, Play, calls, text

GROW = ToolDescriptor(name="mcp__harbour__grow", read_only=True, effect=Effect.READ)
LOOK = ToolDescriptor(name="mcp__quay__look", read_only=True, effect=Effect.READ)


def returned(call_id: str, tool: str, **metadata: object) -> list[e.CallOutcome]:
    return [e.ToolReturned(result=ToolResultBlock(id=call_id, name=tool, output="ok", metadata=metadata))]


def grown() -> Play:
    """A reply in which the first call's server says that it offers other tools."""
    play = Play(
        [calls("a mcp__harbour__grow"), calls("b mcp__quay__look"), text("Done."), text("Again."), text("Enough.")],
        tools=(*TOOLS, GROW, LOOK),
        outcomes={
            "a": returned("a", GROW.name, **{TOOLS_CHANGED: True, CONNECTION: "w1.c1"}),
            "b": returned("b", LOOK.name, **{CONNECTION: "w2.c9"}),
        },
    )
    play.say("Go")
    return play


def test_the_tools_are_looked_at_again_once_before_the_model_is_asked_again() -> None:
    play = grown()
    play.run()

    taken = [type(step) for step in play.steps if isinstance(step, Prepare | Think)]
    assert taken == [Prepare, Think, Prepare, Think, Think]
    assert play.journal.provided.outdated == ()


def test_a_reply_goes_by_the_rules_of_the_worker_that_prepared_it_whoever_goes_on_with_it() -> None:
    """So the number stands in the state, for the branch that a later rule asks it for."""
    play = grown()
    play.run(hold=True)
    play.behaviour = BEHAVIOUR + 1  # a worker of a newer build
    play.continue_as_new()
    play.end_call("a")
    play.run()
    went_on, lists = play.journal.state.behaviour, sum(isinstance(step, Prepare) for step in play.steps)
    play.say("Again", "r2")
    play.run()
    began = play.journal.state.behaviour
    play.behaviour = BEHAVIOUR  # and one of the older build, which is brought back
    play.say("And again", "r3")
    play.run()

    assert lists == 2
    assert (went_on, began, play.journal.state.behaviour) == (BEHAVIOUR, BEHAVIOUR + 1, BEHAVIOUR)


def test_what_is_found_in_mid_reply_changes_the_tools_and_not_the_rules_of_the_reply() -> None:
    play = grown()
    play.run()
    play.say("Again", "r2")
    play.begin()
    play.complete()
    new = ToolDescriptor(name="mcp__harbour__grown")
    prepared = e.Prepared(
        behaviour=BEHAVIOUR + 1, spec_digest="s2", tools=(new,), workspace_root="/else", workspace_nonce="x"
    )
    play.write(prepared)

    assert play.journal.state.behaviour == BEHAVIOUR
    assert (play.journal.provided.workspace_root, play.journal.provided.spec_digest) == ("/site", "s2")
    assert [*play.journal.provided.tools] == ["mcp__harbour__grown"]


def in_its_midst() -> Play:
    play = grown()
    play.run(hold=True)
    play.end_call("a")
    return play


def hints(play: Play) -> list[str]:
    told = [block for message in play.journal.state.context for block in message.content]
    return [str(block.hint) for block in told if isinstance(block, HintBlock)]


def test_a_reply_whose_tools_cannot_be_listed_again_keeps_them_and_is_told_once() -> None:
    play = in_its_midst()
    before = play.journal.provided.tools
    for _ in range(2):
        play.write(with_tools_from_before(play.journal, "the MCP server 'harbour' can't be reached."))

    assert play.journal.provided.tools == before
    assert play.journal.provided.outdated == ()
    assert hints(play) == [
        "The tools could not be listed again, and are those from before: the MCP server 'harbour' can't be reached."
    ]


@pytest.mark.parametrize("continues_as_new", [False, True])
def test_the_state_holds_the_connection_of_each_server(continues_as_new: bool) -> None:
    play = grown()
    play.run()
    if continues_as_new:
        play.continue_as_new()

    assert play.journal.state.tool_context.mcp_connections == {"harbour": "w1.c1", "quay": "w2.c9"}


@pytest.mark.parametrize(
    ("connection", "holder"),
    [
        ("0123456789ab.c7", "0123456789ab"),
        ("c7", ""),
        (None, ""),
        ("x" * 3_000 + ".1", ""),
        ("0123456789ab~other.c7", ""),
        ("0123456789AB.c7", ""),
    ],
)
def test_a_connection_names_a_worker_or_nobody(connection: str | None, holder: str) -> None:
    """The name may come with a state that somebody has sent, and a queue is named after it."""
    assert holder_of(connection) == holder
