"""The results that no tool made: what the model reads when a call was denied, broken, cancelled or lost."""

from collections.abc import Mapping, Sequence

from longhaul.agent.entries import Due
from longhaul.agent.plain.measures import iso
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolCallState, ToolResultBlock, ToolResultState
from longhaul.agent.values.subagents import Child

SO_FAR_CHARS = 2_000


def denied_by_person(call: ToolCallBlock, reason: str, approver: str) -> ToolResultBlock:
    who = f" by {approver}" if approver else ""
    why = f": {reason}" if reason else ". No reason was given."
    return _result(call, ToolResultState.DENIED, f"This call was denied{who} and did not run{why}")


def denied_by_permission(call: ToolCallBlock, reason: str) -> ToolResultBlock:
    return _result(call, ToolResultState.DENIED, f"This call is not permitted and did not run: {reason}")


def expired(call: ToolCallBlock, due: Due) -> ToolResultBlock:
    """Of a call that nobody answered in time."""
    by = f"{iso(due.due_at)}; it had been asked for at {iso(due.asked_at)}"
    if due.waits_for == "person":
        text = f"Nobody decided on this call by {by}. So it was denied, and did not run."
        return _result(call, ToolResultState.DENIED, text)
    if due.server:
        return _result(call, ToolResultState.ERROR, f"{_unanswered(due.server)} Nobody answered by {by}.")
    return _result(
        call,
        ToolResultState.UNKNOWN,
        f"No result of this call came by {by}. It had been handed to an outside system, which may have run it, in part "
        "or in whole, or not at all. Find out what is true before you repeat it.",
    )


def not_a_call(call: ToolCallBlock, reason: str) -> ToolResultBlock:
    return _result(call, ToolResultState.ERROR, f"This call did not run: {reason}")


def cancelled_before_start(call: ToolCallBlock) -> ToolResultBlock:
    return _result(call, ToolResultState.INTERRUPTED, "Cancelled before start: this call did not run.")


def cancelled_outside(call: ToolCallBlock, pieces: Sequence[str] = ()) -> ToolResultBlock:
    """`pieces`: of its result, as far as it had come."""
    text = "Cancelled before a result came: this call was handed to an outside system, which may have run it."
    so_far = "".join(pieces)
    if len(so_far) > SO_FAR_CHARS:
        so_far = f"{so_far[:SO_FAR_CHARS]}… ({len(so_far)} characters)"
    return _result(call, ToolResultState.INTERRUPTED, f"{text} It had answered so far:\n{so_far}" if so_far else text)


def _unanswered(server: str) -> str:
    return (
        f"The MCP server {server!r} had asked a person before it went on with this call, and has no answer. The call "
        "was not made again; what the server did before it asked stays done."
    )


def left_open(call: OpenCall, children: Mapping[str, Child]) -> ToolResultBlock:
    """Of a call that has no result when its reply ends, and that no worker has."""
    if child := children.get(call.block.id):
        return stopped_child(call.block, child)
    if call.sleep is not None:
        began, until = iso(call.asked_at), iso(call.sleep.until)
        text = f"Cut short: this call had waited since {began}, and would have waited until {until}."
        return _result(call.block, ToolResultState.INTERRUPTED, text)
    if call.state is ToolCallState.SUBMITTED and call.asked is not None:
        return _result(call.block, ToolResultState.INTERRUPTED, f"Cut short. {_unanswered(call.asked.server)}")
    if call.state is ToolCallState.SUBMITTED:
        return cancelled_outside(call.block, call.pieces)
    return cancelled_before_start(call.block)


def stopped_child(call: ToolCallBlock, child: Child) -> ToolResultBlock:
    return _result(
        call,
        ToolResultState.INTERRUPTED,
        f"Interrupted: the sub-agent {child.agent!r} was at work and is being stopped; it has not said yet how far it "
        f"came. What it did is in its session {child.session_id!r}. Find out what is true before you repeat it.",
    )


def stays_with_the_first(call: ToolCallBlock) -> ToolResultBlock:
    """Of a sub-agent at work, in the state of another session."""
    return _result(
        call,
        ToolResultState.INTERRUPTED,
        "Cancelled before a result came: a sub-agent worked on it for the session that this one was copied from, and "
        "reports there alone. It may have done part of its task. Find out what is true before you give it again.",
    )


def lost_child(call: ToolCallBlock, child: Child, why: str, files: str = "") -> ToolResultBlock:
    """`files`: where those lie that it made, as a sentence behind a blank."""
    return _result(
        call,
        ToolResultState.ERROR,
        f"No result: the session {child.session_id!r} of the sub-agent {child.agent!r} was ended from outside ({why}). "
        f"It may have done part of its task.{files} Find out what is true before you repeat it.",
    )


def stopped_under_way(call: ToolCallBlock) -> ToolResultBlock:
    return _result(
        call,
        ToolResultState.INTERRUPTED,
        "Interrupted: this call was under way when the reply was interrupted, and was stopped. It may have done part "
        "of its work. Find out what is true before you repeat it.",
    )


def outcome_unknown(call: ToolCallBlock, why: str) -> ToolResultBlock:
    return _result(
        call,
        ToolResultState.UNKNOWN,
        f"Outcome unknown: this call was started, and then {why}. It may have run, in part or in whole, or not at "
        "all, and it was not started again. Find out what is true before you repeat it.",
    )


def failed_to_run(call: ToolCallBlock, why: str) -> ToolResultBlock:
    return _result(call, ToolResultState.ERROR, f"This call could not be run: {why}")


def changed_tool(name: str) -> str:
    """Why a call does not run on a worker whose tool is not the one that was shown; without its full stop."""
    return (
        f"the tool {name!r} is another one on the workers now (its description, schema or flags) than it was when this "
        "call was made, and the decision on the call was about the tool as it was; so nothing was done. From the "
        "next reply on the tool is known as it is now"
    )


def _result(call: ToolCallBlock, state: ToolResultState, text: str) -> ToolResultBlock:
    return ToolResultBlock(id=call.id, name=call.name, output=text, state=state)
