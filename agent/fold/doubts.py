"""Changes the doubts of a session by entries: one begins with a result, and ends with a finding or a person's word."""

from typing import assert_never

from longhaul.agent.entries import all_entries as e
from longhaul.agent.entries.doubts import KEPT_DOUBTS, SOURCE, Doubt, cut, settled_text
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.times import iso
from longhaul.agent.values.conversation.hints import hint_message
from longhaul.agent.values.conversation.messages import ToolResultBlock

PROBE = "the tool's probe"
SOMEBODY = "somebody"


def begin(ledger: Ledger, call: OpenCall, result: ToolResultBlock, at: int, *, runs_on: bool = False) -> None:
    tool = ledger.provided.tools.get(call.block.name)
    due = tool is not None and tool.probes
    ledger.doubts[result.id] = Doubt(
        call_id=result.id,
        tool=call.block.name,
        reply_id=ledger.current.reply_id,
        input=call.input if due else cut(call.input),
        why=cut(result.get_text()),
        at=at,
        cwd=ledger.state.tool_context.cwd,
        due=due,
        runs_on=runs_on,
    )
    if not due:
        ledger.keep_unmarked(result.id, "")
    while len(ledger.doubts) > KEPT_DOUBTS:
        least = _least_needed(ledger)
        ledger.keep_unmarked(least, "")
        del ledger.doubts[least]


def _least_needed(ledger: Ledger) -> str:
    """The oldest that is settled, or the oldest of all."""
    settled = (call_id for call_id, doubt in ledger.doubts.items() if not doubt.open)
    return next(settled, next(iter(ledger.doubts)))


def apply(ledger: Ledger, entry: e.DoubtEntry) -> None:
    doubt = ledger.doubts.get(entry.call_id)
    if doubt is None:
        return  # put aside for newer ones while it was looked at
    match entry:
        case e.DoubtProbed():
            _probed(ledger, doubt, entry)
        case e.DoubtSettled():
            told = f"On the word of {entry.by or SOMEBODY}{f': {entry.reason}' if entry.reason else '.'}"
            _settle(ledger, doubt, entry, by=entry.by or SOMEBODY, told=told)
        case _ as never:
            assert_never(never)


def _probed(ledger: Ledger, doubt: Doubt, entry: e.DoubtProbed) -> None:
    ledger.keep_unmarked(doubt.call_id, "")
    looked = doubt.model_copy(update={"due": False, "finding": entry.finding, "input": cut(doubt.input)})
    too_early = entry.finding == "did_not" and doubt.runs_on
    if entry.finding == "unknown" or too_early or not doubt.open:
        # A person's word that came while the tool looked stands.
        ledger.doubts[doubt.call_id] = looked
        return
    told = f"{doubt.tool} has looked{f': {entry.detail}' if entry.detail else '.'}"
    _settle(ledger, looked, entry, by=PROBE, told=told)


def _settle(ledger: Ledger, doubt: Doubt, entry: e.DoubtEntry, *, by: str, told: str) -> None:
    """The result that the model has read stays as it is: what is known now comes behind it."""
    happened = entry.happened if isinstance(entry, e.DoubtSettled) else entry.finding == "happened"
    ledger.keep_unmarked(doubt.call_id, "")
    output = entry.output if isinstance(entry, e.DoubtSettled) else ""
    update = {"due": False, "happened": happened, "by": by, "input": cut(doubt.input)}
    settled = doubt.model_copy(update=update)
    ledger.doubts[doubt.call_id] = settled
    stamp = {"id": f"m{entry.seq}.0", "created_at": iso(entry.at)}
    message = hint_message(settled_text(settled, told, output), SOURCE).model_copy(update=stamp)
    if ledger.reply and ledger.reply.calls:
        ledger.context.deferred.append(message)  # nothing may stand between a call and its result
    else:
        ledger.append((message,))
