"""Answers of a given form, and answers in words alone: how they are asked for where they can't be forced, and how the
form is read from a reply.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

from longhaul.activities.models.failures.error_meanings import says_too_long
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest, scrub_json
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.activities.models.requests.turns import answer_schema, depth_fits
from longhaul.agent.values.conversation.messages import (
    BROKEN_OFF,
    REFUSALS,
    StopReason,
    TextBlock,
    ToolCallBlock,
    UserMsg,
)

NOT_FORCED = "The server does not force an answer's form; it was asked for in words."
NOT_FORBIDDEN = "The server does not forbid calls; the tools were left out, so that what it has cached is not used."

_STATUSES = frozenset({400, 404, 422, 500, 501})
_NO_FORCING = re.compile(r"tool.?choice|response.?format|function.?call|\btools?\b", re.IGNORECASE)
_FENCED = re.compile(r"```[a-zA-Z]*[^\S\n]*\n(.*?)```", re.DOTALL)
_SHOWN_CHARS = 120


class BadAnswer(Exception):
    """The reply is not what was asked for. The text says why, so that the model can do better."""


Attempt = Callable[[ModelRequest, list[str]], Awaitable[ModelReply]]
"""One call of a provider; notes of what it could not express go into the list."""


async def forbidden_last(
    request: ModelRequest,
    ask: Callable[[ModelRequest, Callable[[Delta], None]], Awaitable[ModelReply]],
    on_delta: Callable[[Delta], None],
) -> ModelReply:
    """The reply of a model that may call no tool, where to forbid it loses what the provider has cached: Claude's
    messages are cached under the choice of tools ("Prompt caching", platform.claude.com), and Mistral can be forbidden
    only by leaving out the tools. The context says in words that no tool may be called; a model that calls one all the
    same is asked again, and forbidden to."""
    if not (request.no_calls and request.tools):
        return await ask(request, on_delta)
    reply = await ask(replace(request, no_calls=False), on_delta)
    if not any(isinstance(block, ToolCallBlock) for block in reply.content):
        return reply

    def hear(delta: Delta) -> None:
        on_delta(replace(delta, index=delta.index + len(reply.content)))

    forbidden = await ask(request, hear)
    return replace(forbidden, usage=reply.usage + forbidden.usage)


async def forced_or_in_words(request: ModelRequest, attempt: Attempt) -> ModelReply:
    """The reply of `attempt`; once more, with the form in words or without tools, when the server refuses to be told
    which of them the model may call."""
    if request.behind_prefix:
        return await attempt(in_words(request), [])
    if not rules_of(request.model).forced and (request.answer or request.must_call):
        return await attempt(replace(in_words(request), must_call=""), [NOT_FORCED])
    try:
        return await attempt(request, [])
    except Exception as error:
        forbidding = request.no_calls and bool(request.tools)
        if not (request.answer or forbidding or request.must_call) or not refuses_to_force(error):
            raise
    if request.must_call:
        return await attempt(replace(request, must_call=""), [NOT_FORCED])
    if request.answer is None:
        return await attempt(replace(request, tools=(), no_calls=False), [NOT_FORBIDDEN])
    return await attempt(in_words(request), [NOT_FORCED])


def refuses_to_force(error: Exception) -> bool:
    """Whether a server says that it has no tools or no choice of one; both SDKs keep status and text alike."""
    status, text = getattr(error, "status_code", getattr(error, "status", 0)), str(error)
    return status in _STATUSES and bool(_NO_FORCING.search(text)) and not says_too_long(status, (), text)


def in_words(request: ModelRequest) -> ModelRequest:
    """The same request with the answer's form in a last user message."""
    if request.answer is None:
        return request
    text = (
        "Answer with one JSON object in a ```json block and with nothing else. It has to fit this JSON schema:\n"
        + json.dumps(answer_schema(request.answer), ensure_ascii=False)
    )
    return replace(request, answer=None, messages=[*request.messages, UserMsg("user", text)])


def answer_of(reply: ModelReply) -> dict[str, Any]:
    """The JSON object in a reply: the arguments of its first call, or else of its text, fenced or not.

    Raises BadAnswer. The schema is not checked here.
    """
    calls = [block.input for block in reply.content if isinstance(block, ToolCallBlock)]
    text = "\n".join(block.text for block in reply.content if isinstance(block, TextBlock)).strip()
    for candidate in calls[:1] or _objects_in(text):
        try:
            answer = json.loads(candidate, parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
        if isinstance(answer, dict) and depth_fits(answer):
            found: dict[str, Any] = scrub_json(answer)
            return found
    raise BadAnswer(_why(reply, text, called=bool(calls)))


def called_in_words(reply: ModelReply, tool: str) -> ModelReply:
    """The reply with a call of `tool` behind its words, where these are one JSON object, fenced or not, and nothing
    else: some models write a form that was asked for, and call nothing."""
    texts = [block.text for block in reply.content if isinstance(block, TextBlock)]
    text = "\n".join(texts).strip()
    fenced = _FENCED.fullmatch(text)
    if reply.stop is not StopReason.END or any(isinstance(block, ToolCallBlock) for block in reply.content):
        return reply
    try:
        found = json.loads(fenced[1] if fenced else text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return reply
    if not isinstance(found, dict) or not depth_fits(found):
        return reply
    call = ToolCallBlock(id="", name=tool, input=json.dumps(scrub_json(found), ensure_ascii=False))
    return replace(reply, content=(*reply.content, call))


def _objects_in(text: str) -> Iterator[str]:
    yield text
    yield from _FENCED.findall(text)
    if "{" in text:
        yield text[text.index("{") : text.rfind("}") + 1]


def _why(reply: ModelReply, text: str, *, called: bool) -> str:
    if reply.stop in BROKEN_OFF:
        return "the answer broke off at the limit of output tokens; it has to be shorter"
    if reply.stop in REFUSALS:
        return f"the model refused ({reply.stop_reason})"
    if called:
        return "the arguments are no JSON object"
    if not text:
        return "the reply was empty"
    shown = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    return f"the reply was no JSON object but the text {shown!r}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
