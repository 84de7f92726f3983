"""One step of a custom agent as the journal takes it: calls, a thought, words on the way, or the answer."""

import asyncio
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

from longhaul.activities.contract import CallModel, CustomAgentStep
from longhaul.activities.custom_agents import next_step
from longhaul.activities.custom_agents.custom_agent import (
    Asked,
    CallResult,
    CustomAgentSession,
    CustomAgentWords,
    Thought,
)
from longhaul.activities.custom_agents.custom_agent_registry import CustomAgents
from longhaul.activities.custom_agents.next_step import (
    ANSWERED,
    CustomAgentAnswer,
    CustomAgentFailed,
    Done,
    describe_step,
    digest,
    next_of,
    parting,
)
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.models.model import ModelReply
from longhaul.activities.process.threads import in_own_thread
from longhaul.agent.values.conversation.messages import (
    BROKEN_OFF,
    DataBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
    with_content,
)
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE

log = logging.getLogger(__name__)

CODE = "custom_agent:"
"""Before the custom agent's name, in the place of a model's, of a step that asked no model."""
OWN_SECONDS = 10.0
"""What the code of a custom agent may take for one step: it computes, and what takes long is a tool's."""
STEP, TOLD = "custom_agent_step", "custom_agent_does"
"""In the metadata of a recorded step: what was asked for, as a digest and in words."""

Block = TextBlock | ThinkingBlock | ToolCallBlock
Think = Callable[[Thought], Awaitable[ModelReply]]


@dataclass(frozen=True, slots=True)
class CustomAgentTurn:
    reply: ModelReply
    metadata: dict[str, Any]
    goes_on: bool = False
    """The code has not come to its end, and no call is waited for."""


class CustomAgentTurns:
    def __init__(self, custom_agents: CustomAgents | None = None) -> None:
        self._custom_agents = custom_agents or CustomAgents()

    async def turn(
        self, ask: CallModel, step: CustomAgentStep, messages: Sequence[Msg], think: Think
    ) -> CustomAgentTurn:
        """Raises NotHere for a custom agent that this worker does not have, ModelFailed for code that fails, and what
        `think` does."""
        custom, done = self._custom_agents.get(step.name), recorded(messages[step.since :])
        since_then = messages[step.heard : step.since]
        # Steps, results and hints are left out.
        heard = tuple(m for m in since_then if any(isinstance(block, TextBlock | DataBlock) for block in m.content))
        session = CustomAgentSession(heard, step.structured_schema, step.agents, step.config)
        request = _request(messages[step.first : step.end])
        found = await _bounded(step.name, partial(next_of, custom, request, session, ask.agent, done))
        if isinstance(found, CustomAgentAnswer):
            return self._answer(step, found, done, ask)
        if ask.closing:
            words = f"({step.name} is not done, and may take no further step in this reply: it has taken {len(done)}.)"
            return CustomAgentTurn(_reply(ask, (TextBlock(text=words),)), {})
        metadata = {STEP: digest(found), TOLD: describe_step(found)}
        if isinstance(found, Thought):
            # What the model said, as the agent's thinking; calls that it makes without having tools are nothing.
            # One that broke off is taken as it is: the code has it, and may ask again.
            answer = await think(found)
            text = "".join(block.text for block in answer.content if isinstance(block, TextBlock))
            stop = "end_turn" if answer.stop in BROKEN_OFF else answer.stop_reason
            thought = replace(answer, content=(ThinkingBlock(thinking=text),), stop_reason=stop)
            return CustomAgentTurn(thought, metadata, goes_on=True)
        return CustomAgentTurn(
            _reply(ask, _blocks(found, ask.call_number)), metadata, goes_on=isinstance(found, CustomAgentWords)
        )

    async def parting(self, name: str, message: str, tools: tuple[str, ...]) -> str:
        """Raises as `turn` does."""
        words: str = await _bounded(name, partial(parting, self._custom_agents.get(name), message, tools))
        return words

    def _answer(
        self, step: CustomAgentStep, found: CustomAgentAnswer, done: Sequence[Done], ask: CallModel
    ) -> CustomAgentTurn:
        value = found.value
        if isinstance(value, dict) and step.structured_schema is not None:
            if done and done[-1].told == ANSWERED:
                words = f"({step.name}'s answer does not have the form that was asked for: {done[-1].came[0].text})"
                return CustomAgentTurn(_reply(ask, (TextBlock(text=words),)), {})
            block = ToolCallBlock(
                id=_call_id(ask.call_number, 0), name=GENERATE_RESPONSE, input=_json(step.name, value)
            )
            return CustomAgentTurn(_reply(ask, (block,)), {STEP: ANSWERED, TOLD: ANSWERED})
        match value:
            case Msg():
                text = value.get_text_content()
            case dict() | list():
                text = _json(step.name, value)
            case _:
                text = "" if value is None else str(value)
        return CustomAgentTurn(_reply(ask, (TextBlock(text=_sound(text)),) if text else ()), {})


