"""Tools whose names and schemas providers refuse are sent in a form that all of them take, and calls come back."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from longhaul.activities.models.requests.tool_definitions import sent_schema
from longhaul.activities.tools.registry import Toolbox
from longhaul.activities.tools.session_tools import in_workflow_tools
from longhaul.agent.values.conversation.messages import (
    Base64Source,
    DataBlock,
    Msg,
    TextBlock,
    ToolCallBlock,
    ToolResultState,
    URLSource,
    UserMsg,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.tool_index import CALL_TOOL, FIND_TOOLS
from tests.activities.models.sample_requests import PIXEL, WEATHER, Caller, called, returned
from tests.activities.models.wire import Answer, Wire, chat_says, claude_calls, claude_says, gpt_calls, response_says
from tests.activities.models.wire import response_turn as turn_of_responses

CLAUDE, RESPONSES, CHAT = "anthropic:claude-haiku-4-5", "openai:gpt-4.1", "openai-chat:qwen3"
APIS = (CLAUDE, RESPONSES, CHAT)
SAYS = {CLAUDE: claude_says, RESPONSES: response_says, CHAT: chat_says}

TAKEN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""By all: OpenAI and Bedrock allow these characters and this length, Gemini no digit in front, and Kimi no `_`."""
AS_THEY_ARE = ("weather", "own_", "mcp__github__create-issue", "Z" * 64)
ODD = (
    "m" * 82,
    "m" * 81 + "n",
    "files.read",
    "server/tool:v2",
    "two words",
    "7zip",
    "_own",
    "-x",
    "天气",
    "天气预报",
    "a\n",
    "",
)


