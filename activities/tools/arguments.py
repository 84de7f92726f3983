"""The arguments that a model writes: read strictly, and what is wrong with them said in a sentence."""

import json
from typing import Any, NoReturn, cast

from jsonschema.exceptions import ValidationError

from longhaul.agent.plain.json_schemas import unusable, value_at, wrong_places
from longhaul.agent.values.conversation.messages import why_not_to_run

_SHOWN_CAP = 120


class ArgumentsError(Exception):
    """The model's mistake: its arguments can't be used; the text is a sentence that it can act on."""


def parse_arguments(raw_input: str) -> dict[str, Any]:
    """One JSON object, strictly: no repeated key, no NaN. Nothing at all is none: whether a call had arguments that
    were lost nobody knows. Raises ArgumentsError."""
    if why := why_not_to_run(raw_input):
        raise ArgumentsError(why)
    if not raw_input.strip():
        raise ArgumentsError("the call has no arguments; give a JSON object, {} for a tool that needs none")
    try:
        parsed = json.loads(raw_input, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ArgumentsError(_json_sentence(raw_input, error)) from None
    except RecursionError:
        raise ArgumentsError("the arguments are nested too deeply; give a flatter JSON object") from None
    except ValueError:
        raise ArgumentsError("the arguments hold a number with too many digits; give it as a string") from None
    if not isinstance(parsed, dict):
        raise ArgumentsError(f'the arguments are {_kind(parsed)}; a JSON object like {{"name": "value"}} is needed')
    return parsed


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentsError(f"the arguments name {_short(twice)} twice; give each once")
    return plain


def _refuse_constant(name: str) -> NoReturn:
    raise ArgumentsError(f"the arguments contain {name}, which is not JSON; give a number or null")


def _json_sentence(raw: str, error: json.JSONDecodeError) -> str:
    if error.pos >= len(raw.rstrip()) or error.msg.startswith("Unterminated string"):
        return (
            f"the arguments are not valid JSON: they break off after {len(raw)} characters ({error.msg}). "
            "If they were too long for one reply, do the work in smaller calls"
        )
    near = raw[max(0, error.pos - 30) : error.pos + 30]
    return f"the arguments are not valid JSON: {error.msg} at character {error.pos}, near {near!r}"


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


def _words_of(schema: Any) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}


def _part_that_failed(error: ValidationError) -> dict[str, Any]:
    """The one word of the schema, and of what stands beside it as much as its sentence names."""
    beside, value = _words_of(error.schema).get("properties", {}), cast(Any, error.instance)
    names: dict[str, Any] = {}
    match error.validator:
        case "required":
            lacking = {name: schema for name, schema in beside.items() if name not in value}
            names = {name: {"type": schema["type"]} for name, schema in lacking.items() if "type" in _words_of(schema)}
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
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CAP else f"{text[:_SHOWN_CAP]}… ({len(text)} characters)"
