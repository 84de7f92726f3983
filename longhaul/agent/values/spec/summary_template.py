"""A template makes a summary's fields its text: `{field}`s are filled in, and nothing in the values is ever
interpreted."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from longhaul.agent.plain.errors import BadInput
from longhaul.agent.plain.text import tag_of, without

_MARKS = re.compile(r"\{\{|\}\}|\{(?P<field>\w[\w-]*)\}")
_OUR_TAG = tag_of("system-info")


_FIELDS = {
    "task_overview": "What the user wants, its limits, and how success is judged.",
    "current_state": "What is done, with files, commands and results.",
    "important_discoveries": "Analysis, decisions with reasons, errors and what solved them, what did not work.",
    "next_steps": "What is left to do, in order, with what blocks it.",
    "context_to_preserve": "Preferences, promises, names, times, and open questions.",
}

DEFAULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string", "description": text} for name, text in _FIELDS.items()},
    "required": list(_FIELDS),
}
"""The seed's five."""


class BadTemplate(BadInput, ValueError):
    """A summary's template or schema can't be used; the text names the setting and what to do."""


def field_names(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of a summary's schema. Raises BadTemplate when it is no schema of an object with properties."""
    properties = schema.get("properties")
    if schema.get("type", "object") != "object" or not isinstance(properties, dict) or not properties:
        raise BadTemplate("summary_schema: it has to describe an object with properties, one for each field")
    return tuple(cast(dict[str, Any], properties))


def check_template(template: str, schema: Mapping[str, Any]) -> None:
    """Raise BadTemplate, naming it, for a `{field}` that the schema lacks; literal braces elsewhere are fine."""
    known = field_names(schema)
    used = [found["field"] for found in _MARKS.finditer(template) if found["field"]]
    unknown = next((name for name in used if name not in known), None)
    if unknown is not None:
        raise BadTemplate(
            f"summary_template: the summary has no field {unknown!r}; it has {', '.join(known)}. "
            "Write {{ and }} for braces that are meant as such"
        )
    if not used:
        raise BadTemplate(f"summary_template: it shows no field; write for example {{{known[0]}}} where one belongs")


def fill(template: str, fields: Mapping[str, Any]) -> str:
    """`template` with the fields in their places, `{{` and `}}` as single braces, and everything else as it stands."""

    def put(found: re.Match[str]) -> str:
        name = found["field"]
        return field_text(fields.get(name)) if name else found[0][0]

    return _MARKS.sub(put, template)


def field_text(value: Any) -> str:
    """A field's value as text: strings as they are, lists as lines, all else as JSON; our own tags made harmless."""
    match value:
        case None:
            text = ""
        case str():
            text = value.strip()
        case list() if all(isinstance(item, str) for item in value):  # pyright: ignore[reportUnknownVariableType]
            text = "\n".join(f"- {item}" for item in value)  # pyright: ignore[reportUnknownVariableType]
        case _:
            text = json.dumps(value, ensure_ascii=False)
    return without_our_tags(text)


def without_our_tags(text: str) -> str:
    """Text that can neither close nor open our `<system-info>`: what models and files say must not look like ours."""
    return without(_OUR_TAG, text)
