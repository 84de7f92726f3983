"""Several agents one after the other, or side by side, as AgentScope's pipelines."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from longhaul.agent.values.conversation.messages import DataBlock, FinishedReason, Msg, TextBlock


class Replying(Protocol):
    """A session, a member of a hub, or a person."""

    async def reply(self, inputs: Any = None, /) -> Msg:
        """Answer."""
        ...


async def sequential_pipeline(agents: Sequence[Replying], msg: str | Msg | Sequence[Msg] | None = None) -> Msg | None:
    """Ask the first agent, then pass each answer to the next agent; return the last answer.

    The pipeline ends early if an agent's reply waits for somebody, has failed, or was interrupted. It then returns that
    agent's message, and `finished_reason` says why.
    """
    said: str | Msg | Sequence[Msg] | None = msg
    answer: Msg | None = None
    for agent in agents:
        answer = await agent.reply(said)
        if answer.role == "assistant" and answer.finished_reason is not FinishedReason.COMPLETED:
            return answer
        said = in_its_name(answer)
    return answer


async def fanout_pipeline(
    agents: Sequence[Replying], msg: str | Msg | Sequence[Msg] | None = None, *, enable_gather: bool = True
) -> list[Msg]:
    """Ask all agents the same; return their answers in the order of the agents.

    The agents work at once, or with `enable_gather` False one after the other. An error of one agent is raised when all
    have ended.
    """
    if not enable_gather:
        return [await agent.reply(msg) for agent in agents]
    ended = await asyncio.gather(*(agent.reply(msg) for agent in agents), return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException):
            raise each
    return [each for each in ended if isinstance(each, Msg)]


def in_its_name(answer: Msg) -> Msg:
    """What an agent has answered, for another one: as a message of whoever said it. As an assistant's it would be taken
    for the other's own words."""
    if answer.role != "assistant":
        return answer
    said: list[Any] = [block for block in answer.content if isinstance(block, DataBlock)]
    said.insert(0, TextBlock(text=answer.get_text_content() or "(it said nothing)"))
    return Msg(name=answer.name, role="user", content=said, id=answer.id)
