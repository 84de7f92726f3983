"""Reads what servers answer beside the protocol: a tool with a wrong schema, a field that is missing, an image in
another form of base64. What is wrong with one tool is noted with it, and costs no other tool anything.

The `mcp` package judges a list of tools as a whole, and loses all of it for one word; so answers are fixed before it
sees them.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Self

import mcp_types as types
from mcp.shared.message import SessionMessage

from longhaul.activities.tools.read import image_type
from longhaul.agent.plain.text import visible

NOTES = "longhaul/notes"
"""In `_meta` of a tool, and of a list of tools: what was wrong, in words. What a server says there is dropped."""
MOST_NOTES = 5
_LEVELS = 30
"""Deeper ones are left out later."""
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_MEANT = {
    **dict.fromkeys(("str", "text", "date", "datetime", "uuid", "uri", "enum", "file"), "string"),
    **dict.fromkeys(("int", "long", "int32", "int64"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("list", "tuple", "set"), "array"),
    **dict.fromkeys(("dict", "map", "record", "struct"), "object"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("none", "nil", "nonetype"), "null"),
}
"""What servers write for types of JSON Schema, in small letters."""
_NAMED = frozenset({"properties", "$defs", "definitions"})
"""Words of a schema with schemas by name."""
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset({"items", "not", "additionalProperties"})
_FORMS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "required": (
        lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
        "list of names",
    ),
    "enum": (lambda value: isinstance(value, list), "list"),
    **dict.fromkeys(sorted(_NAMED), (lambda value: isinstance(value, dict), "table of schemas by name")),
    **dict.fromkeys(sorted(_LISTED), (lambda value: isinstance(value, list) and bool(value), "list of schemas")),
    **dict.fromkeys(sorted(_SINGLE), (lambda value: isinstance(value, dict | bool), "schema")),
}
"""What a reader may count on, and what it is called."""
_OF_A_CALL = frozenset({"content", "structuredContent", "isError"})
"""One of these has each result of a call."""
_KEPT = ("name", "title", "description", "annotations")
"""Of a tool, beside its schema: nothing else is looked at."""


class Lenient:
    """A stream of what a server says, of whichever transport, with answers fixed."""

    def __init__(self, said: Any) -> None:
        self._said = said

    def __getattr__(self, name: str) -> Any:
        return getattr(self._said, name)

    async def receive(self) -> SessionMessage | Exception:
        return _fixed(await self._said.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _fixed(await self._said.__anext__())

    async def __aenter__(self) -> Self:
        await self._said.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._said.__aexit__(*error)


def _fixed(said: SessionMessage | Exception) -> SessionMessage | Exception:
    if isinstance(said, SessionMessage) and isinstance(said.message, types.JSONRPCResponse):
        result: Any = said.message.result
        if isinstance(result, dict) and "content" not in result and "tools" in result:
            fix_tools(result)
        elif isinstance(result, dict) and not _OF_A_CALL.isdisjoint(result):
            result["content"] = _content_of(result.get("content"))
    return said


def fix_tools(result: dict[str, Any]) -> None:
    """A page of a list of tools, in its place."""
    notes: list[str] = []
    listed = result["tools"]
    if not isinstance(listed, list):
        notes.append("what it lists is no list of tools")
        listed = []
    tools = [_fixed_tool(tool) for tool in listed]
    if lost := sum(tool is None for tool in tools):
        notes.append(f"{lost} of its tools are left out: they have no name")
    result["tools"] = [tool for tool in tools if tool is not None]
    if not isinstance(result.get("nextCursor", ""), str | None):
        notes.append("its nextCursor is no text: what would follow is not asked for")
        result["nextCursor"] = None
    result["_meta"] = {NOTES: notes}


def _fixed_tool(tool: Any) -> dict[str, Any] | None:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    notes: list[str] = []
    kept = {word: tool[word] for word in _KEPT if tool.get(word) is not None}
    for word in ("title", "description"):
        if word in kept and not isinstance(kept[word], str):
            notes.append(f"its {word} is no text")
            del kept[word]
    if not kept.get("description"):
        notes.append("it has no description")
    if "annotations" in kept and not _can_be_read(kept["annotations"]):
        notes.append("its annotations can't be read, and count for nothing")
        del kept["annotations"]
    schema = _arguments_schema(tool.get("inputSchema"), notes)
    return {**kept, "inputSchema": schema, "_meta": {NOTES: [*dict.fromkeys(notes)][:MOST_NOTES]}}


def _can_be_read(annotations: Any) -> bool:
    try:
        types.ToolAnnotations.model_validate(annotations)
    except ValueError:
        return False
    return True


def _arguments_schema(schema: Any, notes: list[str]) -> dict[str, Any]:
    """An object's, whatever the server calls it: arguments are one."""
    if not isinstance(schema, dict):
        notes.append("it has no inputSchema" if schema is None else "its inputSchema is no JSON Schema")
        return {"type": "object"}
    kind = schema.get("type")
    meant = _meant(kind) if isinstance(kind, str) else None
    if kind != "object":
        said = "has no type" if kind is None else f"has the type {visible(repr(kind)[:60])}"
        notes.append(f"its inputSchema {said}; it is taken as 'object'")
    if meant is not None and meant != "object" and "properties" not in schema:
        notes.append(f"its inputSchema is that of type {meant!r}, which arguments never have: it is left out")
        return {"type": "object"}
    return {**_schema({**schema, "type": "object"}, notes, _LEVELS), "type": "object"}


