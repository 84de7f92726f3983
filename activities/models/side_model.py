"""A model that is asked beside a session's own calls: within a bound of calls and tokens, one at a time, counted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from longhaul.activities.contract import SamplingLeave
from longhaul.activities.models.failures.retry_errors import as_action
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.agent.values.conversation.messages import Msg, Usage
from longhaul.agent.values.spec.mcp import Sampled

Ask = Callable[[str, ModelRequest], Awaitable[ModelReply]]

BYTES_PER_TOKEN = 2
"""Few, so that what is read costs no more than was looked at before."""
MOST_ATTEMPTS = 3
PAUSE_SECONDS = 1.0


class NotAsked(Exception):
    """No answer of a model: the bound is reached, or its provider has failed. The sentence says which."""


class SideModel:
    def __init__(self, leave: SamplingLeave, ask: Ask) -> None:
        self._leave, self._ask = leave, ask
        self._turn = asyncio.Lock()
        self._calls, self._usage = 0, Usage()

    @property
    def name(self) -> str:
        """As the agent names it."""
        return self._leave.model

    @property
    def taken(self) -> Sampled | None:
        """None: nothing was asked. Failures count as calls that took no tokens."""
        return Sampled(model=self.name, calls=self._calls, usage=self._usage) if self._calls else None

    async def answer(self, system: str, messages: tuple[Msg, ...], most_tokens: int) -> ModelReply:
        """Raises NotAsked."""
        async with self._turn:
            room = self._room(system, messages)
            plain = {
                "thinking_budget_tokens": None,
                "reasoning_effort": None,
                "max_output_tokens": min(most_tokens, room),
            }
            request = ModelRequest(
                model=self.name,
                system=system,
                messages=messages,
                tools=(),
                config=self._leave.config.model_copy(update=plain),
                call_number=self._leave.call_number + self._calls,
                purpose="sampling",
            )
            self._calls += 1
            reply = await self._insistently(request)
            self._usage += reply.usage
            return reply

    def _room(self, system: str, messages: tuple[Msg, ...]) -> int:
        """Tokens that may still be written."""
        if self._calls >= self._leave.calls:
            raise NotAsked(f"it may have a model asked {self._leave.calls} times during this call, and asks once more")
        read = len(system.encode()) + sum(len(message.get_text_content().encode()) for message in messages)
        used = self._usage.input_tokens + self._usage.output_tokens
        room = self._leave.tokens - used - read // BYTES_PER_TOKEN - 1
        if room < 1:
            raise NotAsked(
                f"of {self._leave.tokens:,} tokens that models may take for it during this call {used:,} are used, and "
                "what it asks now does not fit into the rest"
            )
        return room

    async def _insistently(self, request: ModelRequest) -> ModelReply:
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._ask(self.name, replace(request, attempt=attempt))
            except Exception as error:
                failure = as_action(error)
                if failure.non_retryable or attempt == MOST_ATTEMPTS:
                    raise NotAsked(f"its model could not be asked: {failure.message}") from error
            told = failure.next_retry_delay
            pause = told.total_seconds() if told else PAUSE_SECONDS * attempt
            await asyncio.sleep(pause)
