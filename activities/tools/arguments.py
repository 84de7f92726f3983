"""The arguments that a model writes: read strictly, held against a JSON schema, and what is wrong with them said in a
sentence.

A value held against a JSON schema, of which either may be a stranger's: a requester's, a model's, an MCP server's.

Neither may keep a worker busy, for its other sessions stand still meanwhile: words of the schema are applied so often
and no more. References can ask for any number of them, however short the schema is.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NoReturn, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from pydantic_core import SchemaValidator, core_schema
from pydantic_core import ValidationError as NoMatch
from referencing import Registry

from longhaul.agent.plain.json_schemas import unusable, value_at, wrong_places
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.values.conversation.messages import why_not_to_run

LONGEST_REMEMBERED = 20_000
"""Characters. The few that are longer are checked each time."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise SchemaError for what is no JSON schema; RecursionError, TypeError or ValueError for what is no JSON."""
    text = json.dumps(schema, allow_nan=False)
    if len(text) > LONGEST_REMEMBERED:
        Draft202012Validator.check_schema(json.loads(text))
    else:
        check_text(text)


# An MCP server's tool is checked when it is listed and when it comes into a toolbox, each time that the server is asked
# again; each worker of a process has the same tools. What raises is not remembered.
@lru_cache(maxsize=1_024)
def check_text(text: str) -> None:
    Draft202012Validator.check_schema(json.loads(text))


_SHOWN_CAP = 120


class ArgumentsError(Exception):
    """The model's mistake: its arguments can't be used; the text is a sentence that it can act on."""


def parse_arguments(raw_input: str) -> dict[str, Any]:
    """One JSON object, strictly: no repeated key, no NaN; one that stands within a JSON text is read out of it. Nothing
    at all is none: whether a call had arguments that were lost nobody knows. Raises ArgumentsError."""
    parsed = _parsed(raw_input)
    if isinstance(parsed, str) and parsed.lstrip().startswith("{"):
        parsed = _parsed(parsed)
    if not isinstance(parsed, dict):
        raise ArgumentsError(f'the arguments are {_kind(parsed)}; a JSON object like {{"name": "value"}} is needed')
    return cast(dict[str, Any], parsed)


def _parsed(raw_input: str) -> object:
    if why := why_not_to_run(raw_input):
        raise ArgumentsError(why)
    if not raw_input.strip():
        raise ArgumentsError("the call has no arguments; give a JSON object, {} for a tool that needs none")
    try:
        return json.loads(raw_input, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if error.pos >= len(raw_input.rstrip()) or error.msg.startswith("Unterminated string"):
            complaint = (
                f"the arguments are not valid JSON: they break off after {len(raw_input)} characters ({error.msg}). "
                "If they were too long for one reply, do the work in smaller calls"
            )
        else:
            near = raw_input[max(0, error.pos - 30) : error.pos + 30]
            complaint = f"the arguments are not valid JSON: {error.msg} at character {error.pos}, near {near!r}"
        raise ArgumentsError(complaint) from None
    except RecursionError:
        raise ArgumentsError("the arguments are nested too deeply; give a flatter JSON object") from None
    except ValueError:
        raise ArgumentsError("the arguments hold a number with too many digits; give it as a string") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentsError(f"the arguments name {_short(twice)} twice; give each once")
    return plain


def _refuse_constant(name: str) -> NoReturn:
    raise ArgumentsError(f"the arguments contain {name}, which is not JSON; give a number or null")


def sentence(error: ValidationError) -> str:
    """What is wrong, naming the field, its value and what to give."""
    at = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).removeprefix(".")
    part = _part_that_failed(error)
    if not unusable(part) and (told := wrong_places(error.instance, part, at)):
        return "; ".join(told)
    word: Any = error.validator
    if word is None:  # a schema that is `false`, of which jsonschema does not say where it stands
        return f"{_short(error.instance)} may not stand where it does: leave it out"
    return f"{value_at(error.instance, at)}, which does not fit {word} {_short(error.validator_value)}"


def words_of(schema: Any) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}


def _part_that_failed(error: ValidationError) -> dict[str, Any]:
    """The one word of the schema, and of what stands beside it as much as its sentence names."""
    beside, value = words_of(error.schema).get("properties", {}), cast(Any, error.instance)
    names: dict[str, Any] = {}
    match error.validator:
        case "required":
            lacking = {name: schema for name, schema in beside.items() if name not in value}
            names = {name: {"type": schema["type"]} for name, schema in lacking.items() if "type" in words_of(schema)}
        case "additionalProperties":
            names = dict.fromkeys(beside, True)
        case _:
            pass
    return {str(error.validator): error.validator_value, **({"properties": names} if names else {})}


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CAP else f"{text[:_SHOWN_CAP]}… ({len(text)} characters)"


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


def _validator_class(**others: Apply) -> Any:
    words: dict[str, Apply] = {**Draft202012Validator.VALIDATORS, "uniqueItems": _unique, **others}
    return extend(Draft202012Validator, {word: _counted(apply) for word, apply in words.items()})  # type: ignore[no-untyped-call]


_ToolsKind, _AskedKind = _validator_class(), _validator_class(pattern=_pattern)
