"""The one tree of errors that users meet: everything that Longhaul raises on purpose is a `LonghaulError`.

The groups say whose move it is. A class that is also a `ValueError`, `RuntimeError` or `LookupError` stays one, for
pydantic and for callers who catch those. Temporal knows errors by the name of their class: it can't be changed.

Names what is wrong with a value, in one line.

Names what is wrong with a state from outside, and where in its JSON.

The parts that are installed only when they are asked for, as `pip install 'longhaul-agents[worker,sql]'`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError


class LonghaulError(Exception):
    """Base class of all errors that Longhaul raises on purpose. The sentence says what is wrong, and what to do if
    there is something."""


class BadSetup(LonghaulError):
    """A setting, file or module of the operator can't be used. Trying again does not help; change it."""


class BadInput(LonghaulError):
    """The caller's value can't be used: a rule, a path, a template, a state, a command. Nothing was changed."""


class Unavailable(LonghaulError):
    """Something that is needed does not answer, or can't be reached from here. Try again later: nothing is known to be
    lost."""


class Damaged(LonghaulError):
    """Stored data is missing, incomplete, or of a later version. Trying again does not help."""


def what_is_wrong(error: ValidationError) -> str:
    """The first complaint as `field: what (value); n more`, short enough for a log line. Where a key's name belongs
    somebody may have written the key, which is not repeated, nor is a text that the complaint quotes."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "body"
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    message = first["msg"].removeprefix("Value error, ")
    value: object = first.get("input")
    given = shortened(value)
    is_hidden = first["loc"][-1:] == ("api_key_env",) or first["type"] == _NOT_REPEATED
    is_said = is_hidden or (isinstance(value, str) and given in message)
    return f"{field}: {message}{'' if is_said else f' (it is {given})'}{more}"


_NOT_REPEATED = "not_repeated"


def not_repeated(message: str) -> PydanticCustomError:
    """For a validator: the complaint about a value that may hold a key, so that nobody repeats it."""
    return PydanticCustomError(_NOT_REPEATED, "{message}", {"message": message})


def shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def short_form(value: object) -> str:
    """Its Python form for such a line, cut."""
    return cut(repr(value))


def cut(text: str) -> str:
    """At 60 characters."""
    return text if len(text) <= 60 else f"{text[:60]}…"


SHOWN = 5


class ImportProblem(BadInput, ValueError):
    """The state can't be imported. `problems`: pairs of a JSON path, as in `context[3].content[0].id`, and what is
    wrong there."""

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


EXTRAS: dict[str, tuple[str, ...]] = {
    "a2a": ("a2a",),
    "ai": ("groq", "mistralai", "pydantic_ai"),
    "azure": ("azure",),
    "bedrock": ("boto3", "botocore"),
    "cohere": ("cohere",),
    "cli": ("prompt_toolkit", "rich", "typer"),
    "encryption": ("cryptography",),
    "knowledge": ("pypdf",),
    "mcp": ("mcp", "mcp_types"),
    "programs": ("pydantic_monty",),
    "serve": ("jinja2", "markdown_it", "markupsafe", "nh3", "python_multipart", "starlette", "uvicorn"),
    "sql": ("psycopg", "pymysql", "sqlalchemy"),
    "telemetry": ("opentelemetry",),
    "vectors": ("numpy",),
    "web": ("html_to_markdown",),
    "worker": (
        "anthropic", "httpx2", "jsonschema", "openai", "pythonjsonlogger", "referencing",
        "tiktoken", "tree_sitter", "tree_sitter_bash", "uvloop", "yaml",
    ),
}  # fmt: skip
"""By extra the modules that come with it; `worker` and `serve` bring `cli` along, `worker` also `telemetry`, `a2a` all
of `serve`, `ai`, `azure`, `bedrock` and `vertex` all of `worker`, and `cohere` all of `ai`. That of `vertex` is a part
of a package that others share."""


class MissingExtra(BadSetup, ImportError):
    """A part of Longhaul is not installed. The sentence names the extra that has it."""


def missing(error: ModuleNotFoundError) -> ModuleNotFoundError | MissingExtra:
    """The same error, or one that says which extra has that module."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules:
            return MissingExtra(
                f"{module!r} is not installed; it comes with an extra: pip install 'longhaul-agents[{extra}]'"
            )
    return error
