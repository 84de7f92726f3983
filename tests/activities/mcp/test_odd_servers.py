"""Servers as they are: what is wrong with one tool is noted with it, and costs no other tool anything."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.tool import Tool
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock
from tests.activities.mcp.server import PIXEL
from tests.activities.mcp.serving import servers, tools_of, used
from tests.activities.tools.calls import place_at, use
from tests.e2e.cli.test_mcp_list import listed

SOUND = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
LEFT_OUT = {"type": "object", "description": "The server's schema of the arguments can't be shown."}
FIRST, LAST = (
    {"name": "first", "description": "It is sound.", "inputSchema": SOUND},
    {
        "name": "last",
        "description": "So is this.",
        "inputSchema": SOUND,
    },
)


def with_schema(schema: Any) -> dict[str, Any]:
    return {"name": "odd", "description": "Odd.", "inputSchema": schema}


def with_property(schema: Any) -> dict[str, Any]:
    return with_schema({"type": "object", "properties": {"a": schema}})


ODD_TOOLS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "no inputSchema": ({"name": "odd", "description": "Odd."}, "it has no inputSchema", {"type": "object"}),
    "inputSchema is null": (with_schema(None), "it has no inputSchema", {"type": "object"}),
    "inputSchema is a text": (with_schema("none"), "its inputSchema is no JSON Schema", {"type": "object"}),
    "inputSchema is empty": (with_schema({}), "has no type; it is taken as 'object'", {"type": "object"}),
    "type is missing": (with_schema({"properties": SOUND["properties"]}), "has no type",
                        {"type": "object", "properties": SOUND["properties"]}),
    "type is misspelt": (with_schema({**SOUND, "type": "Objekt"}), "has the type 'Objekt'", SOUND),
    "type is in capitals": (with_schema({**SOUND, "type": "OBJECT"}), "has the type 'OBJECT'", SOUND),
    "type is a list": (with_schema({**SOUND, "type": ["object", "null"]}), "has the type ['object', 'null']", SOUND),
    "type is a number": (with_schema({**SOUND, "type": 3}), "has the type 3", SOUND),
    "type is array": (with_schema({"type": "array"}), "type 'array', which arguments never have", {"type": "object"}),
    "a type of Python": (with_property({"type": "str"}), "the type 'str'",
                         {"type": "object", "properties": {"a": {"type": "string"}}}),
    "a type of nobody": (with_property({"type": "berth"}), "the type 'berth'",
                         {"type": "object", "properties": {"a": {}}}),
    "required is no list": (with_schema({**SOUND, "required": "text"}), "`required`",
                            {"type": "object", "properties": SOUND["properties"]}),
    "required is a yes": (with_property({"type": "string", "required": True}), "`required`",
                          {"type": "object", "properties": {"a": {"type": "string"}}}),
    "properties is a list": (with_schema({"type": "object", "properties": ["a"]}), "`properties`", {"type": "object"}),
    "a property is a text": (with_property("a text"), "a part of its inputSchema is no schema",
                             {"type": "object", "properties": {"a": {}}}),
    "additionalProperties is a text": (with_schema({**SOUND, "additionalProperties": "no"}), "`additionalProperties`",
                                       SOUND),
    "items is a list": (with_property({"type": "array", "items": [{"type": "string"}]}), "`items`",
                        {"type": "object", "properties": {"a": {"type": "array"}}}),
    "anyOf is empty": (with_property({"anyOf": []}), "`anyOf`", {"type": "object", "properties": {"a": {}}}),
    "enum of another type": (with_property({"type": "null", "enum": ["A", "B"]}), "an enum of other values",
                             {"type": "object", "properties": {"a": {"type": "null"}}}),
    "enum of a list's items": (with_property({"type": "array", "enum": [0, 1]}), "an enum of other values",
                               {"type": "object", "properties": {"a": {"type": "array"}}}),
    "enum with null": (with_property({"type": "string", "enum": ["A", None]}), "an enum of other values",
                       {"type": "object", "properties": {"a": {"type": "string", "enum": ["A"]}}}),
    "enum is a text": (with_property({"enum": "red"}), "`enum`", {"type": "object", "properties": {"a": {}}}),
    "a minimum that is none": (with_property({"minimum": "one"}), "can't be used (SchemaError)", LEFT_OUT),
    "a huge schema": (with_schema({**SOUND, "properties": {f"p{n}": {"type": "string"} for n in range(2_000)}}),
                      "more than 20,000 characters", LEFT_OUT),
    "description is null": ({**FIRST, "name": "odd", "description": None}, "it has no description", SOUND),
    "description is empty": ({**FIRST, "name": "odd", "description": ""}, "it has no description", SOUND),
    "description is a number": ({**FIRST, "name": "odd", "description": 3}, "its description is no text", SOUND),
    "annotations are odd": ({**FIRST, "name": "odd", "annotations": {"readOnlyHint": "maybe"}},
                            "its annotations can't be read", SOUND),
    "a note of the server's own": ({"name": "odd", "inputSchema": SOUND, "_meta": {"longhaul/notes": 7}},
                                   "it has no description", SOUND),
}  # fmt: skip
"""By what is wrong: the tool, a part of its note, and the schema that agents have."""

HARMLESS_TOOLS: dict[str, dict[str, Any]] = {
    "outputSchema is odd": {**FIRST, "name": "odd", "outputSchema": 3},
    "icons are odd": {**FIRST, "name": "odd", "icons": "cached_prefix.png"},
    "execution is odd": {**FIRST, "name": "odd", "execution": "now"},
}
"""What is wrong there is not looked at, and needs no note."""


def config(folder: Path, pages: dict[str, Any], answers: dict[str, Any] | None = None) -> dict[str, Any]:
    given = folder / "odd.json"
    given.write_text(json.dumps({"pages": pages, "answers": answers or {}}), "utf-8")
    return {"command": sys.executable, "args": [str(Path(__file__).with_name("odd.py")), str(given)]}


async def found(folder: Path, pages: dict[str, Any]) -> dict[str, Tool]:
    """By the server's own names."""
    async with used(servers(config(folder, pages))) as mcp:
        toolbox = await tools_of(mcp)
        made = {name.removeprefix("mcp__harbour__"): toolbox.get(name) for name in toolbox.names}
    return {name: tool for name, tool in made.items() if tool is not None}


