"""Tells whether messages can stand in a context: no provider takes a call without its result, or the other way
round."""

from collections.abc import Collection, Sequence

from longhaul.agent.values.conversation.messages import Msg


def problem(context: Sequence[Msg], waiting: Collection[str] = ()) -> str:
    """What is wrong with the first message that is; empty when all may stand. Calls that are `waiting` have no result,
    and stand in the last turn."""
    open_calls: dict[str, int] = {}
    seen = set[str]()
    for index, message in enumerate(context):
        results = message.get_tool_results()
        if open_calls and not results:
            call_id, at = next(iter(open_calls.items()))
            return f"call {call_id!r} of message {at} has no result before message {index}"
        for result in results:
            if open_calls.pop(result.id, None) is None:
                return f"message {index} holds a result for {result.id!r}, which is no open call before it"
        for call in message.get_tool_calls():
            if call.id in seen:
                return f"message {index} uses the call id {call.id!r} a second time"
            seen.add(call.id)
            open_calls[call.id] = index
    for call_id, at in open_calls.items():
        if call_id not in waiting:
            return f"call {call_id!r} of message {at} has no result"
    missing = [call_id for call_id in waiting if call_id not in open_calls]
    return f"call {missing[0]!r} waits, and is not among the calls without a result" if missing else ""
