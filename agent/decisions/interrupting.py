"""Finds the last words of an agent whose reply was interrupted: words of its settings, or those that its workers' hooks
come to.

The hooks are the world's: they are asked in an activity, and what they said is recorded. Then the reply ends.
"""

from longhaul.agent.fold.ledger.agent_state import ReplyContext
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ErrorInfo, ToolCallState, ToolResultState

LONGEST_WORDS = 10_000
"""Characters."""


def is_stopped(record: Record, reply: ReplyContext) -> bool:
    """Whether the reply is to end although calls are open."""
    return record.interrupted or (reply.rejected and record.spec.react_config.stop_on_reject)


def must_ask_hooks(ledger: Ledger) -> bool:
    """Whether workers are to be asked before the reply ends. Once: a hook that failed is not asked again."""
    return ledger.interrupted and ledger.requests.parting is None and ledger.provided.hooked_interrupts


def parting_words(ledger: Ledger) -> str:
    """The last words of the reply that is being made; none of one that nobody has interrupted."""
    if not ledger.interrupted:
        return ""
    return ledger.requests.parting or ledger.spec.react_config.interruption_message


def task_under_way(ledger: Ledger) -> ReplyContext | None:
    """Of a sub-agent, the reply that its task is to end with, unless it ends already."""
    reply, parent = ledger.reply, ledger.parent
    is_it = reply is not None and parent is not None and reply.request_id == parent.call_id
    return reply if is_it and not ledger.interrupted else None


def task_is_over(ledger: Ledger) -> bool:
    """Of a sub-agent: whether the reply that its task ends with has ended."""
    asked = ledger.requests.handled.get(ledger.parent.call_id) if ledger.parent is not None else None
    return asked is not None and asked.reply_id in ledger.requests.finished


def why_overdue(ledger: Ledger) -> ErrorInfo | None:
    """What the end of a reply says of the time of its task, where that has ended it."""
    reply, parent = ledger.reply, ledger.parent
    if reply is None or parent is None or not (parent.overdue and reply.request_id == parent.call_id):
        return None
    return ErrorInfo(
        type="overdue",
        message=f"its time was over: `task_seconds` of its agent is {ledger.spec.task_seconds or 0:g}",
    )


def replaced_by(ledger: Ledger) -> str:
    """What was said with the interrupt: the request that is next."""
    following = ledger.requests.queue[0] if ledger.requests.queue else None
    if following is None or following.when != "interrupt":
        return ""
    return "\n".join(message.get_text_content() for message in following.messages)[:LONGEST_WORDS]


def cut_short(ledger: Ledger) -> tuple[str, ...]:
    """Tools of the newest turn's calls that were stopped, or never began, in their order."""
    reply, stopped = ledger.current, list[str]()
    for message in reversed(ledger.state.context):
        if message.id != reply.reply_id or message.get_tool_calls():
            break
        results = message.get_tool_results()
        stopped[:0] = [result.name for result in results if result.state is ToolResultState.INTERRUPTED]
    open_calls = (call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED)
    return (*stopped, *(call.block.name for call in open_calls))