def notes_of(tool: Tool) -> str:
    return "; ".join(getattr(tool, "notes", ()))


@pytest.mark.parametrize("what", ODD_TOOLS)
async def test_an_odd_tool_is_there_with_a_note_and_no_other_is_lost(what: str, tmp_path: Path) -> None:
    odd, note, schema = ODD_TOOLS[what]

    tools = await found(tmp_path, {"": {"tools": [FIRST, odd, LAST]}})

    assert [*tools] == ["first", "odd", "last"]
    assert note in notes_of(tools["odd"])
    assert tools["odd"].input_schema == schema
    assert notes_of(tools["first"]) == notes_of(tools["last"]) == ""
    assert tools["first"].input_schema == SOUND


@pytest.mark.parametrize("what", HARMLESS_TOOLS)
async def test_what_nobody_looks_at_may_be_odd(what: str, tmp_path: Path) -> None:
    tools = await found(tmp_path, {"": {"tools": [FIRST, HARMLESS_TOOLS[what], LAST]}})

    assert [*tools] == ["first", "odd", "last"]
    assert notes_of(tools["odd"]) == ""


async def test_of_two_tools_of_one_name_the_first_counts_with_a_note(tmp_path: Path) -> None:
    tools = await found(tmp_path, {"": {"tools": [FIRST, {**FIRST, "description": "Another one."}, LAST]}})

    assert [*tools] == ["first", "last"]
    assert tools["first"].description == "It is sound."
    assert notes_of(tools["first"]) == "the server lists it 2 times: the first one counts"


ODD_PAGES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "an empty nextCursor": ({"": {"tools": [FIRST, LAST], "nextCursor": ""}}, ["first", "last"], ""),
    "nextCursor is null": ({"": {"tools": [FIRST, LAST], "nextCursor": None}}, ["first", "last"], ""),
    "nextCursor is a number": ({"": {"tools": [FIRST, LAST], "nextCursor": 2}}, ["first", "last"],
                               "its nextCursor is no text"),
    "the same nextCursor again": ({"": {"tools": [FIRST], "nextCursor": "b"},
                                   "b": {"tools": [LAST], "nextCursor": "b"}},
                                  ["first", "last"], "it gives a nextCursor that it gave before"),
    "a tool without a name": ({"": {"tools": [FIRST, {"inputSchema": SOUND}, LAST]}}, ["first", "last"],
                              "1 of its tools are left out"),
    "a tool that is a text": ({"": {"tools": [FIRST, "odd", LAST]}}, ["first", "last"], "1 of its tools are left out"),
    "tools is null": ({"": {"tools": None}}, [], "is no list of tools"),
}  # fmt: skip


@pytest.mark.parametrize("what", ODD_PAGES)
def test_an_odd_list_is_read_as_far_as_it_can_be_and_operators_see_why(what: str, tmp_path: Path) -> None:
    pages, names, note = ODD_PAGES[what]

    done = listed(tmp_path, {"harbour": {"mcp_config": config(tmp_path, pages)}}, "--json")

    (server,) = json.loads(done.stdout)["servers"]
    assert [tool["name"].removeprefix("mcp__harbour__") for tool in server["tools"]] == names
    assert note in "; ".join(server["notes"])
    assert bool(server["notes"]) is bool(note)
    assert server["answers"]


