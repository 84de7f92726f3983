"""Tools found when needed: what stands in the head of a request, and which tool is found by which words."""

import json
from collections.abc import Sequence

import pytest

from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.tools.registry import Toolbox
from longhaul.activities.tools.session_tools import in_workflow_tools
from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.tool_index import (
    CALL_TOOL,
    FIND_TOOLS,
    as_said,
    best_of,
    direct,
    found,
    head_of,
    looked_up,
)
from tests.activities.mcp.nine_servers import listed, uses

MODEL = "anthropic:claude-haiku-4-5"
NINE = tuple(
    ToolDescriptor(
        name=f"mcp__{server}__{tool['name']}", description=tool["description"], input_schema=tool["inputSchema"]
    )
    for server, tools in listed().items()
    for tool in tools
)
LOOKUP = Toolbox(in_workflow_tools()).descriptors([FIND_TOOLS, CALL_TOOL])
READ = ToolDescriptor(name="Read", description="Reads a file.", read_only=True)


def tool(name: str, chars: int) -> ToolDescriptor:
    return ToolDescriptor(name=name, description="x" * chars, input_schema={"type": "object"})


def names(tools: Sequence[ToolDescriptor]) -> list[str]:
    return [each.name for each in tools]


async def test_with_nine_servers_a_hello_costs_a_tenth_of_all_schemas() -> None:
    counter = TokenCounter()
    await counter.prepare(MODEL, 60)

    head = head_of((READ, *LOOKUP, *NINE))

    assert names(head) == ["Read", FIND_TOOLS, CALL_TOOL]
    every, sent = (counter.count_fixed("", tools, MODEL) for tools in (NINE, head[1:]))
    assert sent <= every / 10, (sent, every)
    listed_names = [each.name.rpartition("__")[2] for each in NINE]
    assert all(f"- {name}" in head[1].description for name in listed_names)


@pytest.mark.parametrize("hundred", [0, 1])
def test_the_right_tool_is_among_the_answers_to_95_of_100_wishes(hundred: int) -> None:
    wishes = uses()[hundred]
    missed = [
        words
        for words, right in wishes
        if not {*right} & {each.name for part in best_of(words, NINE, 12) for each in part}
    ]

    assert len(wishes) == 100
    assert len(missed) <= 5, missed


def test_a_tool_that_is_named_comes_first_whatever_else_fits() -> None:
    assert found("mcp__slack__slack_get_users", NINE, 3)[0].name == "mcp__slack__slack_get_users"
    assert found("look at `drop-index`, please", NINE, 3)[0].name == "mcp__mongodb__drop-index"
    assert found("天气", NINE, 3) == []
    assert found("", NINE, 3) == []


def test_short_tools_are_sent_whole_and_the_lookup_is_not_offered() -> None:
    few = (READ, tool("mcp__shop__price", 1_000))

    assert looked_up(few) == ()
    assert head_of((*few, LOOKUP[0])) == few


def test_forty_thousand_characters_of_tools_are_sent_whole_and_more_are_not() -> None:
    assert looked_up([tool("mcp__shop__till", 39_900)]) == ()
    assert looked_up([tool("mcp__shop__till", 40_000)]) == ("mcp__shop__till",)


def test_of_each_tool_a_line_of_a_hundred_characters_is_listed() -> None:
    till = ToolDescriptor(name="mcp__shop__till", description=f"{'Open it ' * 40}. {'x' * 40_000}")

    (find, _) = head_of((*LOOKUP, till))

    line = find.description.splitlines()[-1].removeprefix("- till: ")
    assert (len(line), line[:8], line[-1]) == (100, "Open it ", "…")


def test_of_a_description_the_first_2000_characters_are_looked_through() -> None:
    def described(before: int) -> ToolDescriptor:
        return ToolDescriptor(name="till", description=f"{'x ' * before}lighthouse")

    assert found("lighthouse", [described(990)], 3)
    assert not found("lighthouse", [described(1_000)], 3)


def test_those_of_servers_are_looked_up_first_and_built_in_ones_never() -> None:
    servers, own = tool("mcp__shop__price", 40_000), tool("till", 1_000)

    assert looked_up((READ, own, servers)) == ("mcp__shop__price",)
    assert looked_up((READ, *LOOKUP, tool("till", 40_000), servers)) == ("till", "mcp__shop__price")


def test_the_list_keeps_its_share_whatever_a_server_says() -> None:
    for count, chars in ((200, 1_000), (1_000, 40), (900, 60_000 // 900)):
        tools = [tool(f"mcp__shop__{'till' * 6}_{number}", chars) for number in range(count)]

        head = head_of((*LOOKUP, *tools))

        text = head[0].description.removeprefix(LOOKUP[0].description)
        whole = sum(len(each.name) + len(each.description) + len(json.dumps(each.input_schema)) for each in tools)
        assert len(text) <= whole / 12 + 2, (count, chars)
        assert "mcp__shop__" in text


def test_an_answer_has_few_schemas_and_the_rest_by_name() -> None:
    tools = [tool(f"mcp__shop__till_{number}", 5_900) for number in range(9)]

    best, others = best_of("till", tools, 6)
    huge, _ = best_of("till", [tool("mcp__shop__till", 24_000)], 6)

    assert (len(best), len(others)) == (2, 4)
    assert len(huge) == 1, "one that is found is shown"
    small = [tool(f"mcp__shop__till_{number}", 10) for number in range(9)]
    assert len(best_of("till", small, 9)[0]) == 5


KNOWN = frozenset({"mcp__shop__price", FIND_TOOLS, CALL_TOOL}).__contains__


@pytest.mark.parametrize(
    ("said", "name", "arguments"),
    [
        ('{"tool": "mcp__shop__price", "arguments": {"article": "lämp"}}', "mcp__shop__price", '{"article": "lämp"}'),
        ('{"tool": "mcp__shop__price", "arguments": "{\\"a\\": 1}"}', "mcp__shop__price", '{"a": 1}'),
        ('{"tool": "mcp__shop__price"}', "mcp__shop__price", "{}"),
        ('{"tool": "mcp__shop__till", "arguments": {}}', CALL_TOOL, None),
        ('{"tool": "call_tool", "arguments": {}}', CALL_TOOL, None),
        ('{"tool": 7}', CALL_TOOL, None),
        ('{"tool": "mcp__shop__price", ', CALL_TOOL, None),
    ],
)
def test_a_call_by_name_becomes_the_call_itself(said: str, name: str, arguments: str | None) -> None:
    call = ToolCallBlock(id="c1", name=CALL_TOOL, input=said)

    made = direct(call, KNOWN)

    assert (made.name, made.input) == (name, said if arguments is None else arguments)
    assert made.indirect == (arguments is not None)
    assert as_said(made).name == CALL_TOOL
    assert direct(as_said(made), KNOWN) == made, "and back again, byte for byte"
    assert direct(call.model_copy(update={"name": "mcp__shop__price"}), KNOWN).indirect is False
