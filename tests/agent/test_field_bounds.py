"""Bounds of what may be given, by their numbers: so much is taken and one more is not, or so much is kept and shown."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.agent.decisions.session_tools.notebook_tools import CREATE, FINISH_SUBTASK
from longhaul.agent.decisions.session_tools.waiting_tools import SEND_TOOL
from longhaul.agent.decisions.subagent_start import GivenTask
from longhaul.agent.entries import LeftOut, ProviderOutage, Repair
from longhaul.agent.hub_membership import HubState, LeaveHub, Say, received
from longhaul.agent.operations.bodies import Notify, Unusable
from longhaul.agent.operations.peer_operations import HubSays
from longhaul.agent.permission.rulebook import BadRule, check_count, check_room, check_rule
from longhaul.agent.plain.json_schemas import unusable, wrong_places
from longhaul.agent.plain.text import did_you_mean, nearest
from longhaul.agent.reducer import subagent_state
from longhaul.agent.values.budget import Amount, Budget, Price, bounded
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.hubs import HubWord
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec, ContextConfig, ModelConfig
from longhaul.agent.values.spec.knowledge import shortened
from longhaul.agent.values.spec.mcp import HttpMCPConfig
from longhaul.agent.values.spec.profiles import ModelProfile
from longhaul.agent.values.spec.workspace import Seal, Workspace
from longhaul.agent.values.subagents import BackgroundCommand, Child
from longhaul.agent.views.events import repaired
from longhaul.agent.views.session_views import MemberSaid
from longhaul.agent.views.transcript import page
from tests.agent.play import Play

Check = Callable[[int], Any]


def agents_within(levels: int) -> AgentSpec:
    spec = AgentSpec(name="lowest")
    for level in range(levels):
        spec = AgentSpec(name=f"over-{level}", agents={spec.name: spec.model_copy(update={"description": "d"})})
    return spec


def agents_beside(number: int) -> AgentSpec:
    names = [f"a{each}" for each in range(number)]
    return AgentSpec(agents={name: AgentSpec(name=name, description="d") for name in names})


def profile(**fields: Any) -> ModelProfile:
    return ModelProfile(provider="openai-chat", model="m", **fields)


def hub_says(words: int) -> HubSays:
    word = HubWord(number=2, by="ben", message=UserMsg("ben", "x"))
    return HubSays(hub="h", incarnation="l", name="n", member="ana", joined=1, through=2, words=(word,) * words)


GIVEN: dict[str, tuple[int, Check]] = {
    "name of an event": (200, lambda size: Notify(event="e" * size)),
    "what comes with an event": (10_000, lambda size: Notify(event="e", payload="x" * size)),
    "task of a sub-agent": (30_000, lambda size: GivenTask(agent="a", task="x" * size)),
    "sub-agents of an agent": (20, agents_beside),
    "levels of sub-agents": (3, agents_within),
    "members in one operation": (50, lambda size: LeaveHub(members=tuple(f"m{each}" for each in range(size)))),
    "tokens of a budget": (10**15, lambda size: Budget(max_tokens=size)),
    "nanos that a sub-agent reports": (10**18, lambda size: bounded(Amount(nanos=size))),
    "tokens of an answer": (10**15, lambda size: ModelConfig(max_output_tokens=size)),
    "tokens of thoughts": (10**15, lambda size: ModelConfig(thinking_budget_tokens=size)),
    "tokens of a window": (10**15, lambda size: ModelConfig(context_length=size)),
    "tokens of an answer of a profile": (10**15, lambda size: profile(max_output_tokens=size)),
    "tokens of a window of a profile": (10**15, lambda size: profile(context_length=size)),
    "tokens of a result": (10**15, lambda size: ContextConfig(tool_result_limit=size)),
    "seconds of a model call": (10**11, lambda size: ModelConfig(call_timeout_seconds=size)),
    "seconds of silence": (10**11, lambda size: ModelConfig(silence_seconds=size)),
    "address of an MCP server": (1_000, lambda size: HttpMCPConfig(url="https://quay.test/" + "q" * (size - 18))),
    "address of a model": (10_000, lambda size: ModelConfig(base_url="h" * size)),
    "seconds of idleness": (10**11, lambda size: AgentSpec(idle_close_seconds=size)),
    "seconds of a task": (10**9, lambda size: AgentSpec(task_seconds=size)),
    "price of a million tokens": (10**12, lambda size: Price(input=size, output=0)),
    "memory of a sandbox": (10**12, lambda size: Seal(memory_mb=size)),
    "processes of a sandbox": (10**12, lambda size: Seal(processes=size)),
    "a file of a sandbox": (10**12, lambda size: Seal(file_mb=size)),
    "workspace of a sandbox": (10**12, lambda size: Seal(workspace_mb=size)),
    "name of a host": (100, lambda size: Workspace(root="/w", place="local", host="h" * size)),
    "stop words of a profile": (4, lambda size: profile(stop=tuple(f"s{each}" for each in range(size)))),
    "body of a profile": (20_000, lambda size: profile(extra_body={"x": "y" * (size - len('{"x": ""}'))})),
    "time of a next try": (253_402_300_799_000, lambda at: ProviderOutage(attempt=1, next_at=at, until=0)),
    "name of whoever sends an operation": (1_000, lambda size: Notify(event="e", by="b" * size)),
    "words of a hub in one operation": (200, hub_says),
    "words of a member of a hub": (
        80_000,
        lambda size: MemberSaid(workflow_id="w", incarnation="l", reply_id="r", text="x" * size),
    ),
    "pattern of a rule": (1_000, lambda size: check_rule(PermissionRule(tool_name="Read", rule_content="x" * size))),
}


@pytest.mark.parametrize("what", GIVEN)
def test_so_much_is_taken_and_no_more(what: str) -> None:
    most, check = GIVEN[what]
    check(most)

    with pytest.raises((ValueError, BadRule)):
        check(most + 1)


FREE = {"custom_agent_config"}
"""Read by nobody but the code of an operator's own kind."""
INSIDE = {"remind_after", "escalate_after", "expire_after"}
"""Bounded behind the text that may stand in their place, which the schema does not show."""


