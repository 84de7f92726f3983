"""`find_tools` and `call_tool`, which the session answers itself: what is found is kept, and told again where a
compression has dropped it."""

import json

from longhaul.agent.values.conversation.messages import ContentBlock, HintBlock, ToolCallBlock
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.spec.agent_spec import AgentSpec, ContextConfig
from longhaul.agent.values.tool_index import CALL_TOOL, FIND_TOOLS, schema_text
from tests.agent.play import SPEC, TOOLS, Play, text

LOOKUP = tuple(
    ToolDescriptor(name=name, inside=True, read_only=True, effect=Effect.READ) for name in (FIND_TOOLS, CALL_TOOL)
)
PRICE = ToolDescriptor(name="mcp__shop__price", description="Tells what an article costs.")
TILL = ToolDescriptor(name="mcp__shop__till", description=f"Opens the till. {'x' * 40_000}")


def finds(call_id: str, query: str) -> list[ContentBlock]:
    return [ToolCallBlock(id=call_id, name=FIND_TOOLS, input=json.dumps({"query": query}))]


def playing(*lines: list[ContentBlock], spec: AgentSpec = SPEC, window: int = 0) -> Play:
    play = Play([*lines, text("Done.")], spec=spec, tools=(*TOOLS, *LOOKUP, PRICE, TILL), window=window)
    play.say("Go")
    play.run()
    return play


def hints(play: Play) -> list[str]:
    blocks = (block for message in play.journal.state.context for block in message.content)
    return [block.hint for block in blocks if isinstance(block, HintBlock) and isinstance(block.hint, str)]


def test_what_is_found_is_told_with_its_schema_and_kept() -> None:
    play = playing(finds("a", "what does it cost"), finds("b", "fly"), finds("c", "mcp__shop__price"))

    (price, nothing, again) = play.results()
    assert price[1] == "success"
    assert schema_text([PRICE]) in price[2]
    assert (nothing[1], nothing[2].partition(";")[0]) == ("error", "no tool fits 'fly'")
    assert again[2].startswith(price[2])
    assert play.journal.state.tool_context.found == ("mcp__shop__price",)


def test_a_tool_that_stands_in_the_request_or_is_switched_off_is_not_found() -> None:
    groups = {"shop": {"tools": ["mcp__shop__price"], "description": "To sell."}}
    spec = AgentSpec.model_validate({**SPEC.model_dump(mode="json"), "tool_groups": groups})

    play = playing(finds("a", "mcp__shop__price"), finds("b", "Paint"), spec=spec)

    (price, paint) = play.results()
    assert (price[1], PRICE.description in price[2], TILL.name in price[2]) == ("success", False, True)
    assert paint[1] == "error"


def test_a_call_that_names_no_tool_says_so() -> None:
    play = playing(
        [ToolCallBlock(id="a", name=CALL_TOOL, input='{"tool": "mcp__shop__fly", "arguments": {}}')],
        [ToolCallBlock(id="b", name=CALL_TOOL, input="{}")],
    )

    assert [said for _, _, said in play.results()] == [
        f"tool: there is no tool 'mcp__shop__fly' to call; look it up by {FIND_TOOLS}",
        "tool: the name of a tool is missing",
    ]


def test_a_compression_that_drops_schemas_is_followed_by_them() -> None:
    spec = SPEC.model_copy(update={"context_config": ContextConfig(trigger_ratio=0.1, reserve_ratio=0.01)})
    play = playing(finds("a", "what does it cost"), text("x" * 4_000), spec=spec, window=10_000)
    play.say("On", "r2")
    play.run()

    assert play.journal.compaction.tries == 1
    assert hints(play) == [f"Tools that you have looked up, for {CALL_TOOL}:\n{schema_text([PRICE])}"]


def many(number: int) -> tuple[ToolDescriptor, ...]:
    return tuple(ToolDescriptor(name=f"mcp__shop__lamp_{at}", description="x" * 1_000) for at in range(number))


def test_a_query_has_a_thousand_characters_and_twelve_tools_are_named() -> None:
    play = Play([finds("a", "lamp"), finds("b", "x" * 1_001), text("Done.")], tools=(*TOOLS, *LOOKUP, *many(60)))
    play.say("Go")
    play.run()

    (named, longer) = play.results()
    assert named[2].count("mcp__shop__lamp_") == 12
    assert (longer[1], "query" in longer[2]) == ("error", True)


def test_the_fifty_tools_that_were_found_last_are_kept() -> None:
    lines = [finds(f"c{at}", " ".join(f"lamp_{at * 5 + each}" for each in range(5))) for at in range(11)]
    play = Play([*lines, text("Done.")], tools=(*TOOLS, *LOOKUP, *many(60)))
    play.say("Go")
    play.run()

    kept = play.journal.state.tool_context.found
    assert (len(kept), kept[0], kept[-1]) == (50, "mcp__shop__lamp_5", "mcp__shop__lamp_54")
