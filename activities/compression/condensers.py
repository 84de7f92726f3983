"""Condensers: each gets a look at a context and a way to ask a model, and gives back the context that should be. An
agent's are asked in order; the first answer that makes room is taken.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from temporalio.exceptions import ApplicationError

from longhaul.activities.compression.summary_texts import (
    PROMPT,
    SYSTEM,
    Piece,
    answer_form,
    enclosed,
    harmless,
    pieces_of,
    readable_text,
    shortened,
    template_of,
)
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.models.model import AnswerSchema
from longhaul.activities.process.threads import is_cancelled_here
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.plain.values import digest_of
from longhaul.agent.reducer.context_state import MASK
from longhaul.agent.values.conversation.messages import (
    DATA_TOKENS,
    FRAME_TOKENS,
    DataBlock,
    Msg,
    ToolResultBlock,
    Usage,
)
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.agent.values.spec.summary_template import field_text, fill
from longhaul.stores.loading import found_at, names_in

Count = Callable[[str], int]
"""Tokens of a text, for the model at hand."""
CountFor = Callable[[str, str], int]
"""Tokens of a text for the model of that full name, as `TokenCounter.count_text`. Called in threads too."""


def no_complaint(fields: Mapping[str, Any]) -> str:
    """The check of a question that takes every answer that fits its schema."""
    return ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model. `pieces` is the material; it is shortened if it does not fit the model's window."""

    system: str
    pieces: Sequence[Piece]
    task: str
    """The task. It comes last, and is never shortened."""
    answer: AnswerSchema | None = None
    check: Callable[[Mapping[str, Any]], str] = no_complaint
    """Returns what is wrong with an answer that fits the schema, or an empty text. The model reads it once."""
    about_context: bool = False
    """The material is the context itself. The session's model may then read the messages behind its cached prefix
    instead."""


@dataclass(frozen=True, slots=True)
class SummaryAnswer:
    fields: dict[str, Any]
    """Empty where no form was asked for."""
    text: str
    model: str


Ask = Callable[[Question], Awaitable[SummaryAnswer]]
"""The session's model, then its fallback. What it costs is counted; what it raises is best let through."""


@dataclass(frozen=True, slots=True)
class View:
    """The context to shorten. Indexes count in `messages`."""

    messages: tuple[Msg, ...]
    """Messages without the old summary."""
    old_summary: str
    """The old summary. Empty: there was none."""
    keep_from: int
    pinned: tuple[int, ...]
    goal_tokens: int
    """Goal in tokens for everything before `keep_from`, the summary included, `pinned` messages not."""
    system_prompt: str
    context_config: ContextConfig
    instructions: str
    must_mention: tuple[str, ...]
    count: Count
    ask: Ask

    def droppable(self) -> tuple[int, ...]:
        """Indexes of the messages that may be dropped."""
        return tuple(index for index in range(self.keep_from) if index not in set(self.pinned))

    def tokens(self, messages: Sequence[Msg], summary: str = "") -> int:
        """Tokens of these messages and a summary together."""
        frame = FRAME_TOKENS if summary else 0
        return sum(message_tokens(message, self.count) for message in messages) + frame + self.count(summary)


@dataclass(frozen=True, slots=True)
class Condensation:
    """What stays in the context: the messages in `pinned`, then `messages[keep_from:]`, without the results of
    `masked`."""

    keep_from: int
    pinned: tuple[int, ...] = ()
    masked: tuple[int, ...] = ()
    summary: str | None = None
    """The whole new summary. None = the old summary stays."""
    fields: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    prompt_digest: str = ""
    usage: Usage | None = None
    """Tokens of model calls that `View.ask` did not make."""


class Condenser(Protocol):
    """Code that shortens a context. It raises no error of its own: if it can't help, it returns None, and the next
    condenser is asked."""

    async def condense(self, view: View) -> Condensation | None: ...


