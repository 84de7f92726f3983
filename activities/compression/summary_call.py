"""Asks a model for a summary: behind the cached prefix of the session's own calls where that fits, else with as much
of the messages as fits the window, as text.

An answer that can't be used is asked for once more. The session's model first, then its fallback. Everything that was
paid for is counted.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jsonschema.exceptions import best_match
from pydantic_core import SchemaError as PatternError
from referencing.exceptions import Unresolvable
from temporalio.exceptions import ApplicationError

from longhaul.activities.compression.condensers import CountFor, Question, SummaryAnswer
from longhaul.activities.compression.summary_texts import BEHIND, answer_room, fitted, summary_room
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.retry_errors import as_action, failed_for_good
from longhaul.activities.models.model import AnswerSchema, ModelReply, ModelRequest
from longhaul.activities.models.requests.answer_form import BadAnswer, answer_of
from longhaul.activities.tools.arguments import BoundedSchema, TooManySteps
from longhaul.agent.values.conversation.messages import TextBlock, ToolCallBlock, Usage, UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig

log = logging.getLogger(__name__)

_SHARES = (1.0, 0.6, 0.3)
"""Of the window, in turn: a provider that finds the request too long counts otherwise than we do."""
_FRAME_TOKENS = 50
"""Roles, tool choice, and the marks around the material."""
_SHOWN_CHARS = 300

CallModel = Callable[[str, ModelRequest], Awaitable[ModelReply]]
"""A model by its full name. Raises what `activities.models.failures.failure_classification.judge` reads."""


@dataclass(frozen=True, slots=True)
class CachedContext:
    """What the session's next call of its own model would send, and the tokens of that."""

    request: ModelRequest
    tokens: int
    is_cold: bool = False
    """Its provider has it in no cache, as far as the session knows."""


@dataclass(frozen=True, slots=True)
class Candidate:
    model: str
    """Full name."""
    window_tokens: int
    cached: CachedContext | None = None
    """None where the context can't be sent to it as it is."""


@dataclass(frozen=True, slots=True)
class SummaryAttempt:
    """Which of the activity's attempts this is, and whether the server grants another."""

    number: int
    is_last: bool