def unbounded(schema: Any, field: str = "") -> Iterator[str]:
    match schema:
        case {"type": "integer" | "number"} if not {"maximum", "exclusiveMaximum"} & schema.keys():
            yield field
        case {"properties": dict(fields)}:
            for name, inner in fields.items():
                yield from unbounded(inner, name)
            yield from unbounded({key: value for key, value in schema.items() if key != "properties"}, field)
        case dict():
            for inner in schema.values():
                yield from unbounded(inner, field)
        case list():
            for inner in schema:
                yield from unbounded(inner, field)


def test_each_number_of_an_agent_has_an_upper_bound() -> None:
    """A span of time without one ends a session for good: the clock that is to wait so long raises each time."""
    assert {*unbounded(AgentSpec.model_json_schema())} == FREE | INSIDE
    assert {*unbounded(Budget.model_json_schema())} == set()


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_number_that_could_not_be_read_back_is_refused(number: float) -> None:
    for field in ({"custom_agent_config": {"step": number}}, {"model_config": {"call_timeout_seconds": number}}):
        with pytest.raises(ValidationError, match="finite"):
            AgentSpec.model_validate(field)


def test_a_word_to_a_sub_agent_has_10000_characters() -> None:
    assert SEND_TOOL.input_schema["properties"]["message"]["maxLength"] == 10_000


def test_of_a_long_list_of_names_twenty_are_listed_and_a_hundred_characters_of_a_name_are_compared() -> None:
    listed = did_you_mean("zzz", [f"aa{number:02}" for number in range(25)])

    assert listed.endswith("aa19 and 5 more")
    assert nearest("y" * 100 + "x" * 300, ["y" * 100]) == "y" * 100


def test_ten_places_that_do_not_fit_are_told_and_a_schema_nests_to_a_hundred_levels() -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(101):
        deep = {"type": "array", "items": deep}

    assert len(wrong_places(list(range(11)), schema)) == 10
    assert "nests deeper" in unusable(deep)
    assert unusable(deep["items"]) == ""


def test_of_what_is_written_down_of_a_reply_1900_characters_are_kept() -> None:
    assert shortened("x" * 1_900) == "x" * 1_900
    assert shortened("x" * 1_901) == "x" * 950 + " […] " + "x" * 950


def test_a_page_has_at_most_2000_items() -> None:
    assert len(page([UserMsg("ana", "x", id="m")] * 2_001, 0, 10**9)) == 2_000


def test_of_what_a_context_was_sent_without_twenty_parts_are_told() -> None:
    parts = tuple(LeftOut(message=0, block=number, words=f"part {number}") for number in range(21))

    assert len(repaired(Repair(left_out=parts)).value["left_out"]) == 20


def test_two_hundred_rules_are_taken_at_once_and_together_200_kb() -> None:
    check_count("add", 200)
    long = tuple(PermissionRule(tool_name=f"T{number}", reason="x" * 1_900) for number in range(104))
    check_room((), long[:102], 0)

    with pytest.raises(BadRule, match="more than 200 rules"):
        check_count("add", 201)
    with pytest.raises(BadRule, match="more than 200 kB"):
        check_room((), long, 0)


def test_of_what_has_ended_50_commands_and_256_sub_agents_are_kept() -> None:
    session = Play([]).journal
    for number in range(257):
        subagent_state._keep_command(session, BackgroundCommand(call_id=f"c{number}", shown="ls", fate="ended"))  # noqa: SLF001
        subagent_state._keep_child(session, Child(call_id=f"c{number}", agent="a", session_id="s", outcome="success"))  # noqa: SLF001

    assert (len(session.commands), len(session.children)) == (50, 256)
    with pytest.raises(ValidationError, match="less than or equal to 256"):
        AgentSpec(model="scripted:none", max_children=257)


def test_what_is_said_at_once_in_a_hub_has_at_most_200_kb() -> None:
    def say(size: int) -> None:
        received(HubState(name="jury"), Say(messages=(UserMsg("ana", "x" * size),), request_id="r"))

    say(199_000)
    with pytest.raises(Unusable, match="they have 201 kB, and the most is 200 kB"):
        say(201_000)


def test_a_plan_is_named_in_200_characters_told_in_4000_and_a_subtask_ended_in_1000() -> None:
    plan, subtask = CREATE.input_schema["properties"], FINISH_SUBTASK.input_schema["properties"]

    assert (plan["name"]["maxLength"], plan["description"]["maxLength"]) == (200, 4_000)
    assert subtask["subtask_outcome"]["maxLength"] == 1_000
