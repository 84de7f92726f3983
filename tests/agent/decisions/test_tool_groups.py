"""Groups of tools: switched by the agent, kept in the state, and a call of one that is off says how to switch it on."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.agent import entries as e
from longhaul.agent.reducer.context_state import groups_sent
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.tool_groups import described, hidden
from tests.agent.play import SPEC, TOOLS, Play, calls, text

RESET = ToolDescriptor(
    name="reset_equipped_tools", inside=True, read_only=True, effect=Effect.READ, description="Chooses."
)
GROUPS = {
    "eyes": {"tools": ["Look", "Measure"], "description": "To look."},
    "hands": {"tools": ["Paint", "Look"], "description": "To work.", "active": True},
}


def spec() -> AgentSpec:
    return AgentSpec.model_validate(
        {**SPEC.model_dump(mode="json", exclude={"tools"}), "tools": ["Order", "Demolish"], "tool_groups": GROUPS}
    )


def resets(call_id: str, *names: str) -> list[ContentBlock]:
    return [ToolCallBlock(id=call_id, name="reset_equipped_tools", input=json.dumps({"to_activate": names}))]


def playing(*lines: list[ContentBlock], **more: Any) -> Play:
    play = Play([*lines, text("Done.")], spec=spec(), tools=(*TOOLS, RESET), **more)
    play.say("Go")
    play.run()
    return play


def unseen(play: Play) -> tuple[str, ...]:
    return hidden(play.journal.spec.tool_groups, play.journal.state.tool_context.activated_groups)


def test_a_session_begins_with_the_groups_that_are_active() -> None:
    play = playing()

    assert play.journal.state.tool_context.activated_groups == ("hands",)
    assert unseen(play) == ("Measure",)
    assert play.journal.spec.all_tools == ("Order", "Demolish", "Look", "Measure", "Paint", "reset_equipped_tools")


def test_a_call_of_a_group_that_is_off_says_how_to_switch_it_on() -> None:
    play = playing(calls("a Measure"), calls("b Fly"))

    (first, second) = play.results()
    assert first[1] == "error"
    assert "'Measure' is in the group 'eyes', which is not active" in first[2]
    assert "call reset_equipped_tools with to_activate ['hands', 'eyes'] first" in first[2]
    assert "Measure" not in second[2]


def test_the_named_groups_are_active_and_no_others() -> None:
    play = playing(resets("a", "eyes"), calls("b Look"), calls("c Paint"), keeps=True)

    assert play.results()[0][2] == "Active groups now:\n- eyes: Look, Measure"
    assert [state for _, state, _ in play.results()] == ["success", "success", "error"]
    assert unseen(play) == ("Paint",)
    play.continue_as_new()
    assert play.journal.state.tool_context.activated_groups == ("eyes",)


def test_tools_of_a_group_that_was_switched_off_are_sent_until_the_context_is_rewritten() -> None:
    play = playing(resets("a", "eyes"), calls("b Paint"), keeps=True)
    refused = play.results()[1]
    before = groups_sent(play.journal)
    play.continue_as_new()
    carried = groups_sent(play.journal)
    play.write(e.ContextCompressed(epoch=2, keep_from=len(play.journal.state.context)))

    assert (before, carried, groups_sent(play.journal)) == (("eyes", "hands"), ("eyes", "hands"), ("eyes",))
    assert refused[1] == "error"
    assert "'Paint' is in the group 'hands', which is not active" in refused[2]


def test_an_unknown_group_changes_nothing() -> None:
    play = playing(resets("a", "eyes", "ears"))

    assert play.results()[0][1:] == ("error", "to_activate: there is no group 'ears'; the groups are: eyes, hands")
    assert unseen(play) == ("Measure",)
    assert unseen(playing(resets("a"))) == ("Look", "Measure", "Paint")


def test_the_model_reads_which_groups_there_are() -> None:
    told = described(RESET, spec().tool_groups).description

    assert told == "Chooses.\n\nThe groups:\n- eyes: To look. (Look, Measure)\n- hands: To work. (Paint, Look)"
    assert described(TOOLS[0], spec().tool_groups) == TOOLS[0]


def test_a_tool_that_is_always_there_is_in_no_group_and_an_agent_without_groups_says_nothing_of_them() -> None:
    with pytest.raises(ValidationError, match=r"tool_groups\.a: 'Bash' is always there"):
        AgentSpec.model_validate({"tool_groups": {"a": {"tools": ["Bash"], "description": "x"}}})

    assert "tool_groups" not in AgentSpec().model_dump(mode="json")
    assert AgentSpec().all_tools == AgentSpec().tools
