"""Letters within a tree of sessions: a sub-agent says how its task ended, and whoever gave it asks for that again.

A report is known by its call, and counts once: it may come more than once, and when nobody waits for it any more.
"""

from collections.abc import Callable

from longhaul.agent.decisions.subagents import last_word, says_with_its_end
from longhaul.agent.entries import all_entries as e
from longhaul.agent.letters.bodies import ChildReport, ReportAgain, Unusable
from longhaul.agent.letters.letter import Letter, Received
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ToolCallState, ToolResultBlock, ToolResultState
from longhaul.agent.values.subagents import Child


def reported(record: Record, body: ChildReport, letter: Letter) -> Received:
    return heard(record, body, letter.reply_id_of)


def heard(record: Record, body: ChildReport, reply_id_of: Callable[[str], str]) -> Received:
    """A report, however it came. `reply_id_of`: as `Letter` has it. Raises Unusable."""
    call, child = record.open_calls.get(body.call_id), record.children.get(body.call_id)
    tool = record.provided.tools.get(call.block.name) if call is not None else None
    if child is None and not (tool is not None and tool.child):
        raise Unusable(f"call_id: {body.call_id!r} has no sub-agent here")
    if child is not None and child.session_id != body.session_id:
        raise Unusable(f"session_id: {body.call_id!r} is the task of {child.session_id!r}, not of {body.session_id!r}")
    if child is not None and child.outcome:
        return Received((), {"recorded": False})
    ended = e.ChildEnded(
        call_id=body.call_id,
        outcome=body.state,
        session_id=body.session_id,
        spent=body.spent,
        doubtful=body.doubtful,
    )
    if call is None or call.state is ToolCallState.FINISHED:
        return Received(_told_later(child, ended, body, reply_id_of), {"recorded": True})
    result = ToolResultBlock(
        id=body.call_id, name=call.block.name, output=body.output, state=ToolResultState(body.state)
    )
    taken = _result(record, result, body)
    if isinstance(taken, e.ResultReceived) and says_with_its_end(record):
        ended = ended.model_copy(update={"tainted": body.tainted})
    return Received((ended, taken), {"recorded": True})


def _told_later(
    child: Child | None, ended: e.ChildEnded, body: ChildReport, reply_id_of: Callable[[str], str]
) -> tuple[e.AnyEntry, ...]:
    """Of one in the background the session hears by a message, unless its own model had it stopped: then it says how
    far it came to whoever reads its session. Of others nobody waits any more."""
    if child is None or not child.is_heard:
        return (ended,)
    told = last_word(child, body.state, body.output, "")
    if isinstance(told, e.RequestAccepted):
        told = told.model_copy(update={"reply_id": reply_id_of(told.request_id)})
    return (ended.model_copy(update={"tainted": body.tainted}), told)


def _result(record: Record, result: ToolResultBlock, body: ChildReport) -> e.ToolReturned | e.ResultReceived:
    """One that may be too long for the context is looked at by a worker first, where the reply goes on."""
    fits = len(result.model_dump_json().encode()) <= record.spec.context_config.tool_result_limit
    if fits or record.interrupted:
        return e.ToolReturned(result=result, outside=bool(body.tainted))
    return e.ResultReceived(result=result)


def report_again(record: Record, body: ReportAgain) -> Received:
    parent = record.parent
    if parent is None or parent.call_id != body.call_id:
        raise Unusable(f"call_id: this session is no sub-agent with the task {body.call_id!r}")
    return Received((e.ReportAsked(),) if parent.told or parent.by_result else (), {"asked": True})
