"""Whether messages can stand in a context: no provider takes a call without its result, or the other way round."""

from collections.abc import Sequence

from agent.messages import Msg


def problem(context: Sequence[Msg]) -> str:
    """What is wrong with the first message that is; empty when all may stand."""
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
    if open_calls:
        call_id, at = next(iter(open_calls.items()))
        return f"call {call_id!r} of message {at} has no result"
    return ""