class SummaryCall:
    """The questions of one activity attempt."""

    def __init__(
        self,
        call: CallModel,
        candidates: Sequence[Candidate],
        config: ModelConfig,
        *,
        call_number: int,
        attempt: SummaryAttempt,
        count: CountFor,
    ) -> None:
        self._call = call
        self._candidates = candidates
        self._config = config
        self._call_number = call_number
        self._attempt = attempt
        self._count = count
        self.usage = Usage()
        self.notes = tuple[str, ...]()
        """What the API of the model that has answered could not express."""

    async def ask(self, question: Question) -> SummaryAnswer:
        """The first usable answer. Raises ApplicationError: retryable while attempts are left, else ModelFailed."""
        failures: list[ApplicationError] = []
        for place, candidate in enumerate(self._candidates):
            try:
                return await self._ask_model(candidate, question)
            except ApplicationError as error:
                if not error.non_retryable and not self._exhausted(place):
                    raise
                log.warning("%s gave no summary: %s", candidate.model, error.message)
                failures.append(error)
        # The first model's failure is the one to fix, unless only the last can be told.
        first = failures[0]
        raise first if first.non_retryable else failed_for_good(first.type or "upstream", first.message)

    def _exhausted(self, place: int) -> bool:
        """Whether a model is given up although another attempt might do: the attempts of one that has a fallback are
        limited."""
        has_fallback = place < len(self._candidates) - 1
        return self._attempt.is_last or (has_fallback and self._attempt.number > self._config.max_retries)

    async def _ask_model(self, candidate: Candidate, question: Question) -> SummaryAnswer:
        problem, behind = "", question.about_context
        for asked in range(3):
            # What the provider has cached costs a tenth: asking twice there is cheaper than once elsewhere.
            reply = await self._behind_prefix(candidate, question, problem) if behind and asked < 2 else None
            behind = reply is not None
            if reply is None:
                reply = await self._fitting_call(candidate, question, problem)
            self.usage += reply.usage
            self.notes = reply.notes
            try:
                return _read(reply, question)
            except BadAnswer as bad:
                problem = str(bad)
                log.warning("%s: the summary cannot be used: %s", candidate.model, problem)
            if asked and not behind:
                break
        raise failed_for_good("invalid_answer", f"The model gave no usable summary, asked twice: {problem}.")

    async def _behind_prefix(self, candidate: Candidate, question: Question, problem: str) -> ModelReply | None:
        """None where the question does not fit behind the context, or the provider refuses the two together."""
        if (cached := candidate.cached) is None:
            return None
        form = question.answer
        task = f"{BEHIND}\n\n{question.task}" + (f"\n\n{_again(problem, None)}" if problem else "")
        size = cached.tokens + _FRAME_TOKENS + self._count(task, candidate.model)
        size += 0 if form is None else self._count(json.dumps(form.schema) + form.description, candidate.model)
        room = summary_room(candidate.window_tokens)
        if size + room + (self._config.thinking_budget_tokens or 0) > candidate.window_tokens:
            return None
        asked = replace(
            cached.request,
            config=self._config.model_copy(
                update={"max_output_tokens": min(self._config.max_output_tokens, room)},
            ),
            messages=[*cached.request.messages, UserMsg("user", task)],
            call_number=self._call_number,
            attempt=self._attempt.number,
            answer=form,
            purpose="summary",
            behind_prefix="cold" if cached.is_cold else "cached",
        )
        try:
            return await self._call(candidate.model, asked)
        except ApplicationError:
            raise  # a middleware has stopped it, and says why
        except Exception as error:  # noqa: BLE001  every kind has a verdict: the table is complete by test
            failure = judge(error)
            if failure.kind not in ("compress", "repair") and failure.error_type != "invalid_request":
                raise as_action(error) from None  # the provider's error may quote the request
            log.warning("%s takes no question behind the context: %s", candidate.model, failure.error_type)
            return None

    async def _fitting_call(self, candidate: Candidate, question: Question, problem: str) -> ModelReply:
        for share in _SHARES:
            request = await self._request(candidate, question, problem, share)
            try:
                return await self._call(candidate.model, request)
            except ApplicationError:
                raise  # a middleware has stopped it, and says why
            except Exception as error:  # noqa: BLE001  every kind has a verdict: the table is complete by test
                if judge(error).kind != "compress" or share == _SHARES[-1]:
                    raise as_action(error) from None  # the provider's error may quote the request
        raise AssertionError("the last share returns or raises")

    async def _request(self, candidate: Candidate, question: Question, problem: str, share: float) -> ModelRequest:
        window = int(candidate.window_tokens * share)
        room = answer_room(window, self._config.max_output_tokens)
        task = f"{question.task}\n\n{_again(problem, question.answer)}" if problem else question.task

        def count(text: str) -> int:
            return self._count(text, candidate.model)

        # All of this is never shortened.
        form = "" if question.answer is None else json.dumps(question.answer.schema) + question.answer.description
        fixed_tokens = _FRAME_TOKENS + count(question.system) + count(task) + count(form)
        budget = window - room - fixed_tokens
        if budget <= 0:
            raise failed_for_good(
                "context_overflow",
                f"The request for a summary does not fit {candidate.model}'s window of {candidate.window_tokens} "
                "tokens: shorten compression_prompt, summary_schema or the instructions, or take a larger model.",
            )
        # In a thread: counting a megabyte takes longer than heartbeats can wait.
        material = await asyncio.to_thread(fitted, question.pieces, budget, count)
        return ModelRequest(
            model=candidate.model,
            system=question.system,
            messages=(UserMsg("user", f"<material>\n{material}\n</material>\n\n{task}"),),
            tools=(),
            config=self._config.for_model(candidate.model, self._candidates[0].model).model_copy(
                update={"max_output_tokens": min(self._config.max_output_tokens, room)}
            ),
            call_number=self._call_number,
            attempt=self._attempt.number,
            answer=question.answer,
            purpose="summary",
        )


def _again(problem: str, form: AnswerSchema | None) -> str:
    """With the form in words: some servers accept a forced tool and never show it to their model."""
    words = f" It has to be one JSON object that fits this schema: {json.dumps(form.schema)}" if form else ""
    return f"Your last answer could not be used: {problem}. Answer again.{words}"


def _read(reply: ModelReply, question: Question) -> SummaryAnswer:
    """Raises BadAnswer."""
    form = question.answer.name if question.answer is not None else ""
    if called := [block.name for block in reply.content if isinstance(block, ToolCallBlock) and block.name != form]:
        raise BadAnswer(f"you called {called[0]!r}, and nothing may be called now")
    text = "\n".join(block.text for block in reply.content if isinstance(block, TextBlock)).strip()
    fields: dict[str, Any] = {}
    if question.answer is not None:
        fields = answer_of(reply)
        try:
            error = best_match(iter(BoundedSchema(question.answer.schema).errors(fields)))
        except (Unresolvable, RecursionError, PatternError, TooManySteps) as cause:
            raise failed_for_good(
                "invalid_request", f"summary_schema: it can't be applied ({type(cause).__name__}); correct it."
            ) from None
        if error is not None:
            field = ".".join(str(part) for part in error.absolute_path) or "the answer"
            raise BadAnswer(f"{field}: {error.message[:_SHOWN_CHARS]}")
    elif not text:
        raise BadAnswer("the reply was empty")
    if complaint := question.check(fields):
        raise BadAnswer(complaint)
    return SummaryAnswer(fields, text, reply.model)
