"""A person's input in a form: what is asked of them, field by field, and whether what they gave fits.

The same check as for an agent's own answers, so that a schema means one thing wherever it is used.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from longhaul.agent.plain.errors import missing, short_form
from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.wire import Asked, Refused, asked_schema
from longhaul.starter.visible import harmless, one_line, visible

Schema = dict[str, Any]
_SKIPPED = "leave empty to leave it out"
_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


class InputForm:
    """What an input has to fit: a JSON schema of an object, and the pydantic model where it is one's."""

    def __init__(self, structured_model: Asked) -> None:
        """Raises Refused for what nothing can be asked in, MissingExtra in a client without the extra `worker`."""
        try:
            # Not above: a thin client has no checker, and is to have the names all the same.
            from longhaul.activities.tools.session_tools import BadAskedSchema, GenerateResponse  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise missing(error) from None
        self.schema: Schema = asked_schema(structured_model)
        self._model = structured_model if isinstance(structured_model, type) else None
        try:
            self._checking = GenerateResponse(self.schema)
        except BadAskedSchema as error:
            raise Refused(str(error).replace("structured_schema", "structured_model", 1)) from None

    def wrong(self, value: object) -> str:
        """What does not fit, each field with its value; empty where all does."""
        from longhaul.activities.tools.arguments import ArgumentsError  # noqa: PLC0415  see __init__

        if not isinstance(value, dict):
            names = ", ".join(field.name for field in fields_of(self.schema))
            return f"the answer is no JSON object (it is {short_form(value)}); give one with {names or 'no fields'}"
        given = cast(dict[str, Any], value)
        try:
            self._checking.check(given)
            if self._model is not None:
                self._model.model_validate(given)
        except ArgumentsError as error:
            return str(error)
        except ValidationError as error:
            return "the answer does not fit:\n" + "\n".join(_complaints(error))
        except (TypeError, ValueError, RecursionError):
            return "the answer is no plain JSON; give texts, numbers, true, false, lists and objects"
        return ""

    def value_of(self, said: str | Msg | Mapping[str, Any]) -> object:
        """The value that was given, as itself, as JSON or with a message; not checked yet."""
        if isinstance(said, Mapping):
            return dict(said)
        if isinstance(said, Msg) and said.metadata:
            return said.metadata
        text = said if isinstance(said, str) else said.get_text_content()
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text


@dataclass(frozen=True, slots=True)
class InputField:
    """One field of a form, as a line that is typed answers it."""

    name: str
    kind: str
    """text, number, yes or no, one of several (choice), or JSON."""
    about: str
    choices: tuple[str, ...]
    required: bool

    def question(self, kept: str = "") -> str:
        """On one line: the name, what is expected, and what an empty answer means. `kept`: what it leaves as it is."""
        expected = f"one of {', '.join(self.choices)}" if self.choices else self.kind
        empty = f"leave empty to keep {kept}" if kept else "" if self.required else _SKIPPED
        words = [word for word in (expected, self.about.rstrip(". "), empty) if word]
        return f"{self.name} ({'; '.join(words)})"

    def read(self, line: str) -> Any:
        """The value that a line stands for. Raises ValueError with a sentence that names field, line and what to do."""
        written = line.strip()
        match self.kind:
            case "text":
                return line
            case "choice" if written in self.choices:
                return written
            case "choice":
                raise ValueError(
                    f"{self.name}: {short_form(written)} is none of {', '.join(self.choices)}; type one of them"
                )
            case "yes or no" if written.lower() in _YES:
                return _YES[written.lower()]
            case "yes or no":
                raise ValueError(f"{self.name}: {short_form(written)} is neither yes nor no; type one of the two")
            case _:
                try:
                    return json.loads(written, parse_constant=_no_number)
                except (ValueError, RecursionError):
                    raise ValueError(
                        f"{self.name}: {short_form(written)} is no {self.kind}; type it as in JSON"
                    ) from None


def fields_of(schema: Schema) -> Iterator[InputField]:
    """Those of the top, in the schema's order."""
    properties, required = schema.get("properties"), schema.get("required")
    wanted = cast(list[object], required) if isinstance(required, list) else []
    for name, field in cast(Schema, properties).items() if isinstance(properties, dict) else ():
        meant = _meant(field, schema)
        match meant.get("enum"), meant.get("type"):
            case [*several], _ if several and all(isinstance(one, str) for one in several):
                kind, choices = "choice", tuple(several)
            case None, "boolean":
                kind, choices = "yes or no", ()
            case None, "string" if "const" not in meant:
                kind, choices = "text", ()
            case None, "integer" | "number":
                kind, choices = "number", ()
            case _:
                kind, choices = "JSON", ()
        # A title that is only its name says nothing of a field: pydantic gives it to each.
        said = meant.get("description") or meant.get("title")
        about = said if isinstance(said, str) and said.lower() != name.lower().replace("_", " ") else ""
        yield InputField(name, kind, about, choices, name in wanted)


def fill_in(
    schema: Schema, ask: Callable[[str], str], tell: Callable[[str], object], kept: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The value that somebody types, field by field; what can't be read is told, and asked for again. `kept`: the value
    before, of which an empty line keeps a field. `ask` raises EOFError where nobody types any more."""
    value = dict(kept or {})
    for field in fields_of(schema):
        before = short_form(value[field.name]) if field.name in value else ""
        while True:
            line = ask(f"{one_line(visible(field.question(before)))}: ")
            if not line.strip() and (before or not field.required):
                break
            try:
                value[field.name] = field.read(line)
                break
            except ValueError as error:
                tell(harmless(str(error)))
    return value


def _meant(field: object, root: Schema) -> Schema:
    """Of a reference what it names, and of a choice between one and null that one."""
    found = cast(Schema, field) if isinstance(field, dict) else {}
    for _ in range(5):  # a schema can name itself
        there: object = None
        if isinstance(name := found.get("$ref"), str):
            word, _, key = name.removeprefix("#/").partition("/")
            there = (root.get(word) or {}).get(key)
        elif isinstance(several := found.get("anyOf"), list):
            others = [one for one in several if one != {"type": "null"}]
            there = others[0] if len(others) == 1 else None
        if not isinstance(there, dict):
            return found
        found = {**cast(Schema, there), **{word: found[word] for word in ("title", "description") if word in found}}
    return found


def _complaints(error: ValidationError) -> Iterator[str]:
    for one in error.errors(include_url=False)[:10]:
        place = ".".join(str(part) for part in one["loc"]) or "the answer"
        yield f"- {place}: {one['msg'].removeprefix('Value error, ')} (it is {short_form(one.get('input'))})"


def _no_number(name: str) -> None:
    raise ValueError(name)
