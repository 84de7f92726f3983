"""Finds the calls of a turn that are judged before it is up to them: who is asked about one is asked about all."""

from collections.abc import Sequence
from itertools import takewhile

from longhaul.agent.decisions.call_verdicts import judge
from longhaul.agent.decisions.findings_validity import must_judge_again
from longhaul.agent.decisions.session_tools.sleep_tools import SLEEP_TOOL, WAIT_FOR_TOOL
from longhaul.agent.entries.calls import Verdict
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ToolCallState
from longhaul.agent.values.plan import PLAN_ENTER, PLAN_EXIT

ASKED_AT_ONCE = 32
"""Calls of one list. A person reads no more of them together, and what a turn can hold would not fit into one answer of
the query `pending`."""
ASKED_CHARS = 300_000
"""Of the arguments of one list: what stands behind them is asked about when these are answered."""
_SLEEPS = frozenset({SLEEP_TOOL.name, WAIT_FOR_TOOL.name})
_PLANNING = {PLAN_ENTER: True, PLAN_EXIT: False}


def ahead_of(batch: Sequence[OpenCall], record: Record) -> list[OpenCall]:
    """The calls behind the batch, up to what can be foreseen: nothing behind a sleep, for that is of another day, nor
    behind what the session answers itself at once."""
    if not batch or any(_comes_first(call, record) for call in _with_inside_tools(batch, record)):
        return []
    calls = list(record.open_calls.values())
    behind = calls[list(record.open_calls).index(batch[-1].block.id) + 1 :]
    if not behind:
        return []
    listed, chars = list[OpenCall](), sum(len(call.input) for call in batch)
    for call in takewhile(lambda call: not _ends_list(call, record), behind):
        chars += len(call.input)
        if len(batch) + len(listed) >= ASKED_AT_ONCE or chars > ASKED_CHARS:
            break
        listed.append(call)
    return listed


def is_unsettled(call: OpenCall, record: Record, at_ms: int) -> bool:
    """Of a call whose turn has not come: whether it is to be judged (again), so that a person sees what holds now."""
    match call.state:
        case ToolCallState.PENDING:
            # Of what nobody was asked about, nobody has to hear that it has changed: it is looked at in its turn.
            changed = call.facts_stale and call.asked_at > 0
            return not call.judged or changed or must_judge_again(call, record, at_ms)
        case ToolCallState.ASKING:
            return is_outdated(call)
        case _:
            return False


def unjudged(batch: Sequence[OpenCall]) -> list[OpenCall]:
    """Those whose turn it is and whose verdict is missing, or is not to be shown to a person any more."""
    may_be = [call for call in batch if call.state in (ToolCallState.PENDING, ToolCallState.ASKING)]
    return [call for call in may_be if call.state is ToolCallState.PENDING or is_outdated(call)]


def is_outdated(call: OpenCall) -> bool:
    """Of a call that a person is asked about: whether what they see may not be what there is, or what somebody said of
    another call of the list may have answered it."""
    return call.state is ToolCallState.ASKING and (call.facts_stale or not call.judged)


def foreseen(call: OpenCall, record: Record, at_ms: int) -> Verdict:
    """The verdict on a call whose turn has not come: that a person is asked, or nothing yet. What is allowed, denied or
    external now is so for good when the calls before it have their results: they may change what it would touch."""
    verdict = judge(call, record, at_ms, planning=_will_plan(call, record))
    return _without_repeating(call, verdict) if _asks(verdict) else _later(call)


def judged(call: OpenCall, record: Record, at_ms: int) -> Verdict:
    """The verdict on a call whose turn it is."""
    return _without_repeating(call, judge(call, record, at_ms))


def _without_repeating(call: OpenCall, verdict: Verdict) -> Verdict:
    """Who is asked already is not asked anew about the same thing."""
    if call.state is ToolCallState.ASKING and _asks(verdict) and verdict.seen == call.seen:
        return Verdict(call_id=call.block.id, behavior="stands", reason=verdict.reason)
    return verdict


def _asks(verdict: Verdict) -> bool:
    return verdict.behavior == "ask"


def _later(call: OpenCall) -> Verdict:
    return Verdict(call_id=call.block.id, behavior="later")


def _comes_first(call: OpenCall, record: Record) -> bool:
    """Of a call whose turn it is: whether it has its result before anybody is asked about those behind it."""
    if not _is_inside(call, record):
        return False
    if call.block.name in _SLEEPS:
        return True
    return call.state is not ToolCallState.ASKING and not _asks(judge(call, record))


def _ends_list(call: OpenCall, record: Record) -> bool:
    return _is_inside(call, record) and call.block.name in _SLEEPS


def _will_plan(call: OpenCall, record: Record) -> bool:
    """Whether plan mode is on when it is this call's turn, if the calls before it come to what they ask for."""
    before = takewhile(lambda other: other.block.id != call.block.id, record.open_calls.values())
    changes = [other.block.name for other in before if _is_inside(other, record) and other.block.name in _PLANNING]
    return _PLANNING[changes[-1]] if changes else record.state.planning


def _with_inside_tools(batch: Sequence[OpenCall], record: Record) -> list[OpenCall]:
    """By name first: a turn may have hundreds of calls of one tool."""
    tools = record.provided.tools
    names = {call.block.name for call in batch}
    inside = [name for name in names if name in tools and tools[name].inside]
    return [call for call in batch if call.block.name in inside] if inside else []


def _is_inside(call: OpenCall, record: Record) -> bool:
    tool = record.provided.tools.get(call.block.name)
    return tool is not None and tool.inside and call.state is not ToolCallState.FINISHED
