"""Which of a turn's calls may be under way together: call order, with concurrency-safe neighbours as one batch."""

from collections.abc import Mapping
from itertools import takewhile

from agent.messages import ToolCallState
from agent.state import OpenCall, ReplyContext
from agent.tools import ToolDescriptor


def next_batch(reply: ReplyContext, tools: Mapping[str, ToolDescriptor], *, parallel: bool) -> list[OpenCall]:
    """The first batch with a call that has no result: its open calls, in order; empty when all are answered.

    A call whose tool is not concurrency-safe is a batch of its own. A call of an unknown tool runs nothing, so
    it joins its neighbours.
    """
    calls = list(reply.calls.values())
    first = next((index for index, call in enumerate(calls) if not _finished(call)), len(calls))
    if not parallel or (first < len(calls) and not _shares(calls[first], tools)):
        return calls[first : first + 1]
    neighbours = takewhile(lambda call: _shares(call, tools), calls[first:])
    return [call for call in neighbours if not _finished(call)]


def _finished(call: OpenCall) -> bool:
    return call.state is ToolCallState.FINISHED


def _shares(call: OpenCall, tools: Mapping[str, ToolDescriptor]) -> bool:
    tool = tools.get(call.block.name)
    return tool is None or tool.concurrency_safe or tool.external
