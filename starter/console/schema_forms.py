"""Forms made from JSON schemas, which a stranger may have written: for the arguments of a call, and for what an MCP
server asks a person.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

from longhaul.agent.operations.result_operations import ACTIONS
from longhaul.agent.permission.preview import NAME_CHARS, brief
from longhaul.agent.plain.text import parsed, told_apart
from longhaul.agent.values.conversation.messages import ServerAsked, ServerQuestion
from longhaul.starter.console.transcript import DiffLine, marked, value_change
from longhaul.starter.serve.problems import wrong

MOST_FIELDS = 40
"""Of more arguments the form has one field for all of them."""
PREFIX = "arg."
WHOLE = "arg"
"""Name of that one field."""
_DESCRIPTION_CHARS = 400
_LINE_CHARS = 80
_TRUTHS = ("true", "false")

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One argument."""

    name: str
    key: str
    """In the form."""
    label: str
    description: str
    kind: str
    """line, text, number, choice or json."""
    value: str
    """As it is shown first."""
    choices: tuple[str, ...]
    required: bool


def fields_of(arguments: str, schema: Schema) -> list[Field]:
    """The fields for a call's JSON arguments, those of the schema first; one for all where there is no schema of an
    object, or where they are too many."""
    given, properties = parsed(arguments), schema.get("properties")
    known = cast(Schema, properties) if isinstance(properties, dict) else {}
    names = [*known, *(name for name in given or {} if name not in known)]
    if given is None or not names or len(names) > MOST_FIELDS:
        return [Field("", WHOLE, "arguments", "A JSON object", "json", _ascii(arguments), (), required=True)]
    required = schema.get("required")
    wanted = cast(list[object], required) if isinstance(required, list) else []
    return [_field(name, _meant(known.get(name), schema), given, is_wanted=name in wanted) for name in names]


def _field(name: str, schema: Schema, given: Mapping[str, Any], *, is_wanted: bool) -> Field:
    kind, choices = _kind(schema, given.get(name), is_given=name in given)
    value = _field_text(kind, given[name]) if name in given else ""
    if kind == "text" and len(value) <= _LINE_CHARS and "\n" not in value and name in given:
        kind = "line"
    description = schema.get("description")
    return Field(
        name=name,
        key=PREFIX + json.dumps(name),
        label=brief(name, NAME_CHARS),
        description=brief(description, _DESCRIPTION_CHARS) if isinstance(description, str) else "",
        kind=kind,
        value=value,
        choices=choices,
        required=is_wanted,
    )


def _meant(schema: object, root: Schema) -> Schema:
    """The schema itself, of a reference what it names, of a choice between one and null that one."""
    found = cast(Schema, schema) if isinstance(schema, dict) else {}
    for _ in range(5):  # a schema can name itself
        if isinstance(name := found.get("$ref"), str):
            defined = root.get("$defs")
            there = defined.get(name.removeprefix("#/$defs/")) if isinstance(defined, dict) else None
        elif isinstance(several := found.get("anyOf"), list):
            others = [one for one in several if one != {"type": "null"}]
            there = others[0] if len(others) == 1 else None
        else:
            return found
        if not isinstance(there, dict):
            return found
        found = {**{key: found[key] for key in ("description",) if key in found}, **cast(Schema, there)}
    return found


def _kind(schema: Schema, value: object, *, is_given: bool) -> tuple[str, tuple[str, ...]]:
    """What is given decides, where it is not of the schema's type, or would not be seen as it is."""
    match schema.get("enum"), schema.get("type"):
        case [*several], _ if several and all(isinstance(one, str) and told_apart(one) == one for one in several):
            choices = tuple(dict.fromkeys(cast(list[str], several)))
            return ("choice", choices) if not is_given or value in choices else ("json", ())
        case None, "boolean":
            return ("choice", _TRUTHS) if not is_given or isinstance(value, bool) else ("json", ())
        case None, "integer" | "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return ("number" if not is_given or is_number else "json"), ()
        case None, "string":
            is_plain = isinstance(value, str) and told_apart(value) == value
            return ("text" if not is_given or is_plain else "json"), ()
        case _:
            return "json", ()


def _field_text(kind: str, value: object) -> str:
    return value if isinstance(value, str) and kind != "json" else json.dumps(value)


