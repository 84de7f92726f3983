"""Picks those of a turn's calls that may be under way together: call order, with concurrency-safe neighbours as one
batch."""

from collections.abc import Mapping, Sequence

from longhaul.agent.fold.ledger.agent_state import OpenCall, ReplyContext
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock, ToolCallState
from longhaul.agent.values.conversation.tools import ToolDescriptor

CALLS_AT_ONCE = 32
"""Under way together; the next one starts when one has ended. More of them help nobody, and the server holds no more
than 2,000 of a session: with those its task would fail for ever."""
CALLS_OF_A_TURN = 256
"""The first ones of a model's turn, in its order. What stands behind them is neither run nor recorded, and the model is
told: each call is a piece of a session's history, and ten thousand would be the end of it."""


def next_batch(reply: ReplyContext, tools: Mapping[str, ToolDescriptor], *, parallel: bool) -> list[OpenCall]:
    """The first batch with a call that has no result: its open calls, in order; empty when all are answered.

    A call whose tool is not concurrency-safe is a batch of its own. A call of an unknown tool runs nothing, so
    it joins its neighbours.
    """
    calls = list(reply.calls.values())
    alone = [name for name in {call.block.name for call in calls} if not _shares(name, tools)]
    first = next((index for index, call in enumerate(calls) if call.state is not ToolCallState.FINISHED), len(calls))
    if not parallel or (first < len(calls) and calls[first].block.name in alone):
        return calls[first : first + 1]
    behind = next((index for index in range(first, len(calls)) if calls[index].block.name in alone), len(calls))
    return [call for call in calls[first:behind] if call.state is not ToolCallState.FINISHED]


def without_too_many(content: Sequence[ContentBlock]) -> tuple[tuple[ContentBlock, ...], int]:
    """What a model said with no more than CALLS_OF_A_TURN calls, and how many were dropped."""
    kept, calls = list[ContentBlock](), 0
    for block in content:
        calls += isinstance(block, ToolCallBlock)
        if calls <= CALLS_OF_A_TURN or not isinstance(block, ToolCallBlock):
            kept.append(block)
    return tuple(kept), max(calls - CALLS_OF_A_TURN, 0)


def too_many(dropped: int) -> str:
    """What the model is told behind the results of the calls that were kept."""
    return (
        f"Your last turn had {CALLS_OF_A_TURN + dropped:,} calls, and {CALLS_OF_A_TURN} are the most. The first "
        f"{CALLS_OF_A_TURN} were taken; the {dropped:,} behind them were dropped, and none of those ran. Make fewer "
        "calls at a time, or one that does the work of many."
    )


def _shares(name: str, tools: Mapping[str, ToolDescriptor]) -> bool:
    tool = tools.get(name)
    return tool is None or tool.concurrency_safe or tool.external
