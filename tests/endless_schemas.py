"""Schemas that are short, and whose references lead to no end or to more places than anybody can look at."""

from typing import Any

LEVELS = 40
LAST = {"enum": ["high", "low"]}


def doubling(word: str) -> dict[str, Any]:
    """`x`, told by references of which each leads to the next one twice."""

    def twice(name: str) -> dict[str, Any]:
        said = {"$ref": f"#/$defs/{name}"}
        return {word: {"a": said, "b": said} if word == "properties" else [said, said]}

    levels = {f"A{at}": twice(f"A{at + 1}") for at in range(LEVELS)}
    return _of_first({**levels, f"A{LEVELS}": LAST})


def chain(length: int, *, backwards: bool = False) -> dict[str, Any]:
    """`x`, of which each definition says nothing but that it is the next one."""
    levels = [(f"A{at}", {"$ref": f"#/$defs/A{at + 1}"}) for at in range(length)]
    named: list[tuple[str, dict[str, Any]]] = [*levels, (f"A{length}", LAST)]
    return _of_first(dict(reversed(named) if backwards else named))


def _of_first(definitions: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/A0"}}, "$defs": definitions}
