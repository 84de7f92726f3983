"""The reference of the Python names: each of docs/making/names.md with its signature and its methods."""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import longhaul
from docs.making.tables import cell, docstring, rows, schemas_of

NAMES = Path(__file__).with_name("names.md")
PEOPLE = Path(__file__).parents[1] / "people"
LEAF = re.compile(r"(?m)^((?:[│ ]   |[├└]── )*)(\w+)  +(\S.*)")
"""A line of the tree of errors: where it is in the tree, the error, and what it is."""


def python() -> str:
    text = NAMES.read_text(encoding="utf-8")
    about = text.partition("\n## ")[0].partition("\n\n")[2]
    return (
        "# Python, name by name\n\n"
        "After this page you know each name that `from longhaul import …` gives: what it is, its signature, and the"
        f" methods of a class.\n\n{about}\n" + "".join(_sections(text))
    )


def _sections(text: str) -> Iterator[str]:
    rows_of = re.compile(r"(?m)^\| `(\w+)` \| (.*) \|$").findall
    shown = {name for name, _ in rows_of(text)}
    for part in text.split("\n### ")[1:]:
        title = part.partition("\n")[0]
        yield f"## {title}\n\n"
        for name, said in rows_of(part) if title != "Errors" else errors():
            if title != "Errors" or name not in shown:
                yield _named(name, _without_links(said))


def errors() -> list[tuple[str, str]]:
    """Each error that can be imported, in the order of the tree on its page, with what it is."""
    tree = (PEOPLE / "errors.md").read_text(encoding="utf-8")
    return [(name, said) for _, name, said in LEAF.findall(tree) if hasattr(longhaul, name)]


def _without_links(said: str) -> str:
    """They are relative to another page."""
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", said)


def _named(name: str, said: str) -> str:
    thing = getattr(longhaul, name)
    # A function may differ from a class only by its first letter, as `tool` does, and anchors have small letters.
    kind = "" if inspect.isclass(thing) else " (function)" if inspect.isroutine(thing) else " (type)"
    told = f"### `{name}`{kind}\n\n{said[:1].upper()}{said[1:]}.\n\n{_quoted(docstring(thing))}"
    if not inspect.isclass(thing):
        return told + (_code(f"{name}{_signature(thing)}") if callable(thing) else "")
    if issubclass(thing, BaseException):
        above = ", ".join(f"`{one.__name__}`" for one in thing.__mro__[1:-2] if one.__name__ != "Exception")
        return f"{told}An error: {above}.\n\n"
    return told + _class(name, thing)


def _class(name: str, thing: type[Any]) -> str:
    if issubclass(thing, Enum):
        return f"Values: {', '.join(f'`{one.value}`' for one in thing)}.\n\n"
    if issubclass(thing, BaseModel):
        return _fields(thing) + _methods(thing)
    return _code(f"{name}{_signature(thing)}") + _methods(thing)


def _fields(model: type[BaseModel]) -> str:
    """Links to models that are no public names become words."""
    table = rows(schemas_of(model)[model.__name__])
    public = dir(longhaul)
    return re.sub(r"\[(\w+)\]\(#\w+\)", lambda link: link[0] if link[1] in public else link[1], table) + "\n"


def _methods(thing: type[Any]) -> str:
    inherited = {*dir(BaseModel), *dir(Enum), *dir(object)}
    names = [one for one in dir(thing) if not one.startswith("_") and one not in inherited]
    return "".join(_method(name, inspect.getattr_static(thing, name), getattr(thing, name, None)) for name in names)


def _method(name: str, kept: Any, thing: Any) -> str:
    if isinstance(kept, property):
        return f"**`{name}`** (property)\n\n{_quoted(docstring(kept.fget))}"
    if not callable(thing) or inspect.isclass(thing):
        return ""
    waits = "async " if inspect.iscoroutinefunction(thing) or inspect.isasyncgenfunction(thing) else ""
    return f"**`{name}`**\n\n{_code(f'{waits}{name}{_signature(thing)}')}{_quoted(docstring(thing))}"


def _signature(thing: Any) -> str:
    try:
        written = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(…)"
    written = re.sub(
        r"<function (\w+) at 0x[0-9a-f]+>", r"\1", re.sub(r"<[\w. ]+ object at 0x[0-9a-f]+>", "…", written)
    )
    # `self` is nothing that a caller gives, and where a name lives inside is nobody's business.
    return re.sub(r"\((?:self|cls)(?:, )?", "(", re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z_])", "", written), count=1)


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n\n"


def _quoted(text: str) -> str:
    return "".join(f"{cell(part)}\n\n" for part in text.split("\n\n") if part.strip())