def _ascii(arguments: str) -> str:
    """In JSON a sign outside of ASCII can be written by its number: then nothing hides."""
    try:
        return json.dumps(json.loads(arguments), indent=1)
    except (ValueError, RecursionError):
        return told_apart(arguments)


def edited(fields: list[Field], arguments: str, form: Mapping[str, str]) -> dict[str, Any]:
    """The arguments as the form has them. Raises Problem, which names the field."""
    if fields[0].key == WHOLE:
        whole = _json(fields[0], form.get(WHOLE, ""))
        if not isinstance(whole, dict):
            raise wrong(fields[0].label, form.get(WHOLE, ""), "is no JSON object; nothing is decided yet")
        return cast(dict[str, Any], whole)
    given, made = parsed(arguments) or {}, dict[str, Any]()
    for field in fields:
        written = form.get(field.key, "")
        if written == field.value:
            made |= {field.name: given[field.name]} if field.name in given else {}
        elif written or (field.required and field.kind in ("line", "text")):
            made[field.name] = _value(field, written)
    return made


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field whose argument is to be another one than the call's."""

    label: str
    note: str
    """What the lines can't show: that the argument was left out, is left out now, or is empty."""
    lines: tuple[DiffLine, ...]


def changes_of(fields: list[Field], form: Mapping[str, str]) -> list[FieldChange]:
    """In the order of the fields."""
    found = list[FieldChange]()
    for field in fields:
        written = form.get(field.key, "")
        if written == field.value:
            continue
        empty = "empty" if field.required and field.kind in ("line", "text") else "left out"
        note = f"{empty} until now" if not field.value else f"now {empty}" if not written else ""
        found.append(FieldChange(field.label, note, tuple(value_change(field.value, written))))
    return found


def form_digest(fields: list[Field], form: Mapping[str, str]) -> str:
    """Names what the fields hold: other values than a person has looked over are not sent."""
    held = json.dumps([(field.key, form.get(field.key, "")) for field in fields])
    return hashlib.sha256(held.encode("utf-8", "surrogatepass")).hexdigest()


def _value(field: Field, written: str) -> Any:
    match field.kind:
        case "line" | "text":
            return written
        case "choice" if field.choices != _TRUTHS:
            return written
        case "number":
            value = _json(field, written.strip())
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise wrong(field.label, written, "is no number; nothing is decided yet")
            return value
        case _:
            return _json(field, written)


def _json(field: Field, written: str) -> Any:
    try:
        return json.loads(written, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise wrong(field.label, written, f"is not JSON ({error}); nothing is decided yet") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """One question. The names of its fields begin with its number, so that those of two never meet."""

    legend: str
    action: str
    """Name of the field that accepts, declines or cancels."""
    fields: tuple[Field, ...]
    """As they are named in the whole form."""


def forms_of(asked: ServerAsked | None) -> list[QuestionForm]:
    """One for each question, in the server's order; none for a call that no server asks about."""
    named = asked.questions.items() if asked else ()
    return [
        QuestionForm(
            legend=marked(key) if len(named) > 1 else "Your answer",
            action=f"{number}.action",
            fields=tuple(replace(one, key=f"{number}.{one.key}") for one in _fields(question)),
        )
        for number, (key, question) in enumerate(named)
    ]


def answers_of(asked: ServerAsked, form: Mapping[str, str]) -> dict[str, Any]:
    """By the server's keys. Raises Problem, which names the field."""
    answers: dict[str, Any] = {}
    for number, (key, question) in enumerate(asked.questions.items()):
        own = {name.removeprefix(f"{number}."): value for name, value in form.items() if name.startswith(f"{number}.")}
        action = own.get("action", "")
        if action not in ACTIONS:
            raise wrong("action", action, f"is none of {', '.join(ACTIONS)}; choose one")
        if action != "accept" or question.url:
            answers[key] = {"action": action}
        else:
            fields = _fields(question)
            answers[key] = {"action": action, "content": edited(fields, _defaults(question), own) if fields else {}}
    return answers


def _fields(question: ServerQuestion) -> list[Field]:
    return fields_of(_defaults(question), question.fields) if question.fields.get("properties") else []


def _defaults(question: ServerQuestion) -> str:
    """What a form shows first: whoever leaves it as it is answers that."""
    properties: dict[str, Any] = question.fields.get("properties", {})
    return json.dumps({name: field["default"] for name, field in properties.items() if "default" in field})
