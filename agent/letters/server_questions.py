"""Answers of people to MCP servers: they come as results from outside do, and are checked against what was asked."""

import json
from typing import Any, cast

from longhaul.agent.entries.server_questions import InputAnswered
from longhaul.agent.letters.bodies import Unusable
from longhaul.agent.plain.canonical import canonical_json
from longhaul.agent.plain.mistakes import shown
from longhaul.agent.plain.result_schema import wrong_places
from longhaul.agent.values.conversation.server_questions import ServerAsked, ServerQuestion, example

ACTIONS = ("accept", "decline", "cancel")
LONGEST_ANSWER_BYTES = 20_000


def answered(call_id: str, asked: ServerAsked, given: object, by: str) -> InputAnswered:
    """`given`: JSON or a value. `{"action": …, "content": …}`; one for each key where there are several questions; or
    one word for all."""
    value = _parsed(given)
    if isinstance(value, str) and value in ACTIONS:
        value = {key: {"action": value} for key in asked.questions}
    if not isinstance(value, dict):
        raise Unusable(f"results: {shown(given)} is no answer to {asked.server!r}; write {example(asked)}, or decline")
    answers = cast(dict[str, Any], value)
    if len(asked.questions) == 1 and isinstance(answers.get("action"), str):
        answers = dict.fromkeys(asked.questions, answers)
    if unknown := [key for key in answers if key not in asked.questions]:
        raise Unusable(f"results: {shown(unknown[0])} was not asked; answer {', '.join(asked.questions)}")
    if missing := [key for key in asked.questions if key not in answers]:
        raise Unusable(f"results: {shown(missing[0])} has no answer; write {example(asked)}")
    checked = {key: _checked(key, one, answers[key]) for key, one in asked.questions.items()}
    try:
        text = canonical_json(checked).decode()
    except (ValueError, RecursionError):
        raise Unusable(
            "results: the answer is no plain JSON; send texts, numbers, true, false and lists of texts"
        ) from None
    if len(text) > LONGEST_ANSWER_BYTES:
        raise Unusable(f"results: the answer has {len(text):,} bytes, and the most is {LONGEST_ANSWER_BYTES:,}")
    return InputAnswered(call_id=call_id, answers=text, by=by)


def _checked(key: str, question: ServerQuestion, answer: object) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise Unusable(f"results: {key}: {shown(answer)} is no answer; write an object with action and content")
    given = cast(dict[str, Any], answer)
    if other := sorted(set(given) - {"action", "content"}):
        raise Unusable(f"results: {key}: {shown(other[0])} is not known here; there are action and content")
    action, content = given.get("action"), given.get("content")
    if action not in ACTIONS:
        raise Unusable(f"results: {key}: action: {shown(action)} is none of {', '.join(ACTIONS)}")
    if action != "accept" or question.url:
        if content is not None:
            raise Unusable(f"results: {key}: content: there is nothing to fill in; leave it out")
        return {"action": action}
    content = {} if content is None else content
    if wrong := wrong_places(content, question.fields):
        raise Unusable(f"results: {key}: content does not fit what was asked: {'; '.join(wrong)}")
    return {"action": action, "content": content}


def _parsed(given: object) -> object:
    if not isinstance(given, str) or given.strip() in ACTIONS:
        return given.strip() if isinstance(given, str) else given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given
