"""Messages between sessions of one tree, from hubs, and from workers about themselves; and the request to stop
background work.

A sub-agent's report is known by its call and counts once, however often it arrives. A request to stop changes
what is wanted, and the end comes later; so it can be sent again.
"""

from collections.abc import Callable
from typing import Any

from pydantic import Field

from longhaul.agent import entries as e
from longhaul.agent.decisions import background_commands, subagent_start
from longhaul.agent.decisions.subagent_start import last_word
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import (
    ChildReport,
    Received,
    ReceivedOperation,
    ReportAgain,
    StopBackground,
    TellWorkerLacks,
    TellWorkerLeft,
    Unusable,
)
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.plain.values import Value
from longhaul.agent.reducer.request_state import heard_before
from longhaul.agent.values.conversation.messages import ToolCallState, ToolResultBlock, ToolResultState
from longhaul.agent.values.hubs import MOST_HUBS, HubWord, entered, heard
from longhaul.agent.values.subagents import BackgroundCommand, Child


def reported(journal: Journal, body: ChildReport, operation: ReceivedOperation) -> Received:
    return take_report(journal, body, operation.reply_id_of)


def take_report(journal: Journal, body: ChildReport, reply_id_of: Callable[[str], str]) -> Received:
    """A report, however it came. `reply_id_of`: as `Operation` has it. Raises Unusable."""
    call, child = journal.open_calls.get(body.call_id), journal.children.get(body.call_id)
    tool = journal.provided.tools.get(call.block.name) if call is not None else None
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
    taken = _result(journal, result, body)
    if isinstance(taken, e.ResultReceived):
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


def _result(journal: Journal, result: ToolResultBlock, body: ChildReport) -> e.ToolReturned | e.ResultReceived:
    """One that may be too long for the context is looked at by a worker first, where the reply goes on."""
    fits = len(result.model_dump_json().encode()) <= journal.spec.context_config.tool_result_limit
    if fits or journal.interrupted:
        return e.ToolReturned(result=result, outside=bool(body.tainted))
    return e.ResultReceived(result=result)


def report_again(journal: Journal, body: ReportAgain) -> Received:
    parent = journal.parent
    if parent is None or parent.call_id != body.call_id:
        raise Unusable(f"call_id: this session is no sub-agent with the task {body.call_id!r}")
    return Received((e.ReportAsked(),) if parent.told or parent.by_result else (), {"asked": True})


def stop(journal: Journal, body: StopBackground) -> Received:
    """The answer names all that is to stop, or was to; `already`: those of which that was known."""
    working = _at_work(journal)
    wanted = {body.call_id: _named(journal, body.call_id)} if body.call_id is not None else working
    new = tuple(
        call_id for call_id, one in wanted.items() if not (one.unwanted or (isinstance(one, Child) and one.stopped))
    )
    answer = {"call_ids": list(wanted), "already": [call_id for call_id in wanted if call_id not in new]}
    return Received((e.StopAsked(call_ids=new, by=body.by),) if new else (), answer)


def named_at_work(journal: Journal) -> str:
    """What works in the background, by ids; empty when nothing does."""
    return ", ".join(f"{call_id!r} ({_what(one)})" for call_id, one in _at_work(journal).items())


def _at_work(journal: Journal) -> dict[str, BackgroundCommand | Child]:
    """By call id; commands first, each kind in the order of its beginning."""
    agents = (child for child in subagent_start.at_work(journal) if child.background)
    works: tuple[BackgroundCommand | Child, ...] = (*background_commands.at_work(journal), *agents)
    return {one.call_id: one for one in works}