def recorded(messages: Sequence[Msg]) -> list[Done]:
    """The steps that were taken in this reply, with what came of each."""
    results = {block.id: block for message in messages for block in message.get_tool_results()}
    return [
        Done(str(message.metadata[STEP]), str(message.metadata.get(TOLD, "")), _came(message, results))
        for message in messages
        if message.role == "assistant" and STEP in message.metadata
    ]


def _came(message: Msg, results: dict[str, ToolResultBlock]) -> tuple[CallResult, ...] | str | None:
    """None: it was said, or somebody has taken a thought out of the context since."""
    if calls := message.get_tool_calls():
        return tuple(_result(results.get(call.id)) for call in calls)
    thoughts = [block.thinking for block in message.content if isinstance(block, ThinkingBlock)]
    return "".join(thoughts) if thoughts else None


def _result(block: ToolResultBlock | None) -> CallResult:
    if block is None:
        return CallResult("", "unknown")
    return CallResult(block.get_text(), str(block.state), block.metadata)


def _request(messages: Sequence[Msg]) -> Msg:
    """What is answered, as one message; an empty one where nothing was said."""
    if not messages:
        return Msg(name="user", role="user", content=())
    if len(messages) == 1:
        return messages[0]
    return with_content(messages[-1], [block for message in messages for block in message.content])


def _blocks(asked: Asked, call_number: int) -> tuple[Block, ...]:
    if isinstance(asked, CustomAgentWords):
        return (TextBlock(text=_sound(asked.text)),)
    assert isinstance(asked, tuple)  # noqa: S101  a thought is asked of the model
    return tuple(
        ToolCallBlock(id=_call_id(call_number, at), name=call.tool, input=call.arguments)
        for at, call in enumerate(asked)
    )


def _reply(ask: CallModel, content: tuple[Block, ...]) -> ModelReply:
    return ModelReply(content, Usage(), f"{CODE}{ask.custom_agent.name}" if ask.custom_agent else "", "end_turn")


def _call_id(call_number: int, at: int) -> str:
    return f"step_{call_number}_{at}"


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise _failed(name, error) from None


def _sound(text: str) -> str:
    """Lone surrogates can't be recorded."""
    return text.encode("utf-8", "replace").decode()


async def _bounded(name: str, work: Callable[[], Any]) -> Any:
    """In a thread: code that does not come to an end must not stop the worker, nor may code that ends programs."""

    def run(_: object) -> Any:
        try:
            return work()
        except Exception:
            raise
        except BaseException as error:
            raise CustomAgentFailed(f"its code raised {type(error).__name__}") from error

    try:
        async with asyncio.timeout(OWN_SECONDS):
            return await in_own_thread(run)
    except Exception as error:  # noqa: BLE001  anybody's code
        raise _failed(name, error) from None


def _failed(name: str, error: Exception) -> Exception:
    """Where it failed is told to everybody; its own words go to the worker's log alone: a secret may stand in them."""
    log.warning("the custom agent %r failed", name, exc_info=error)
    match error:
        case CustomAgentFailed():
            why = str(error)
        case TimeoutError():
            why = f"its code took longer than {OWN_SECONDS:.0f} s for one step"
        case _:
            why = f"{type(error).__name__}{_place(error)}; the worker's log says more"
    return failed_for_good("custom_agent", f"The custom agent {name!r} failed: {why}.")


def _place(error: Exception) -> str:
    """The innermost line in the folder of the custom agent's code, whose line it is also where a library raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    called = [at for at, frame in enumerate(frames) if frame.filename == next_step.__file__]
    lines = [(PurePath(frame.filename), frame.lineno) for frame in frames[called[-1] + 1 if called else 0 :]]
    own = [line for line in lines if line[0].parent == lines[0][0].parent]
    return f" in {own[-1][0].name}, line {own[-1][1]}" if own else ""