def test_mcp_list_shows_the_note_below_its_tool(tmp_path: Path) -> None:
    pages = {"": {"tools": [FIRST, with_schema({"properties": {}}), LAST]}}

    done = listed(tmp_path, {"harbour": {"mcp_config": config(tmp_path, pages)}})

    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  mcp__harbour__odd"))
    assert lines[at + 1] == "    its inputSchema has no type; it is taken as 'object'"


PLAIN = base64.b64encode(PIXEL).decode()
LONG_PIXEL = PIXEL + b"\xff\xef\xbe" * 4
"""With operations in which the two alphabets differ."""
WRAPPED = "\r\n".join(PLAIN[at : at + 20] for at in range(0, len(PLAIN), 20))
ODD_IMAGES: dict[str, tuple[dict[str, Any], bytes, str]] = {
    "plain": ({"data": PLAIN, "mimeType": "image/png"}, PIXEL, "image/png"),
    "a data URL": ({"data": f"data:image/png;base64,{PLAIN}", "mimeType": "image/png"}, PIXEL, "image/png"),
    "a data URL with a charset": ({"data": f"data:image/png;charset=utf-8;base64,{PLAIN}", "mimeType": "image/png"},
                                  PIXEL, "image/png"),
    "a data URL alone has the type": ({"data": f"data:image/png;base64,{PLAIN}"}, PIXEL, "image/png"),
    "wrapped lines": ({"data": WRAPPED, "mimeType": "image/png"}, PIXEL, "image/png"),
    "URL-safe": ({"data": base64.urlsafe_b64encode(LONG_PIXEL).decode(), "mimeType": "image/png"}, LONG_PIXEL,
                 "image/png"),
    "URL-safe without padding": ({"data": base64.urlsafe_b64encode(PIXEL).decode().rstrip("="),
                                  "mimeType": "image/png"}, PIXEL, "image/png"),
    "no mimeType": ({"data": PLAIN}, PIXEL, "image/png"),
    "mimeType is null": ({"data": PLAIN, "mimeType": None}, PIXEL, "image/png"),
    "mimeType is a word": ({"data": PLAIN, "mimeType": "png"}, PIXEL, "image/png"),
}  # fmt: skip


ODD_RESULTS: dict[str, tuple[dict[str, Any], str]] = {
    "content is empty": ({"content": [], "structuredContent": {"id": "u1"}}, '{"id": "u1"}'),
    "content is null": ({"content": None, "structuredContent": {"id": "u1"}}, '{"id": "u1"}'),
    "content is missing": ({"structuredContent": {"id": "u1"}, "isError": False}, '{"id": "u1"}'),
    "content is missing and nothing else there": ({"isError": False}, ""),
    "content is a text": ({"content": "noted"}, "noted"),
    "content is a block": ({"content": {"type": "text", "text": "noted"}}, "noted"),
    "content is a list of texts": ({"content": ["noted", "twice"]}, "noted\ntwice"),
    "half a surrogate pair": ({"content": [{"type": "text", "text": "a\ud800b"}]}, "a\ufffdb"),
    "the other half, structured": ({"content": [], "structuredContent": {"a": "\udc00"}}, '{"a": "\ufffd"}'),
    "NUL": ({"content": [{"type": "text", "text": "a\0b"}]}, "a\0b"),
}


@pytest.mark.parametrize("what", ODD_RESULTS)
async def test_an_odd_result_is_read(what: str, tmp_path: Path) -> None:
    result, shown = ODD_RESULTS[what]

    assert await answered(tmp_path, result) == shown


async def answered(folder: Path, content: list[Any] | dict[str, Any]) -> Any:
    async with used(servers(config(folder, {"": {"tools": [FIRST]}}, {"first": content}))) as mcp:
        tool = (await tools_of(mcp)).get("mcp__harbour__first")
        assert tool is not None

        async def used_so() -> Any:
            return (await use(tool, place_at(folder), text="fog")).output

        return await ActivityEnvironment().run(used_so)


@pytest.mark.parametrize("what", ODD_IMAGES)
async def test_an_image_is_read_in_whatever_form_it_comes(what: str, tmp_path: Path) -> None:
    given, data, media_type = ODD_IMAGES[what]

    (image,) = await answered(tmp_path, [{"type": "image", **given}])

    assert isinstance(image, DataBlock)
    assert isinstance(image.source, Base64Source)
    assert (base64.b64decode(image.source.data, validate=True), image.source.media_type) == (data, media_type)


async def test_an_image_that_is_none_is_told_and_the_rest_of_the_answer_stays(tmp_path: Path) -> None:
    said = await answered(
        tmp_path, [{"type": "text", "text": "A dot:"}, {"type": "image", "data": "no dot!", "mimeType": "image/png"}]
    )

    assert said == "A dot:\n[data of type 'image/png' that can't be read: it is no base64]"