def _meant(word: str) -> str | None:
    small = word.strip().lower()
    return small if small in _TYPES else _MEANT.get(small)


def _schema(schema: dict[str, Any], notes: list[str], levels: int) -> dict[str, Any]:
    """Of which the words that every reader needs to be right are, or are not there."""
    if levels == 0:
        return schema  # it is too deep, and left out for that
    made = dict(schema)
    if "type" in made:
        _fix_type(made, notes)
    if isinstance(made.get("enum"), list) and "type" in made:
        _fix_enum(made, notes)
    for word, (is_right, said) in _FORMS.items():
        if word in made and not is_right(made[word]):
            notes.append(f"`{word}` in its inputSchema is no {said}, and is left out")
            del made[word]
    for word in _NAMED & made.keys():
        made[word] = {name: _inner(inner, notes, levels) for name, inner in made[word].items()}
    for word in _LISTED & made.keys():
        made[word] = [_inner(inner, notes, levels) for inner in made[word]]
    for word in _SINGLE & made.keys():
        made[word] = _inner(made[word], notes, levels)
    return made


def _inner(schema: Any, notes: list[str], levels: int) -> Any:
    if isinstance(schema, dict):
        return _schema(schema, notes, levels - 1)
    if not isinstance(schema, bool):
        notes.append("a part of its inputSchema is no schema: it takes anything")
    return schema if isinstance(schema, bool) else {}


def _fix_type(schema: dict[str, Any], notes: list[str]) -> None:
    given = schema["type"]
    words = given if isinstance(given, list) else [given]
    meant = [*dict.fromkeys(found for word in words if isinstance(word, str) and (found := _meant(word)))]
    if meant == words:
        return
    odd = next((word for word in words if word not in meant), given)
    notes.append(f"the type {visible(repr(odd)[:60])} in its inputSchema is none of JSON Schema's")
    if meant:
        schema["type"] = meant[0] if len(meant) == 1 else meant
    else:
        del schema["type"]


_IS_A: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def _fix_enum(schema: dict[str, Any], notes: list[str]) -> None:
    """Values that the type beside them excludes, for which providers refuse the whole request."""
    kind = schema["type"]
    kinds = [_IS_A[each] for each in (kind if isinstance(kind, list) else [kind])]
    fit = [value for value in schema["enum"] if any(is_a(value) for is_a in kinds)]
    if fit != schema["enum"]:
        notes.append(f"its inputSchema has an enum of other values than the type {visible(repr(kind)[:60])} allows")
        schema["enum"] = fit
    if not fit:
        del schema["enum"]


def notes_in(meta: Any) -> tuple[str, ...]:
    return tuple(meta.get(NOTES, ())) if isinstance(meta, dict) else ()


def _content_of(given: Any) -> Any:
    """A list of blocks: some servers leave it out beside what they structure, or give one block, or a text."""
    if given is None:
        return []
    content = given if isinstance(given, list) else [given]
    for at, block in enumerate(content):
        if isinstance(block, str):
            content[at] = {"type": "text", "text": block}
        if isinstance(block, dict) and block.get("type") in ("image", "audio"):
            said = block.get("mimeType")
            block["mimeType"] = said if isinstance(said, str) else ""
    return content


_DATA_URL = re.compile(r"\s*data:([^;,]*)((?:;[^;,]*)*?);base64,", re.IGNORECASE)


def plain_base64(data: str, media_type: str, is_sound: Callable[[str], object]) -> tuple[str, str]:
    """The same in the usual alphabet and in one line, and its media type: that of a data URL, or of its first bytes,
    where none is given that can be one. Raises ValueError for what is no base64."""
    if found := _DATA_URL.match(data[:1_000]):
        data = data[found.end() :]
        media_type = media_type if is_sound(media_type) else found[1]
    text = "".join(data.split()).replace("-", "+").replace("_", "/").rstrip("=")
    text += "=" * (-len(text) % 4)
    try:
        decoded = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("it is no base64") from None
    return text, media_type if is_sound(media_type) else image_type(decoded)