def by_bytes(text: str, model: str = "") -> int:
    """Tokens, guessed for whatever model: a third of the bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


def message_tokens(message: Msg, count: Count) -> int:
    data = sum(isinstance(block, DataBlock) for block in message.content)
    data += sum(
        isinstance(part, DataBlock)
        for result in message.get_tool_results()
        if not isinstance(result.output, str)
        for part in result.output
    )
    return FRAME_TOKENS + data * DATA_TOKENS + count(readable_text(message))


ANSWER_LIMIT_BYTES = 400_000
"""The summary crosses the history as text and as fields, beside everything else of its entry."""


MOST_WORDS = 2_000
"""Of a summary, however large the window: nobody reads back a longer one."""
INSTRUCTIONS_CAP_TOKENS = 1_000


class CondenserSetupError(BadSetup):
    """A mistake in the worker's settings: a condenser that can't be loaded."""


class Summary:
    """A model writes what the agent needs to continue, and the messages are dropped."""

    async def condense(self, view: View) -> Condensation | None:
        if not view.droppable():
            return None
        template = template_of(view.context_config)
        pieces = [Piece(enclosed("agent-instructions", view.system_prompt), whole=True)] if view.system_prompt else []
        if view.old_summary:
            pieces.append(Piece(enclosed("earlier-summary", view.old_summary), whole=True))
        for index, message in enumerate(view.messages[: view.keep_from]):
            pieces += pieces_of(index, message, " (the agent keeps this message)" if index in view.pinned else "")
        question = Question(
            system=SYSTEM,
            pieces=tuple(pieces),
            task=_task(view),
            answer=answer_form(view.context_config),
            check=_complaint,
            about_context=True,
        )
        answer = await view.ask(question)
        return Condensation(
            keep_from=view.keep_from,
            pinned=view.pinned,
            summary=fill(template, answer.fields),
            fields=answer.fields,
            model=answer.model,
            prompt_digest=digest_of(
                {
                    "system": question.system,
                    "task": question.task,
                    "schema": answer_form(view.context_config).schema,
                    "template": template,
                }
            ),
        )


class DropOldest:
    """Drops the oldest messages without a summary."""

    async def condense(self, view: View) -> Condensation | None:
        return Condensation(view.keep_from, view.pinned) if view.droppable() else None


class MaskObservations:
    """Replaces old results by a fixed text; every message and every call stays. Returns None if that is not enough."""

    async def condense(self, view: View) -> Condensation | None:
        # In a thread: counting takes longer than heartbeats can wait.
        places = await asyncio.to_thread(_enough_to_mask, view)
        return Condensation(keep_from=0, masked=places) if places else None


BUILT_IN: Mapping[str, Condenser] = {
    "summary": Summary(),
    "drop_oldest": DropOldest(),
    "mask_observations": MaskObservations(),
}


def load_condensers(names: str) -> dict[str, Condenser]:
    """Condensers of the operator's own, from `"shop.memory:keep_orders, shop.memory:Forget"`, by those names.

    Each is an object with an async `condense(view)`, or a class that makes one without arguments. Agents may name only
    what is loaded here: the modules of a worker are not the choice of whoever starts a session. Raises
    CondenserSetupError.
    """
    condensers: dict[str, Condenser] = {}
    for name in names_in(names):
        made = found_at(name, "condenser", CondenserSetupError)
        if not callable(getattr(made, "condense", None)):
            raise CondenserSetupError(f"{name!r} is no condenser: it has no method `async def condense(self, view)`")
        condensers[name] = cast(Condenser, made)
    return condensers


def masked(message: Msg) -> Msg:
    """The message with MASK in the place of each result, as the record masks it."""
    content = tuple(
        block.model_copy(update={"output": MASK}) if isinstance(block, ToolResultBlock) else block
        for block in message.content
    )
    # Built again: a copy would keep the cached length of the old text.
    return Msg.model_validate({**message.model_dump(), "content": content})


def _task(view: View) -> str:
    parts = [view.context_config.compression_prompt or PROMPT]
    if view.goal_tokens > 0:
        words = max(min(view.goal_tokens // 2, MOST_WORDS), 1)
        parts.append(f"All fields together should have at most {words} words.")
    if view.must_mention:
        named = "\n".join(f"- {harmless(line)}" for line in view.must_mention)
        parts.insert(0, f"Still open, and to be named in the summary:\n{named}")
    if asked := shortened(view.instructions, INSTRUCTIONS_CAP_TOKENS, view.count):
        parts.insert(0, f"What the user asks of this summary:\n{enclosed('instructions', asked)}")
    return "\n\n".join(parts)


def _complaint(fields: Mapping[str, Any]) -> str:
    blank = [name for name, value in fields.items() if not field_text(value)]
    if len(blank) == len(fields):
        return "all of its fields are empty"
    size = len(json.dumps(fields).encode())
    return f"it has {size} bytes, and {ANSWER_LIMIT_BYTES} are allowed" if size > ANSWER_LIMIT_BYTES else ""


def _enough_to_mask(view: View) -> tuple[int, ...]:
    """All results whose masks are shorter, when the rest then comes down to the goal; else none."""
    size, places = view.tokens((), view.old_summary), list[int]()
    for index in view.droppable():
        message = view.messages[index]
        before = view.tokens([message])
        after = view.tokens([masked(message)]) if message.get_tool_results() else before
        if after < before:
            places.append(index)
        size += min(before, after)
    return tuple(places) if size <= view.goal_tokens else ()


log = logging.getLogger(__name__)


async def run_chain(view: View, names: Sequence[str], condensers: Mapping[str, Condenser]) -> tuple[str, Condensation]:
    """The name and the answer of the first that can. One that fails for good is passed over.

    Raises ApplicationError: retryable as it comes, else ModelFailed with what went wrong first.
    """
    failures: list[ApplicationError] = []
    for name in names:
        try:
            made = await _ask(view, name, condensers)
        except ApplicationError as error:
            if not error.non_retryable:
                raise
            log.warning("condenser %s: %s", name, error.message)
            failures.append(error)
        else:
            if made is not None:
                return name, made
    if failures:
        raise failures[0]
    raise failed_for_good(
        "context_overflow",
        f"Nothing made enough room in the context: {', '.join(names)} found nothing more to leave out.",
    )


async def _ask(view: View, name: str, condensers: Mapping[str, Condenser]) -> Condensation | None:
    condenser = condensers.get(name)
    if condenser is None:
        hint = did_you_mean(name, condensers, "it has")
        raise failed_for_good("setup", f"No condenser is named {name!r} on this worker; {hint}")
    try:
        made = await condenser.condense(view)
    except ApplicationError:
        raise
    except BaseException as error:  # A condenser may be anybody's; the next one in the chain may still do.
        if is_cancelled_here(error):
            raise
        log.exception("condenser %s failed", name)
        raise failed_for_good("internal", f"The condenser {name!r} failed ({type(error).__name__}).") from None
    if made is None:
        return None
    if complaint := _wrong_indexes(view, made) or _parted(view, made):
        raise failed_for_good("internal", f"The condenser {name!r} {complaint}.")
    # In a thread: counting takes longer than heartbeats can wait.
    freed = await asyncio.to_thread(_freed_tokens, view, made)
    if freed <= 0:
        log.warning("condenser %s did not shorten the context", name)
    return made if freed > 0 else None


def _wrong_indexes(view: View, made: Condensation) -> str:
    """What is wrong with a condensation of somebody's own; the record would not take it."""
    if not 0 <= made.keep_from <= len(view.messages):
        return f"keeps from {made.keep_from} on, of {len(view.messages)} messages"
    if list(made.pinned) != sorted({index for index in made.pinned if 0 <= index < made.keep_from}):
        return f"pins {made.pinned}: they have to be in order, each once, and before {made.keep_from}"
    if not set(made.masked) <= {*made.pinned, *range(made.keep_from, len(view.messages))}:
        return "masks messages that it does not keep"
    return ""


