"""Questions of an MCP server to a person, before it goes on with a call (elicitation): part of the call that waits.

Whatever stands here was written by a server: workers have bounded it, and have checked that each schema is one.
"""

import json
from typing import Any, Self

from longhaul.agent.plain.values import OpenValue, sparse

MOST_ROUNDS = 20
"""Questions of one call, one after the other."""
WARNING = "The answer goes to that server, and stands in this session's record: give no passwords."


class ServerQuestion(OpenValue):
    """One form to fill in, or one address to open."""

    message: str
    fields: dict[str, Any] = sparse({})
    """JSON Schema of the answer's `content`, an object, in the words of `agent.plain.result_schema`."""
    url: str = sparse("")
    """To be opened by the person, and never by us; such a question has no fields."""


class ServerAsked(OpenValue):
    """The questions of one round, and how the call goes on with the answers."""

    server: str
    questions: dict[str, ServerQuestion]
    """By the server's own keys."""
    state: str = sparse("")
    """What the server wants back with the answers, as it is; nobody is shown it."""
    from_start: bool = sparse(False)
    """The server keeps nothing of the call: it is made from its beginning, with all answers so far."""
    round: int = sparse(1)
    waits: bool = sparse(True)
    """No answer has come yet."""
    answers: dict[str, dict[str, Any]] = sparse({})
    """By key: `action` (accept, decline, cancel) and, of a form that is accepted, `content`."""

    def shown(self) -> Self | None:
        """For those who look at the call: without what the server wants back; None once it is answered."""
        return self.model_copy(update={"state": "", "answers": {}}) if self.waits else None


def in_words(asked: ServerAsked) -> str:
    """What a person reads who is to answer; of several questions each with its key."""
    several = len(asked.questions) > 1
    told = [f"{f'{key}: ' if several else ''}{_question(one)}" for key, one in asked.questions.items()]
    return f"The MCP server {asked.server!r} asks: {' '.join(told)} {WARNING}"


def example(asked: ServerAsked) -> str:
    """An answer that accepts, as JSON with a place for each value."""
    answers = {key: _accepted(one) for key, one in asked.questions.items()}
    return json.dumps(next(iter(answers.values())) if len(answers) == 1 else answers, ensure_ascii=False)


def _question(one: ServerQuestion) -> str:
    if one.url:
        return f"{one.message} (It wants you to open {one.url} yourself, and then to accept.)"
    required = one.fields.get("required", ())
    fields = [_field(name, field, needed=name in required) for name, field in one.fields.get("properties", {}).items()]
    return f"{one.message} ({'; '.join(fields) or 'no fields: accept, decline or cancel'})"


def _field(name: str, field: dict[str, Any], *, needed: bool) -> str:
    kind = field.get("type", "any")
    choices = field.get("enum") or field.get("items", {}).get("enum")
    words = [str(kind), *([] if needed else ["may be left out"])]
    words += [f"one of {json.dumps(choices, ensure_ascii=False)}"] if choices else []
    words += [
        f"{word} {field[word]}" for word in ("format", "minimum", "maximum", "minLength", "maxLength") if word in field
    ]
    words += [str(field[word]) for word in ("title", "description") if field.get(word)]
    return f"{name}: {', '.join(words)}"


def _accepted(one: ServerQuestion) -> dict[str, Any]:
    if one.url:
        return {"action": "accept"}
    return {"action": "accept", "content": dict.fromkeys(one.fields.get("properties", {}), "…")}