def tools_in(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By their names as sent: their schemas."""
    about = [tool.get("function", tool) for tool in body["tools"]]
    return {tool["name"]: tool.get("input_schema") or tool["parameters"] for tool in about}


def calls_in(body: dict[str, Any]) -> list[str]:
    """Names of the calls that the record holds, as sent."""
    blocks = [
        block
        for message in body.get("messages", ())
        for block in (
            *(message["content"] if isinstance(message["content"], list) else ()),
            *message.get("tool_calls", ()),
        )
    ]
    named = [block.get("function", block) for block in (*blocks, *body.get("input", ()))]
    return [block["name"] for block in named if "name" in block]


def call_by(api: str, name: str) -> bytes:
    if api == RESPONSES:
        return turn_of_responses("sealed", "", ("c1", name, {"city": "Oslo"}))
    return {CLAUDE: claude_calls, CHAT: gpt_calls}[api]("c1", '{"city": "Oslo"}', name)


@pytest.mark.proves("F6")
@pytest.mark.parametrize("name", [*AS_THEY_ARE, *ODD])
@pytest.mark.parametrize("api", APIS)
async def test_a_tool_of_any_name_is_offered_called_and_found_again(
    wire: Wire, by_wire: Caller, api: str, name: str
) -> None:
    tools = [WEATHER, WEATHER.model_copy(update={"name": name})] if name != "weather" else [WEATHER]
    wire.answers.append(Answer(SAYS[api]("ok")))
    await by_wire.call(api, "Hello", tools=tools)
    sent = list(tools_in(wire.bodies[0]))[-1]
    wire.answers += [Answer(call_by(api, sent)), Answer(SAYS[api]("ok")), Answer(SAYS[api]("ok"))]

    reply = await by_wire.call(api, "Hello", tools=tools)
    record = [UserMsg("user", "Hello"), called("c1", name, "{}"), returned("c1", name, "sun")]
    await by_wire.call(api, record, tools=tools)
    await by_wire.call(api, record, tools=[WEATHER])

    assert TAKEN.fullmatch(sent)
    assert (sent == name) == (name in AS_THEY_ARE)
    assert [call.name for call in reply.content if isinstance(call, ToolCallBlock)] == [name]
    assert {delta.tool_name for delta in by_wire.deltas if delta.kind == "tool_call"} == {name}
    assert [calls_in(body) for body in wire.bodies[2:]] == [[sent], [sent]]  # and so the cache finds it


async def test_no_two_tools_have_one_name(wire: Wire, by_wire: Caller) -> None:
    names = (*AS_THEY_ARE, *ODD)
    wire.answers.append(Answer(chat_says("ok")))

    await by_wire.call(CHAT, "Hello", tools=[WEATHER.model_copy(update={"name": name}) for name in names])

    assert len(tools_in(wire.bodies[0])) == len(names)


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
SCHEMAS: dict[str, tuple[dict[str, Any], list[str], list[str], list[dict[str, Any]]]] = {
    "as it is": (WEATHER.input_schema, ["city"], ["city"], [{"city": "Oslo"}]),
    "nothing": ({}, [], [], [{}]),
    "anyOf, of what is required": (
        {
            "type": "object",
            "properties": {"route": TEXT, "file": TEXT, "deep": NUMBER},
            "required": ["deep"],
            "anyOf": [{"required": ["route"]}, {"required": ["file"]}],
        },
        ["deep", "file", "route"],
        ["deep"],
        [{"deep": 1, "route": "/"}, {"deep": 1, "file": "f"}],
    ),
    "anyOf, of objects": (
        {
            "anyOf": [
                {"type": "object", "properties": {"id": NUMBER, "why": TEXT}, "required": ["id", "why"]},
                {"type": "object", "properties": {"id": TEXT}, "required": ["id"]},
            ]
        },
        ["id", "why"],
        ["id"],
        [{"id": 7, "why": "so"}, {"id": "seven"}],
    ),
    "oneOf, of what it refers to": (
        {
            "oneOf": [{"$ref": "#/$defs/ByName"}, {"$ref": "#/$defs/ByPlace"}],
            "$defs": {
                "ByName": {"type": "object", "properties": {"name": TEXT}, "required": ["name"]},
                "ByPlace": {"type": "object", "properties": {"at": {"$ref": "#/$defs/Place"}}, "required": ["at"]},
                "Place": {"type": "object", "properties": {"x": NUMBER}},
            },
        },
        ["at", "name"],
        [],
        [{"name": "n"}, {"at": {"x": 3}}],
    ),
    "allOf": (
        {
            "allOf": [
                {"properties": {"a": TEXT}, "required": ["a"]},
                {"properties": {"b": TEXT}, "anyOf": [{"required": ["b"]}, {"required": []}]},
            ]
        },
        ["a", "b"],
        ["a"],
        [{"a": "x"}, {"a": "x", "b": "y"}],
    ),
    "a reference": (
        {"$ref": "#/definitions/Ask", "definitions": {"Ask": {"properties": {"q": TEXT}, "required": ["q"]}}},
        ["q"],
        ["q"],
        [{"q": "?"}],
    ),
    "null too": ({"type": ["object", "null"], "properties": {"q": TEXT}}, ["q"], [], [{}, {"q": "?"}]),
    "not": (
        {"type": "object", "properties": {"q": TEXT}, "not": {"required": ["r"]}},
        ["q"],
        [],
        [{"q": "?"}],
    ),
    "enum": ({"type": "object", "properties": {"q": TEXT}, "enum": [{"q": "a"}]}, ["q"], [], [{"q": "a"}]),
    "nothing that can be read": (
        {"anyOf": 7, "allOf": [3, None], "oneOf": [], "required": "x", "properties": [], "$ref": "https://x.example"},
        [],
        [],
        [],
    ),
}


@pytest.mark.proves("F6")
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("api", APIS)
async def test_a_schema_of_any_kind_is_sent_as_one_object(wire: Wire, by_wire: Caller, api: str, kind: str) -> None:
    schema, properties, required, accepted = SCHEMAS[kind]
    wire.answers.append(Answer(SAYS[api]("ok")))

    await by_wire.call(api, "Hello", tools=[ToolDescriptor(name="ask", description="Ask.", input_schema=schema)])

    sent = tools_in(wire.bodies[0])["ask"]
    assert not {"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"} & set(sent)
    assert sent["type"] == "object"
    assert sorted(sent["properties"]) == properties
    assert sorted(sent.get("required", ())) == required
    for arguments in accepted:
        Draft202012Validator(schema).validate(arguments)
        Draft202012Validator(sent).validate(arguments)


def test_the_model_reads_what_goes_together() -> None:
    schema, *_ = SCHEMAS["anyOf, of what is required"]

    told = sent_schema({**schema, "description": "Look it up."})

    assert told["description"] == "Look it up. Give one of: `route`; `file`."


def test_a_schema_that_refers_to_itself_in_many_ways_ends() -> None:
    names = [f"d{number}" for number in range(30)]
    everywhere = [{"$ref": f"#/$defs/{name}"} for name in names]
    schema = {"anyOf": everywhere, "$defs": {name: {"anyOf": everywhere, "properties": {name: TEXT}} for name in names}}

    assert set(sent_schema(schema)["properties"]) <= set(names)


PAPER = DataBlock(source=URLSource(url="https://example.org/paper.pdf", media_type="application/pdf"), name="paper.pdf")
PICTURE = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))


async def test_a_pdf_by_its_address_goes_where_the_api_takes_one(wire: Wire, by_wire: Caller) -> None:
    for api in APIS:
        wire.answers.append(Answer(SAYS[api]("ok")))
        await by_wire.call(api, [UserMsg("user", [PAPER])])

    claude, responses, chat = wire.bodies
    source = {"type": "url", "url": "https://example.org/paper.pdf"}
    assert claude["messages"][0]["content"][0]["source"] == source
    assert responses["input"][0]["content"] == [{"type": "input_file", "file_url": "https://example.org/paper.pdf"}]
    assert "can't be shown to this model" in chat["messages"][0]["content"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("shown", [PICTURE, PAPER], ids=["picture", "paper"])
async def test_a_failed_result_says_so_and_keeps_what_it_shows(
    wire: Wire, by_wire: Caller, api: str, shown: DataBlock
) -> None:
    failed = returned("c1", "shot", (TextBlock(text="No window"), shown), ToolResultState.ERROR)
    record: list[Msg] = [UserMsg("user", "Go"), called("c1", "shot", "{}"), failed]
    wire.answers.append(Answer(SAYS[api]("ok")))

    await by_wire.call(api, record)

    body = json.dumps(wire.bodies[0])
    assert "[error]" in body
    assert "No window" in body
    assert "is_error" not in body  # Anthropic: "all content must be type text if is_error"
    if api != CHAT or shown is PICTURE:
        assert (PIXEL if shown is PICTURE else "https://example.org/paper.pdf") in body


@pytest.mark.parametrize("api", APIS)
async def test_of_many_tools_the_beginning_of_a_request_stays_while_some_are_found_and_called(
    wire: Wire, by_wire: Caller, api: str
) -> None:
    priced = WEATHER.model_copy(update={"name": "mcp__shop__price", "description": "The price of an article. " * 2_000})
    tools = [WEATHER, *Toolbox(in_workflow_tools()).descriptors([FIND_TOOLS, CALL_TOOL]), priced]
    said = {"tool": priced.name, "arguments": {"city": "Oslo"}}
    by_name = {RESPONSES: turn_of_responses("sealed", "", ("c2", CALL_TOOL, said))}
    calling = {CLAUDE: claude_calls, CHAT: gpt_calls}
    answer = by_name.get(api) or calling[api]("c2", json.dumps(said), CALL_TOOL)
    wire.answers += [Answer(SAYS[api]("ok")), Answer(answer), Answer(SAYS[api]("ok"))]
    record = [UserMsg("user", "Hello")]

    await by_wire.call(api, record, tools=tools)
    record += [called("c1", FIND_TOOLS, '{"query": "price"}'), returned("c1", FIND_TOOLS, "mcp__shop__price")]
    reply = await by_wire.call(api, record, tools=tools)
    (call,) = (block for block in reply.content if isinstance(block, ToolCallBlock))
    made = Msg(name="lamp", role="assistant", content=(call,))
    await by_wire.call(api, [*record, made, returned("c2", priced.name, "7")], tools=tools)

    assert (call.name, json.loads(call.input)) == (priced.name, {"city": "Oslo"})
    assert [list(tools_in(body)) for body in wire.bodies] == [["weather", FIND_TOOLS, CALL_TOOL]] * 3
    texts = [json.dumps(body["tools"]) for body in wire.bodies]
    assert texts[0] == texts[1] == texts[2]
    assert len(texts[0]) < 5_000
    assert calls_in(wire.bodies[2]) == [FIND_TOOLS, CALL_TOOL]
    assert json.dumps(said)[1:-1].replace('"', "") in json.dumps(wire.bodies[2]).replace("\\", "").replace('"', "")
