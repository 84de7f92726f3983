"""An answer in a form that was asked for: the finish function that gives it, and the value in a reply that has ended.

The value stands once in the record, as the arguments of the call: here it is read from there.
"""

import json
from collections.abc import Sequence
from typing import Any

from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    FinishedReason,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)

GENERATE_RESPONSE = "generate_response"
"""The finish function's name; no other tool has it."""
DESCRIPTION = """\
Gives your answer, in the form that was asked for, and ends this reply. Call it once, when all of the work is done: \
words alone are no answer here. If the arguments do not fit, you read which field is wrong, and call it again."""
ANSWERED = "The answer is taken."
LATER = "An earlier call has given the answer; that one counts."


def value_of(call: ToolCallBlock) -> dict[str, Any] | None:
    """The arguments of a call of the finish function; None where they are no JSON object."""
    try:
        value: Any = json.loads(call.input)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def answered_in(blocks: Sequence[ContentBlock], reason: FinishedReason | None) -> dict[str, Any]:
    """The fields of a reply's message that hold its answer; none of one that has not come to one, or was asked for
    words."""
    value = _taken(blocks) if reason is FinishedReason.COMPLETED else None
    return {} if value is None else {"metadata": value, "structured_output": value}


def _taken(blocks: Sequence[ContentBlock]) -> dict[str, Any] | None:
    """The newest answer that was taken, in the blocks of a reply; None in one without."""
    for result in reversed(blocks):
        if (
            isinstance(result, ToolResultBlock)
            and result.name == GENERATE_RESPONSE
            and result.state is ToolResultState.SUCCESS
        ):
            calls = (block for block in blocks if isinstance(block, ToolCallBlock) and block.id == result.id)
            call = next(calls, None)
            return value_of(call) if call is not None else None
    return None