def _named(journal: Journal, call_id: str) -> BackgroundCommand | Child:
    """What this call has started and is to stop, or was stopped by such an operation. Raises Unusable."""
    command, child = journal.commands.get(call_id), journal.children.get(call_id)
    one = command or child
    if one is not None and call_id in _at_work(journal):
        return one
    if one is not None and one.stopped_by:
        return one  # whoever has not heard the answer asks again
    now = named_at_work(journal)
    there = f"at work there: {now}" if now else "nothing works there now"
    if child is not None and not child.background and not child.outcome:
        raise Unusable(
            f"call_id: {call_id!r} is a task that the reply being made waits for; `interrupt` ends that reply or, sent "
            f"to session {child.session_id!r}, this task alone"
        )
    if one is not None:
        how = command.fate if command is not None else child.outcome if child is not None else ""
        raise Unusable(f"call_id: {call_id!r} is over ({how}) and works no more in the background; {there}")
    raise Unusable(f"call_id: nothing in the background has the id {call_id[:100]!r}; {there}")


def _what(one: BackgroundCommand | Child) -> str:
    return f"sub-agent {one.agent!r}" if isinstance(one, Child) else "command"


MOST_WORDS = 200


class HubSays(Value):
    """What was said in a hub since its operation before. Hubs send it."""

    hub: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    """Id of its workflow."""
    incarnation: str = Field(min_length=1, max_length=200)
    name: str = Field(max_length=200)
    member: str = Field(min_length=1, max_length=200)
    """How the session is called there."""
    user_id: str | None = None
    """Whose the hub is."""
    joined: int = Field(ge=1)
    """The number with which the session came in."""
    through: int = Field(ge=1)
    """Everything up to this number is told with it."""
    words: tuple[HubWord, ...] = Field(default=(), max_length=MOST_WORDS)
    left: bool = False


def hear_hub(journal: Journal, body: HubSays) -> Received:
    """Sent again, it changes nothing. Of another user's hub nothing is heard."""
    if body.user_id != journal.state.user_id:
        raise Unusable(
            f"user_id: the hub {body.name!r} is another user's; a session can only be in hubs of its own user"
        )
    before = heard_before(journal, body.hub, body.incarnation)
    if body.through <= before:
        return Received((), {"heard": before})
    others = [one for one, each in journal.hubs.items() if one != body.hub and not each.left]
    if not body.left and len(others) >= MOST_HUBS:
        raise Unusable(
            f"hub: this session is in {len(others)} hubs, which is the most; take it out of one of them first"
        )
    told = [(body.joined, entered(body.name, body.member))] if not body.left or body.words else []
    told += [(word.number, heard(word, body.name)) for word in body.words]
    new = [(number, message) for number, message in told if number > before]
    entry = e.HubHeard(
        hub=body.hub,
        incarnation=body.incarnation,
        name=body.name,
        member=body.member,
        through=body.through,
        numbers=tuple(number for number, _ in new),
        messages=tuple(message for _, message in new),
        left=body.left,
        tainted=next((word.tainted[:1_000] for word in body.words if word.tainted and word.number > before), ""),
    )
    return Received((entry,), {"heard": body.through})


def worker_left(journal: Journal, body: TellWorkerLeft) -> Received:
    """Nothing is recorded of a session that is at nothing: there is nothing to go on with."""
    if journal.reply is None:
        return Received((), {"recorded": False})
    return Received((e.WorkerLeft(worker=body.worker, doing=body.doing, call_id=body.call_id),), {"recorded": True})


def worker_lacks(journal: Journal, body: TellWorkerLacks) -> Received:
    """Recorded when it is news for a reply that is being made: workers say it more than once."""
    entry = e.WorkerLacks(worker=body.worker, doing=body.doing, call_id=body.call_id, why=body.why, away=body.away)
    known = journal.incarnation.lacking
    what = (entry.doing, entry.call_id, entry.why, entry.away)
    same = known is not None and (known.doing, known.call_id, known.why, known.away) == what
    if journal.reply is None or same:
        return Received((), {"recorded": False})
    return Received((entry,), {"recorded": True})


def shutdown(journal: Journal) -> dict[str, Any]:
    """What a session's status says of a worker that has left it, as far as the log still tells of it."""
    interrupted = journal.state.shutdown_interrupted
    left = (entry.worker for entry in reversed(journal.log) if interrupted and isinstance(entry, e.WorkerLeft))
    return {"shutdown_interrupted": interrupted, "left_by": next(left, "")}
