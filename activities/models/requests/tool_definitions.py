"""Tools as every provider takes them: their names, their schemas, and the parts of these.

Names of tools as every provider takes them, and back: what a model calls by such a name is called by its own.

Providers take 64 letters, digits, `_` and `-` (OpenAI, Bedrock), and not all of them a digit (Gemini) or `_` (Kimi) in
front.
Another name is sent with what can't be in it replaced, and with a digest, so that two never become one.

Schemas of tools as every provider takes them: an object, and no choice between schemas at the top.

Anthropic refuses `anyOf`, `oneOf` and `allOf` there, OpenAI `enum`, `const` and `not` too, and one such tool makes all
requests of its session fail. What such words say of single properties is put together, and what they say of which go
together stands in the description: a call has the arguments that the tool wants, and the tool judges them itself.

Parts of tools' schemas as OpenAI, Gemini and Kimi take them; Anthropic takes them as they are.

An array says what is in it (OpenAI, Gemini), a type stands in the choices and not beside them, and definitions stand in
`$defs` (Kimi). One tool of a server that does otherwise makes all requests of its session fail. Sources stand with the
rules in tests/activities/models/published/published_chat.py.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any
from urllib.parse import unquote

from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.tool_index import CALL_TOOL, direct

_TAKEN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_LONGEST = 64
_DIGEST_CHARS = 8


def wire_name(name: str) -> str:
    """The name of a tool as it is sent, also of one that is no longer offered, or that the model has invented."""
    if _TAKEN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
    plain = plain if re.match(r"[A-Za-z]", plain) else f"tool_{plain}"
    return f"{plain[: _LONGEST - _DIGEST_CHARS - 1]}_{digest}"


class ToolNames:
    """Of one request's tools."""

    def __init__(self, names: Sequence[str]) -> None:
        self._own: Mapping[str, str] = {sent: name for name in names if (sent := wire_name(name)) != name}

    def into(self, request: ModelRequest) -> ModelRequest:
        """The request with its tools as they are sent; the same one where every name is taken as it is."""
        if not self._own:
            return request
        tools = [tool.model_copy(update={"name": wire_name(tool.name)}) for tool in request.tools]
        return replace(request, tools=tools)

    def out_of(self, reply: ModelReply) -> ModelReply:
        """The reply, its calls by the tools' own names."""
        if not self._own:
            return reply
        content = tuple(
            block.model_copy(update={"name": self._own.get(block.name, block.name)})
            if isinstance(block, ToolCallBlock)
            else block
            for block in reply.content
        )
        return replace(reply, content=content)

    def heard(self, on_delta: Callable[[Delta], None]) -> Callable[[Delta], None]:
        """`on_delta`, which hears the tools' own names."""
        if not self._own:
            return on_delta
        return lambda delta: on_delta(replace(delta, tool_name=self._own.get(delta.tool_name, delta.tool_name)))


def called_directly(reply: ModelReply, tools: Sequence[ToolDescriptor]) -> ModelReply:
    """The reply, its calls through `call_tool` as calls of the tools that they name."""
    if not any(isinstance(block, ToolCallBlock) and block.name == CALL_TOOL for block in reply.content):
        return reply
    names = {tool.name for tool in tools}
    content = tuple(
        direct(block, names.__contains__) if isinstance(block, ToolCallBlock) else block for block in reply.content
    )
    return replace(reply, content=content)


