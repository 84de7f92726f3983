"""Schemas of tools as every provider takes them: an object, and no choice between schemas at the top.

Anthropic refuses `anyOf`, `oneOf` and `allOf` there, OpenAI `enum`, `const` and `not` too, and one such tool makes all
requests of its session fail. What such words say of single properties is put together, and what they say of which go
together stands in the description: a call has the arguments that the tool wants, and the tool judges them itself.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

_CHOICES = ("anyOf", "oneOf")
_REFUSED = (*_CHOICES, "allOf", "not", "enum", "const", "$ref")
_DEEPEST = 8
_MOST_PARTS = 500
"""A schema may refer to itself in many ways, and whoever writes an agent writes schemas."""
_MOST_DESCRIBED = 10


def sent_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with all of that; its own order of fields where nothing has to change."""
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
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        found: Any = self._root
        for step in reference[2:].split("/"):
            found = _of(found).get(step.replace("~1", "/").replace("~0", "~"))
        return found if isinstance(found, Mapping) else None


def _of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _schemas(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (part for part in (value if isinstance(value, list) else ()) if isinstance(part, Mapping))


def _names(value: Any) -> list[str]:
    return [name for name in (value if isinstance(value, list) else ()) if isinstance(name, str)]
