"""Names what is wrong with a state from outside, and where in its JSON."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from longhaul.agent.plain.errors import BadInput

SHOWN = 5


class ImportProblem(BadInput, ValueError):
    """A state that can't be taken. `problems`: (JSON path as in `context[3].content[0].id`, what is wrong there)."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        shown = "; ".join(f"{path or 'the document'}: {what}" for path, what in self.problems[:SHOWN])
        more = len(self.problems) - SHOWN
        super().__init__(f"{shown}; {more} more" if more > 0 else shown)


class ImportProblems:
    """Collects problems while a document is read, so that a person sees all of them at once."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []

    def add(self, path: str, what: str) -> None:
        self.problems.append((path, what))

    def raise_any(self) -> None:
        if self.problems:
            raise ImportProblem(self.problems)

    def text(self, value: object, path: str, default: str | None = None) -> str:
        """A string; `default` for null, where there may be one."""
        if isinstance(value, str):
            return value
        if value is not None or default is None:
            self.add(path, f"must be a string, not {_kind(value)}")
        return default or ""

    def items(self, value: object, path: str) -> list[Any]:
        """A list; empty for null."""
        if isinstance(value, list):
            return cast(list[object], value)
        if value is not None:
            self.add(path, f"must be a list, not {_kind(value)}")
        return []

    def fields(self, value: object, path: str) -> dict[str, Any]:
        """An object; empty for null."""
        if isinstance(value, dict):
            return cast(dict[str, object], value)
        if value is not None:
            self.add(path, f"must be an object, not {_kind(value)}")
        return {}


def problems_of(error: ValidationError, document: object) -> list[tuple[str, str]]:
    """Pydantic's complaints, with paths that lead through the document as it was sent."""
    wrong = error.errors(include_url=False, include_input=False, include_context=False)
    return [(path_to(one["loc"], document), one["msg"]) for one in wrong]


def unknown(document: object, read: object, path: str = "") -> Iterator[str]:
    """Paths of the document's fields that the value read from it has no place for."""
    match document, read:
        case dict(), BaseModel():
            for name, value in cast(dict[str, object], document).items():
                if name in type(read).model_fields:
                    yield from unknown(value, getattr(read, name), f"{path}.{name}".lstrip("."))
                else:
                    yield f"{path}.{name}".lstrip(".")
        case dict(), dict():
            for name, value in cast(dict[str, object], document).items():
                yield from unknown(value, cast(dict[str, object], read).get(name), f"{path}.{name}".lstrip("."))
        case list(), list() | tuple():
            for index, (value, part) in enumerate(
                zip(cast(list[object], document), cast(list[object], read), strict=False)
            ):
                yield from unknown(value, part, f"{path}[{index}]")
        case _:
            return


def path_to(location: Sequence[int | str], document: object) -> str:
    """Pydantic's location without the names of union members, which are no part of the document."""
    path, place = "", document
    for at, step in enumerate(location):
        last = at == len(location) - 1
        if isinstance(step, int) and isinstance(place, list):
            items = cast(list[object], place)
            path, place = f"{path}[{step}]", items[step] if step < len(items) else None
        elif isinstance(step, str) and isinstance(place, dict):
            fields = cast(dict[str, object], place)
            if step in fields or last:
                path, place = f"{path}.{step}".lstrip("."), fields.get(step)
    return path


def _kind(value: object) -> str:
    return (
        "null" if value is None else {"dict": "an object", "list": "a list"}.get(type(value).__name__, repr(value)[:50])
    )