_BY_NAME = ("properties", "$defs", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_DEEPEST_PART = 40
_OLD, _NEW = "#/definitions/", "#/$defs/"


def with_plain_parts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object, each of its parts so. What it allows of arguments stays: of an array that says nothing
    of its items, texts are asked for."""
    older = schema.get("definitions")
    if isinstance(older, Mapping):
        rest = {word: value for word, value in schema.items() if word != "definitions"}
        schema = {**rest, "$defs": {**older, **_table(schema.get("$defs"))}}
    plain: dict[str, Any] = _plain(schema, _DEEPEST_PART)
    return plain


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _plain(schema: Any, left: int) -> Any:
    if not isinstance(schema, Mapping) or left == 0:
        return schema
    plain = {word: _inner(word, value, left - 1) for word, value in schema.items()}
    kind = plain.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds and "items" not in plain:
        plain["items"] = {"type": "string"}
    return _typed_by_choices(plain)


def _inner(word: str, value: Any, left: int) -> Any:
    if word in _BY_NAME and isinstance(value, Mapping):
        return {name: _plain(part, left) for name, part in value.items()}
    if word in _LISTS and isinstance(value, list):
        return [_plain(part, left) for part in value]
    if word == "$ref" and isinstance(value, str) and value.startswith(_OLD):
        return _NEW + value.removeprefix(_OLD)
    return _plain(value, left) if word in _SINGLE else value


def _typed_by_choices(schema: dict[str, Any]) -> dict[str, Any]:
    ways = schema.get("anyOf")
    if not isinstance(ways, list) or "type" not in schema or not all(isinstance(way, Mapping) for way in ways):
        return schema
    kind = schema["type"]
    rest = {word: value for word, value in schema.items() if word != "type"}
    return {**rest, "anyOf": [way if "type" in way or "$ref" in way else {"type": kind, **way} for way in ways]}


_CHOICES = ("anyOf", "oneOf")
_REFUSED = (*_CHOICES, "allOf", "not", "enum", "const", "$ref")
_DEEPEST = 8
_MOST_PARTS = 500
"""A schema may refer to itself in many ways, and whoever writes an agent writes schemas."""
_MOST_DESCRIBED = 10


def sent_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with all of that; its own order of fields where nothing has to change."""
    schema = _SchemaReferences(schema).whole()
    if not any(word in schema for word in _REFUSED) and schema.get("type", "object") == "object":
        return {"type": "object", "properties": {}, **schema}
    merged = _Merged(schema, count())
    merged.take(schema, _DEEPEST)
    kept = {word: value for word, value in schema.items() if word not in (*_REFUSED, "properties", "required", "type")}
    said = " ".join(part for part in (str(schema.get("description", "")), *merged.choices[:_MOST_DESCRIBED]) if part)
    return {
        "type": "object",
        "properties": merged.properties,
        **({"required": merged.required} if merged.required else {}),
        **kept,
        **({"description": said} if said else {}),
    }


class _Merged:
    def __init__(self, root: Mapping[str, Any], parts: Iterator[int]) -> None:
        self._root = root
        self._parts = parts
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.choices: list[str] = []

    def take(self, schema: Mapping[str, Any], left: int) -> None:
        """All that it asks for, and what its parts ask for together."""
        if left == 0 or next(self._parts) > _MOST_PARTS:
            return
        if (found := self._referred(schema)) is not None:
            self.take(found, left - 1)
        for part in _schemas(schema.get("allOf")):
            self.take(part, left - 1)
        for name, about in _of(schema.get("properties")).items():
            self._add(name, about)
        self.required += [name for name in _names(schema.get("required")) if name not in self.required]
        for word in _CHOICES:
            self._choose([*_schemas(schema.get(word))], left)

    def _choose(self, ways: list[Mapping[str, Any]], left: int) -> None:
        """Of which one is enough: required is what all of them require."""
        taken = [_Merged(self._root, self._parts) for _ in ways]
        for merged, way in zip(taken, ways, strict=True):
            merged.take(way, left - 1)
            for name, about in merged.properties.items():
                self._add(name, about)
        asked = [merged.required for merged in taken]
        in_all = [name for name in (asked[0] if asked else ()) if all(name in names for names in asked)]
        self.required += [name for name in in_all if name not in self.required]
        if any(asked):
            told = (", ".join(f"`{name}`" for name in names) or "nothing more" for names in asked)
            self.choices.append(f"Give one of: {'; '.join(told)}.")
        self.choices += [choice for merged in taken for choice in merged.choices]

    def _add(self, name: str, about: Any) -> None:
        known = self.properties.get(name, about)
        if known == about:
            self.properties[name] = about
            return
        ways = known["anyOf"] if isinstance(known, dict) and list(known) == ["anyOf"] else [known]
        self.properties[name] = {"anyOf": [*ways, about]} if about not in ways else known

    def _referred(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """`#/$defs/Name` in the same schema; others no provider would follow either."""
        reference = schema.get("$ref")
        return _of(_place(self._root, reference)) or None if isinstance(reference, str) else None


_DATA = frozenset({"enum", "const", "default", "examples"})
"""Words whose values are no schemas."""
_DEFINED = ("#/$defs/", _OLD)


class _SchemaReferences:
    """A schema in which each reference leads to a definition: Kimi and Claude refuse others, and all of them one that
    leads nowhere, which says nothing and is left out."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._names: dict[str, str] = {}
        """Of definitions that are made here, by the reference."""
        self._moved: dict[str, Any] = {}

    def whole(self) -> Mapping[str, Any]:
        made = self._resolved(self._root, _DEEPEST_PART)
        return {**made, "$defs": {**_table(made.get("$defs")), **self._moved}} if self._moved else made

    def _resolved(self, part: Any, left: int) -> Any:
        if isinstance(part, list):
            return [self._resolved(inner, left - 1) for inner in part]
        if not isinstance(part, Mapping) or left <= 0:
            return part
        made = {word: inner if word in _DATA else self._resolved(inner, left - 1) for word, inner in part.items()}
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            target = _place(self._root, reference)
            if not isinstance(target, Mapping | bool):
                del made["$ref"]
            elif not reference.startswith(_DEFINED):
                made["$ref"] = _NEW + self._defined(reference, target, left)
        return made

    def _defined(self, reference: str, target: Any, left: int) -> str:
        if reference not in self._names:
            plain = re.sub(r"[^A-Za-z0-9]+", "_", reference).strip("_") or "whole"
            taken = {*_table(self._root.get("$defs")), *_table(self._root.get("definitions")), *self._names.values()}
            name = next(
                name for number in count(1) if (name := f"{plain}_{number}" if number > 1 else plain) not in taken
            )
            self._names[reference] = name
            if isinstance(target, Mapping):
                target = {word: value for word, value in target.items() if word not in ("$defs", "definitions")}
            self._moved[name] = self._resolved(target, left - 1)
        return self._names[reference]


def _place(root: Mapping[str, Any], reference: str) -> Any:
    """What a reference within a schema leads to, and None for one that leads nowhere."""
    if not reference.startswith("#/"):
        return root if reference == "#" else None
    found: Any = root
    for step in unquote(reference[2:]).split("/"):
        if isinstance(found, list):
            found = found[int(step)] if step.isdecimal() and int(step) < len(found) else None
        else:
            found = _of(found).get(step.replace("~1", "/").replace("~0", "~"))
    return found


def _of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _schemas(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (part for part in (value if isinstance(value, list) else ()) if isinstance(part, Mapping))


def _names(value: Any) -> list[str]:
    return [name for name in (value if isinstance(value, list) else ()) if isinstance(name, str)]