def _parted(view: View, made: Condensation) -> str:
    """A call that lost its result, or a result its call; the cut that was given has neither."""
    if (made.keep_from, made.pinned) == (view.keep_from, view.pinned):
        return ""
    kept = set(made.pinned) | set(range(made.keep_from, len(view.messages)))
    for calls, results in _pairs(view.messages):
        if len({place in kept for place in (*calls, *results)}) > 1:
            return f"parts the call in message {calls[0]} from its result"
    return ""


def _pairs(messages: Sequence[Msg]) -> list[tuple[list[int], list[int]]]:
    """For each call with a result, where both stand."""
    calls: dict[str, list[int]] = {}
    results: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for call in message.get_tool_calls():
            calls.setdefault(call.id, []).append(index)
        for result in message.get_tool_results():
            results.setdefault(result.id, []).append(index)
    return [(places, results[call_id]) for call_id, places in calls.items() if call_id in results]


def _freed_tokens(view: View, made: Condensation) -> int:
    gone = [view.messages[index] for index in range(made.keep_from) if index not in set(made.pinned)]
    hidden = [view.messages[index] for index in made.masked]
    freed = view.tokens(gone) + view.tokens(hidden) - view.tokens([masked(message) for message in hidden])
    if made.summary is not None:
        freed += view.tokens((), view.old_summary) - view.tokens((), made.summary)
    return freed
