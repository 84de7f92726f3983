"""A value held against a JSON schema, of which either may be a stranger's: a requester's, a model's, an MCP server's.

Neither may keep a worker busy, for its other sessions stand still meanwhile: words of the schema are applied so often
and no more. References can ask for any number of them, however short the schema is.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from pydantic_core import SchemaValidator, core_schema
from pydantic_core import ValidationError as NoMatch
from referencing import Registry

from longhaul.agent.plain.values import canonical_json

MOST_STEPS = 200_000
"""Words of the schema that are applied to parts of one value."""
ARGUMENT_STEPS = 50_000
"""The same for the arguments of a call, which are looked at more than once."""

Apply = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class TooManySteps(Exception):
    """A value that takes too long to check."""


class BoundedSchema:
    """`of_tool`: patterns are the operator's, in Python's own words; those of MCP servers are left out before. Others
    are matched by an engine that takes no longer than reading the text (`matching`)."""

    def __init__(self, schema: dict[str, Any], *, of_tool: bool = False) -> None:
        kind, self._most_steps = (_ToolsKind, ARGUMENT_STEPS) if of_tool else (_AskedKind, MOST_STEPS)
        # An empty registry: a reference to another document is an error, and never fetched.
        self._validator = kind(schema, registry=Registry())

    def errors(self, value: Any) -> list[ValidationError]:
        """Raises TooManySteps, and what jsonschema raises."""
        token = _steps.set([self._most_steps])
        try:
            return list(self._validator.iter_errors(value))
        finally:
            _steps.reset(token)


_steps: ContextVar[list[int]] = ContextVar("the steps that one check has left")


def _counted(apply: Apply) -> Apply:
    def counted(validator: Any, said: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        steps = _steps.get()
        steps[0] -= 1 + (len(said) // 10 if isinstance(said, list) else 0)
        if steps[0] < 0:
            raise TooManySteps
        yield from apply(validator, said, instance, schema) or ()

    return counted


@lru_cache(maxsize=256)
def matching(pattern: str) -> Callable[[str], bool]:
    """Raises pydantic_core.SchemaError for a pattern of other words: look-around, back references."""
    validator = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))

    def matches(text: str) -> bool:
        try:
            validator.validate_python(text)
        except NoMatch:
            return False
        return True

    return matches


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matching(pattern)(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _unique(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    """The library's own compares each with each where they are of several kinds."""
    if (
        wanted
        and isinstance(instance, list)
        and len({canonical_json(_plain(part)) for part in instance}) < len(instance)
    ):
        yield ValidationError("has repeated items")


def _plain(value: Any) -> Any:
    """1.0 and 1 are one number."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _kind(**others: Apply) -> Any:
    words: dict[str, Apply] = {**Draft202012Validator.VALIDATORS, "uniqueItems": _unique, **others}
    return extend(Draft202012Validator, {word: _counted(apply) for word, apply in words.items()})  # type: ignore[no-untyped-call]


_ToolsKind, _AskedKind = _kind(), _kind(pattern=_pattern)
