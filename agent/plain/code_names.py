"""Code that is named in settings: an object of it may stand where its name is wanted."""

from collections.abc import Sequence
from typing import Annotated, Any, Protocol, cast

from pydantic import BeforeValidator


class CodeWithName(Protocol):
    """A tool, a middleware, a skill loader: whatever workers have under its name."""

    @property
    def name(self) -> str: ...


def name_of(thing: object) -> object:
    """The name under which workers have it: its own, or that of its class where it has none. What is no such object
    comes back as it is, for whoever checks names to refuse."""
    if isinstance(thing, str) or not isinstance(name := getattr(thing, "name", None), str):
        return thing
    kind = thing if isinstance(thing, type) else type(thing)
    return name or kind.__name__


def _names_of(given: Any) -> Any:
    return [name_of(each) for each in cast(Sequence[object], given)] if isinstance(given, list | tuple) else given


NAMES = BeforeValidator(_names_of)
Names = Annotated[tuple[str, ...], NAMES]
