"""Leaves out of requests what a provider has refused for a model: which parameter a refusal names, and how the next
request does without it. A worker remembers it, so that a rule that has changed costs one request and never a reply.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from longhaul.activities.models.failures.error_bodies import for_a_person
from longhaul.activities.models.failures.failure_classification import refusal_in, said_of_request
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.requests.late_tools import LATE_TOOLS

EFFORT_NONE = "effort none"
"""The server takes the request with this effort alone."""
BACKGROUND = "background"
"""The account keeps no answers, so one that is cut off is asked for again."""
OTHER_LIMIT = "max_tokens"
"""The server has the other name of Chat Completions for the limit of output."""
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    EFFORT_NONE: (),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "stop": ("stop", "stop_sequences"),
    "seed": ("seed",),
    "summary": ("reasoning.summary", "summary"),
    "effort": ("reasoning_effort", "reasoning.effort", "output_config.effort", "output_config", "effort"),
    "thinking": (
        "thinking",
        "thinking_budget",
        "enable_thinking",
        "budget_tokens",
        "thinking.type",
        "thinking.budget_tokens",
    ),
    "verbosity": ("verbosity", "text.verbosity"),
    "service_tier": ("service_tier",),
    "encrypted": ("include", "reasoning.encrypted_content"),
    "stream_options": ("stream_options",),
    BACKGROUND: ("background", "store"),
    OTHER_LIMIT: (),
    "cache marks": ("cache_control",),
    LATE_TOOLS: ("tool_addition", "additional_tools"),
}
"""By our name of it: the fields in which APIs have it, and by which their refusals name it."""
_PATHS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    **{name: ((name,), ("extra_body", name)) for name in ("temperature", "top_p", "stop", "seed", "service_tier")},
    "stop": (("extra_body", "stop"), ("extra_body", "stop_sequences")),
    "summary": (("reasoning", "summary"),),
    "effort": (("reasoning_effort",), ("reasoning", "effort"), ("output_config",)),
    "thinking": (("thinking",), ("extra_body", "enable_thinking"), ("extra_body", "thinking_budget")),
    "verbosity": (("extra_body", "verbosity"), ("extra_body", "text")),
    "encrypted": (("include",),),
    "stream_options": (("stream_options",),),
}
_REFUSES = re.compile(
    r"unsupported|not (?:currently )?support|n't support|does not support|not permitted|not allowed|extra inputs"
    r"|unknown|unrecognized|unexpected|unrecognised|is deprecated|not compatible|incompatible|must be verified"
    r"|invalid (?:temperature|value)|only .{1,20} is allowed|only the default|does not exist|no longer",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*")
_BY_WORDS = (
    (EFFORT_NONE, re.compile(r"set \W?(?:reasoning_effort|reasoning\.effort)\W+to\W+none", re.IGNORECASE)),
    (OTHER_LIMIT, re.compile(r"use \W?max_completion_tokens", re.IGNORECASE)),
    ("summary", re.compile(r"reasoning.{0,3}summar", re.IGNORECASE)),
    ("encrypted", re.compile(r"encrypted.content is not supported", re.IGNORECASE)),
    (LATE_TOOLS, re.compile(r"tool_addition|additional_tools|inline.tools|role '?\"?system", re.IGNORECASE)),
    (BACKGROUND, re.compile(r"background (?:mode|responses?)|zero.data.retention", re.IGNORECASE)),
)
"""What refusals say that name no field, or one that is not to be left out."""
_UNASKED = frozenset({EFFORT_NONE, OTHER_LIMIT, "summary", "encrypted", "stream_options", BACKGROUND, LATE_TOOLS})
"""Nobody has asked for these, so that their absence is said once."""
_STATUSES = frozenset({400, 422})
_AT_ONCE = 4
"""Parameters that are left out of one call, one after another."""
MODELS_KEPT = 1_000
"""Of one that was forgotten it is learned again."""


class RefusedParameters:
    """Of one worker's providers. What a server has refused for a model holds until the worker ends."""

    def __init__(self) -> None:
        self._learned = dict[tuple[str, str], dict[str, str]]()
        """By address and model: the parameters, and the provider's words."""

    async def asked(
        self, base_url: str, request: ModelRequest, attempt: Callable[[ModelRequest], Awaitable[ModelReply]]
    ) -> ModelReply:
        """The reply to the request without what the server has refused; again without what it refuses now."""
        where = (base_url, request.model if request.profile is None else request.profile.model)
        known = dict(self._learned.get(where, {}))
        before = frozenset(known)
        for _ in range(_AT_ONCE):
            try:
                return _with_notes(await attempt(replace(request, refused=frozenset(known))), known, before)
            except Exception as error:
                name, words = refused_by(error)
                if not name or name in known:
                    raise
                known[name] = words
                self._learned[where] = dict(known)
                if len(self._learned) > MODELS_KEPT:
                    del self._learned[next(iter(self._learned))]
        return _with_notes(await attempt(replace(request, refused=frozenset(known))), known, before)


def _with_notes(reply: ModelReply, known: Mapping[str, str], before: frozenset[str]) -> ModelReply:
    notes = [
        f"The provider has refused {name!r} for this model, and the request goes without it: {words}"
        if name != EFFORT_NONE
        else f"The model is asked for effort 'none', as its provider demands: {words}"
        for name, words in known.items()
        if name not in before or name not in _UNASKED
    ]
    return replace(reply, notes=(*reply.notes, *notes)) if notes else reply


def refused_by(error: Exception) -> tuple[str, str]:
    """Our name of the parameter that a provider has refused, and its words for a person; empty where it means something
    else: the conversation, its length, or an account."""
    said = said_of_request(error)
    if said is None or said.status not in _STATUSES:
        return "", ""
    words = for_a_person(said.message)
    if by_words := [name for name, expression in _BY_WORDS if expression.search(said.message)]:
        return by_words[0], words
    if refusal_in(error)[0] is not None:
        return "", ""
    if name := _name_of(said.param):
        return name, words
    if not _REFUSES.search(said.message):
        return "", ""
    found = (_name_of(each) for each in _NAMED.findall(said.message))
    return next(filter(None, found), ""), words


def _name_of(field: str) -> str:
    field = field.strip("`'\" ").lower()
    return next((name for name, fields in PARAMETERS.items() if field in fields), "")


def without_refused(payload: dict[str, Any], refused: Iterable[str]) -> dict[str, Any]:
    """An SDK's arguments without those parameters."""
    left = dict(payload)
    for name in refused:
        if name == "cache marks":
            left = {field: _unmarked(value) for field, value in left.items()}
        if name == OTHER_LIMIT and "max_tokens" in left:
            left["max_completion_tokens"] = left.pop("max_tokens")
        if name == EFFORT_NONE:
            left |= {"reasoning_effort": "none"} if "reasoning" not in left else {"reasoning": {"effort": "none"}}
        for path in _PATHS.get(name, ()):
            left = _without(left, path)
    return left


def _without(value: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    first, *rest = path
    if first not in value:
        return value
    inner = _without(value[first], tuple(rest)) if rest and isinstance(value[first], dict) else None
    others = {name: each for name, each in value.items() if name != first}
    return {**others, first: inner} if inner else others


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    if isinstance(value, dict) and ("cache_control" in value or isinstance(value.get("content"), list)):
        return {name: _unmarked(each) for name, each in value.items() if name != "cache_control"}
    return value
