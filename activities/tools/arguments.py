"""The arguments that a model writes: read strictly, and what is wrong with them said in a sentence."""

import json
from typing import Any, NoReturn

from jsonschema.exceptions import ValidationError

_SHOWN_CAP = 120


class ArgumentsError(Exception):
    """The model's mistake: its arguments can't be used; the text is a sentence that it can act on."""


def parse_arguments(raw_input: str) -> dict[str, Any]:
    """One JSON object, strictly: no repeated key, no NaN. Nothing at all counts as `{}`. Raises ArgumentsError."""
    if not raw_input.strip():
        return {}
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
    """What is wrong, naming the field, the value and what is expected."""
    field = ".".join(str(part) for part in error.absolute_path) or "the arguments"
    value: Any = error.instance
    expected: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case "required":
            missing = [name for name in expected if name not in value]
            return f"{field}: {', '.join(map(repr, missing))} is missing"
        case "additionalProperties" if expected is False:
            known = sorted(schema.get("properties", {}))
            unknown = sorted(set(value) - set(known))
            return (
                f"{field}: {', '.join(map(_short, unknown))} is not known here; known are {', '.join(known) or 'none'}"
            )
        case "type":
            wanted = " or ".join(expected) if isinstance(expected, list) else str(expected)
            return f"{field}: {_short(value)} is {_kind(value)}, but {wanted} is expected"
        case "enum":
            return f"{field}: {_short(value)} is not one of {', '.join(map(_short, expected))}"
        case "minimum" | "maximum" | "minLength" | "maxLength" | "pattern" | "minItems" | "maxItems":
            return f"{field}: {_short(value)} does not fit {error.validator} {expected}"
        case _:
            return f"{field}: {_cut(error.message)} (expected: {error.validator} {_short(expected)})"


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
