"""A form for what an MCP server asks a person: an answer to each question, with a field for each value.

The server has written names, choices and defaults, as strangers write a tool's schema.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from longhaul.agent.letters.result_operations import ACTIONS
from longhaul.agent.values.conversation.messages import ServerAsked, ServerQuestion
from longhaul.starter.console.edit_form import Field, edited, fields_of
from longhaul.starter.console.waiting_calls import marked
from longhaul.starter.serve.problems import wrong


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
    return {key: _answer(number, question, form) for number, (key, question) in enumerate(asked.questions.items())}


def _answer(number: int, question: ServerQuestion, form: Mapping[str, str]) -> dict[str, Any]:
    own = {name.removeprefix(f"{number}."): value for name, value in form.items() if name.startswith(f"{number}.")}
    action = own.get("action", "")
    if action not in ACTIONS:
        raise wrong("action", action, f"is none of {', '.join(ACTIONS)}; choose one")
    if action != "accept" or question.url:
        return {"action": action}
    fields = _fields(question)
    return {"action": action, "content": edited(fields, _defaults(question), own) if fields else {}}


def _fields(question: ServerQuestion) -> list[Field]:
    return fields_of(_defaults(question), question.fields) if question.fields.get("properties") else []


def _defaults(question: ServerQuestion) -> str:
    """What a form shows first: whoever leaves it as it is answers that."""
    properties: dict[str, Any] = question.fields.get("properties", {})
    return json.dumps({name: field["default"] for name, field in properties.items() if "default" in field})
